/* abx_psa_config.h - what PSA is built with (MBEDTLS_PSA_CRYPTO_CONFIG_FILE):
 * what TLS 1.3 asks it for: hashes, its key schedule and ECDH. Ciphers and
 * certificates go past PSA (abx_mbedtls_config.h).
 */
#define PSA_WANT_ALG_ECDH                         1
#define PSA_WANT_ALG_HKDF_EXPAND                  1
#define PSA_WANT_ALG_HKDF_EXTRACT                 1
#define PSA_WANT_ALG_HMAC                         1
#define PSA_WANT_ALG_SHA_256                      1
#define PSA_WANT_ALG_SHA_384                      1
/* These three by their names alone: where the TLS code asks what signatures it
 * can check, it asks PSA's settings, and has Mbed TLS's own functions do it. */
#define PSA_WANT_ALG_RSA_PSS                      1
#define PSA_WANT_KEY_TYPE_RSA_PUBLIC_KEY          1
#define PSA_WANT_ALG_SHA_512                      1
#define PSA_WANT_ECC_MONTGOMERY_255               1
#define PSA_WANT_ECC_SECP_R1_256                  1
#define PSA_WANT_ECC_SECP_R1_384                  1
#define PSA_WANT_ECC_SECP_R1_521                  1
#define PSA_WANT_KEY_TYPE_DERIVE                  1
#define PSA_WANT_KEY_TYPE_HMAC                    1
#define PSA_WANT_KEY_TYPE_ECC_PUBLIC_KEY          1
#define PSA_WANT_KEY_TYPE_ECC_KEY_PAIR_BASIC      1
#define PSA_WANT_KEY_TYPE_ECC_KEY_PAIR_EXPORT     1
#define PSA_WANT_KEY_TYPE_ECC_KEY_PAIR_GENERATE   1
