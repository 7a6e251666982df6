# vendor.mk - how Mbed TLS, zlib and the root certificates are built; part of
# the Makefile, which sets B (build folder), VCC (compiler and flags of this
# kind of build), TLS and CA. vendor/README.md says what comes out.

VSRC := vendor/src
MBEDTLS_UNITS := psa_crypto psa_crypto_aead psa_crypto_cipher psa_crypto_ecp psa_crypto_hash psa_crypto_mac psa_crypto_pake psa_crypto_rsa psa_rest sha512 aesni aesce ssl_tls13_generic ssl_tls13_keys ssl x509 fast rest
ZLIB_UNITS := adler32 crc32 inffast inflate inftrees zutil
# What is ours in place of musl's, where that is what abx is linked with.
MUSL_UNITS := start format sort system users
MUSL_release := yes
MUSL_debug := yes
PACKED_UNITS := adler32 crc32 deflate trees zutil

# What files of abx see of them.
VENDOR_INC := -isystem $(B)/gen -isystem $(VSRC)/zlib
VENDOR_OBJ := $(ZLIB_UNITS:%=$(B)/vendor/zlib/%.o)
ifneq ($(MUSL_$(KIND)),)
VENDOR_OBJ += $(MUSL_UNITS:%=$(B)/vendor/%.o)
endif
VENDOR_LIB := $(B)/vendor/libvendor.a
ifeq ($(TLS),none)
VENDOR_GEN := $(VSRC)/.fetched-zlib
else
VENDOR_INC += -isystem vendor -isystem $(VSRC)/mbedtls/include -DMBEDTLS_CONFIG_FILE='"abx_mbedtls_config.h"'
VENDOR_OBJ += $(MBEDTLS_UNITS:%=$(B)/vendor/mbedtls/%.o)
VENDOR_GEN := $(VSRC)/.fetched
ifneq ($(CA),none)
VENDOR_GEN += $(B)/gen/roots_data.h
endif
endif

# One fetch for all build folders; zlib alone for those without TLS. It says
# itself what it could not get.
$(VSRC)/.fetched: vendor/pins vendor/fetch.sh
	@sh vendor/fetch.sh || { rc=$$?; \
	  echo "make: the sources above are missing; 'make TLS=none' needs zlib alone, and builds an abx that refuses https." >&2; \
	  exit $$rc; }
	@touch $@
$(VSRC)/.fetched-zlib: vendor/pins vendor/fetch.sh
	@sh vendor/fetch.sh zlib
	@touch $@

$(B)/vendor/libvendor.a: $(VENDOR_OBJ)
	@rm -f $@ && $(VENDOR_AR) rcsD $@ $^
VENDOR_AR := ar

$(MUSL_UNITS:%=$(B)/vendor/%.o): $(B)/vendor/%.o: vendor/%.c $(B)/vendor.flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(VCC) $(WARN) -D_GNU_SOURCE -fno-builtin -c -o $@ $<

# The generated units only include; what they include has not changed unless
# .fetched has, and that rewrites them.
$(B)/gen/mbedtls/.ok: $(VSRC)/.fetched vendor/group.sh vendor/vendor.mk
	@rm -rf $(@D) && sh vendor/group.sh $(VSRC)/mbedtls/library $(@D) && touch $@
$(MBEDTLS_UNITS:%=$(B)/gen/mbedtls/unit_%.c): $(B)/gen/mbedtls/.ok ;

$(B)/vendor/mbedtls/%.o: $(B)/gen/mbedtls/unit_%.c vendor/abx_mbedtls_config.h vendor/abx_psa_config.h vendor/verify_only.h $(B)/vendor.flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(VCC) -w $(VCC_LTO) $(VCC_$*) -Ivendor -I$(VSRC)/mbedtls/include -I$(VSRC)/mbedtls/library \
	  -DMBEDTLS_CONFIG_FILE='"abx_mbedtls_config.h"' -c -o $@ $<
# The ciphers and the inner loops of zlib are built for speed where the release is
# built for size; what shakes hands and reads certificates is not, its arithmetic
# neither, which would save 0.3 ms of 3 to 9. zlib's CRC has no table of 8 KB for
# words: inflating takes longer than a CRC byte by byte.
ifeq ($(KIND),release)
$(foreach u,$(ZLIB_UNITS) $(MBEDTLS_UNITS),$(eval VCC_$u := $(SMALL)))
$(foreach u,inffast inftrees adler32 crc32 fast,$(eval VCC_$u := -O2))
# Mbed TLS is optimised as a whole by whoever links it: 7 KB.
VCC_LTO   := -flto
VENDOR_AR := gcc-ar
endif
# GCM is the inner loop of every download. SSSE3 is safe here: this file's code
# runs only where CPUID says AES-NI, which no processor has without SSSE3.
VCC_aesni := -O3 -mssse3

$(B)/vendor/zlib/%.o: $(firstword $(VENDOR_GEN)) $(B)/vendor.flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(VCC) -w $(VCC_$*) -DHAVE_UNISTD_H -DHAVE_STDARG_H -DZ_TESTW=0 -c -o $@ $(VSRC)/zlib/$*.c

# Tools that run here, with zlib to pack what they write.
$(B)/mk%: tools/mk%.c tools/packed.h $(firstword $(VENDOR_GEN))
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(HOST_CC) -std=c11 -O2 -DHAVE_UNISTD_H -DHAVE_STDARG_H -isystem $(VSRC)/zlib -o $@ $< $(PACKED_UNITS:%=$(VSRC)/zlib/%.c)

# Root certificates: certifi's PEM bundle -> DER, one after the other -> gzip.
$(B)/gen/roots_data.h: $(B)/mkroots
	@mkdir -p $(@D)
	$(say) GEN $@
	$(Q)$(B)/mkroots $(CA_DATE) < $(VSRC)/certifi/certifi/cacert.pem > $@.new && mv $@.new $@
# certifi-2026.10.19.post1 -> 2026-10-19
CA_DATE = $$(readlink $(VSRC)/certifi | sed 's/certifi-\([0-9]*\)\.\([0-9]*\)\.\([0-9]*\).*/\1-\2-\3/')
