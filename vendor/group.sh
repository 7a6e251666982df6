#!/bin/sh
# group.sh LIBRARY OUT: writes the translation units that Mbed TLS is built
# from: OUT/unit_NAME.c includes files of LIBRARY. Eighteen of them instead of a
# hundred: most of the time goes into reading the same headers again.
#
# One unit of everything does not compile, for static names clash; these groups
# do. A file that a later version adds lands in `rest`, where a clash is loud.
set -eu
lib=$1 out=$2
mkdir -p "$out"
for unit in $(sed -n 's/^MBEDTLS_UNITS := //p' "$(dirname "$0")/vendor.mk"); do
    echo "/* made by vendor/group.sh */" > "$out/unit_$unit.c"
    [ $unit != x509 ] || echo '#include "verify_only.h"' >> "$out/unit_$unit.c"
done
for path in "$lib"/*.c; do
    file=${path##*/}; name=${file%.c}
    case $name in
    psa_crypto_slot_management | psa_crypto_client | psa_crypto_storage | psa_crypto_ffdh | \
    psa_crypto_driver_wrappers_no_static | psa_its_file) unit=psa_rest ;;
    psa_crypto | psa_crypto_aead | psa_crypto_cipher | psa_crypto_ecp | psa_crypto_hash | psa_crypto_mac | \
    psa_crypto_pake | psa_crypto_rsa | sha512 | aesni | aesce | ssl_tls13_generic | ssl_tls13_keys) unit=$name ;;
    ssl_* | mps_* | debug) unit=ssl ;;
    x509* | pk* | pem | oid | asn1*) unit=x509 ;;
    aes | chacha20 | chachapoly | gcm | poly1305) unit=fast ;;
    *) unit=rest ;;
    esac
    echo "#include \"$file\"" >> "$out/unit_$unit.c"
done
