#include "abx.h"

#include <build_info.h>

const abx_build *abx_build_info(void)
{
    static const abx_build info = {
        .version = ABX_VERSION,
        .output_version = 1,
        .commit = BUILD_INFO_COMMIT,
        .tls = BUILD_INFO_TLS,
        .zlib = BUILD_INFO_ZLIB,
        .libc = BUILD_INFO_LIBC,
        .target = BUILD_INFO_TARGET,
        .ca_date = BUILD_INFO_CA_DATE,
    };

    return &info;
}
