#include "host/manifest.h"

static void manifest_vectors_test(void **state)
{
    (void)state;
    vectors_whole("manifest", 320);
}

static const struct CMUnitTest manifest_tests[] = {
    cmocka_unit_test(manifest_vectors_test),
};
