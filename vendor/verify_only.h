/* verify_only.h - stands before what calls RSA and ECDSA for keys (group.sh).
 *
 * abx has no key of its own: it checks signatures and makes none. Mbed TLS has
 * no setting for that, and its tables of key types keep the private half of RSA
 * and ECDSA in the program, 17 KB that nothing can reach. Here they answer that
 * they are not there.
 */
#include "common.h"
#include "mbedtls/pk.h"
#include "mbedtls/ecdsa.h"
#include "mbedtls/rsa.h"
#include "rsa_internal.h"

#define mbedtls_rsa_pkcs1_sign(...)                     MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_rsa_pkcs1_decrypt(...)                  MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_rsa_pkcs1_encrypt(...)                  MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_rsa_rsassa_pss_sign(...)                MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_rsa_rsassa_pss_sign_no_mode_check(...)  MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_rsa_check_pub_priv(...)                 MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_ecp_check_pub_priv(...)                 MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_ecdsa_write_signature(...)              MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
#define mbedtls_ecdsa_write_signature_restartable(...)  MBEDTLS_ERR_PK_FEATURE_UNAVAILABLE
