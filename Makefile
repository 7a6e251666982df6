# abx - `make help` lists what can be made. GNU make, Debian; tools/setup
# installs what is needed.

# An empty environment (env -i) has no PATH, and then make finds no tool.
ifeq ($(PATH),)
export PATH := /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
endif

# --- what may be chosen on the command line ---------------------------------
TLS          ?= mbedtls
CA           ?= certifi
VERSION      := 0.1.0
ABX_CACHE    ?= $(HOME)/.cache/abx-dev
PYTHON       ?= $(ABX_CACHE)/venv/bin/python
PYTEST       ?= $(PYTHON) -m pytest
E2E_PYTEST   ?= $(ABX_CACHE)/e2e/venv-client/bin/python -m pytest
FUZZ_SECONDS ?= 5
HOST_CC      ?= gcc
CLANG        ?= clang
V            ?= 0

# --- the kinds of build ------------------------------------------------------
# Each has its own folder and program, so none disturbs another:
#   release  ./abx        static musl, what is shipped
#   debug    ./abx-debug  the same for a debugger
#   asan     ./abx-asan   glibc, address and undefined behaviour sanitizers
#   fuzz                  clang, the libraries that fuzzers are linked with
#   plain                 glibc, quickly built: the unit tests a second time
# TLS=none and CA=none go into folders and programs of their own, too.
KIND ?= release
ifneq ($(filter-out mbedtls none,$(TLS)),)
$(error TLS is mbedtls (the default) or none)
endif
ifneq ($(filter-out certifi none,$(CA)),)
$(error CA is certifi (the default) or none)
endif
ifeq ($(TLS),none)
VARIANT := -notls
else ifeq ($(CA),none)
VARIANT := -noca
endif
KIND_$(KIND) := -$(KIND)
KIND_release :=
B   := build$(KIND_$(KIND))$(VARIANT)
ABX := abx$(KIND_$(KIND))$(VARIANT)

WARN := -std=c11 -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wundef -Wredundant-decls \
  -Wconversion -Wno-sign-conversion -Wswitch-enum -Wformat=2 -Wvla -Werror
INC  := -D_GNU_SOURCE -I. -Isrc -DABX_VERSION='"$(VERSION)"'
ifeq ($(TLS),none)
INC += -DABX_TLS_NONE
endif
ifeq ($(CA),none)
INC += -DABX_CA_NONE
endif

# Debian's musl-gcc cannot link a static-pie; gcc with our specs file can. Of
# the system's headers it sees the kernel's alone ($(B)/kernel), never glibc's.
MUSL_CC  := gcc -specs=vendor/musl-spie.specs -fPIE -isystem build/kernel
HARDEN   := -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero
# Nothing unwinds in the shipped program, so it carries no tables for it.
NOUNWIND := -fno-asynchronous-unwind-tables
SAME     := -ffile-prefix-map=$(CURDIR)=.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
GC       := -ffunction-sections -fdata-sections
MUSL_LD  := -static-pie -Wl,-z,now,-z,noexecstack -Wl,--gc-sections -Wl,--build-id=sha1 \
  -Wl,-z,pack-relative-relocs -Wl,-e,abx_start

ifeq ($(KIND),release)
# For size: what takes time in abx is the kernel, and the ciphers (vendor.mk).
CC_KIND := $(MUSL_CC) -Oz -fipa-pta $(NOUNWIND) $(HARDEN) $(SAME)
LD_KIND := $(GC) $(MUSL_LD) -s -flto-partition=one -Wl,-z,norelro -Wl,-T,vendor/layout.ld
# See there.
FINISH  := $(B)/finish
# What makes abx's own code longer, and nothing in it faster that can be measured: 7 KB.
SMALL   := -fno-tree-loop-im -fno-move-loop-invariants -fno-tree-dominator-opts -fno-optimize-sibling-calls
else ifeq ($(KIND),debug)
CC_KIND := $(MUSL_CC) -Og -g $(HARDEN) $(SAME)
LD_KIND := $(MUSL_LD) -Wl,-z,relro
else ifeq ($(KIND),asan)
CC_KIND := gcc -O1 -g $(SANITIZE)
else ifeq ($(KIND),fuzz)
CC_KIND := $(CLANG) -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
else ifeq ($(KIND),plain)
CC_KIND := gcc -O1
else
$(error KIND is release, debug, asan, fuzz or plain)
endif
VCC := $(CC_KIND) $(GC)

ifeq ($(V),0)
Q   := @
say  = @printf '  %-4s %s\n'
else
say  = @:
endif

# Objects are built side by side even where nobody said -j; tests are not run so.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell /usr/bin/nproc))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

include vendor/vendor.mk

# --- the program: one unit ---------------------------------------------------
.PHONY: all program
all:
	@$(MAKE) $(JOBS) --no-print-directory program
program: $(ABX)

GEN   := $(B)/gen/build_info.h $(B)/gen/topics_data.h $(VENDOR_GEN) build/kernel/.ok
UNIT  := $(CC_KIND) $(SMALL) $(GC) $(WARN) $(INC) $(VENDOR_INC)
SRC   := $(sort $(wildcard src/*/*.c))
HDR   := $(sort $(wildcard src/*/*.h)) abx.h

$(B)/abx.o: abx.c $(GEN) $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(UNIT) -DABX_PROGRAM -MMD -MP -c -o $@ abx.c
$(ABX): $(B)/abx.o $(VENDOR_LIB) $(FINISH) vendor/layout.ld
	$(say) LD $@
	$(Q)$(CC_KIND) $(LD_KIND) -o $@ $(B)/abx.o $(VENDOR_LIB)
	$(Q)$(FINISH:%=% $@)
$(B)/finish: tools/finish.c
	@mkdir -p $(@D)
	$(Q)$(HOST_CC) -std=c11 -O1 -D_GNU_SOURCE -Wall -Wextra -Werror -o $@ $<

$(B)/gen/topics_data.h: $(B)/mkhelp src/cli/help.txt
	@mkdir -p $(@D)
	@$(B)/mkhelp < src/cli/help.txt > $@.new && mv $@.new $@

# What goes into `abx version`: looked at every time, touched when it changed.
$(B)/gen/build_info.h: FORCE $(VENDOR_GEN:%/roots_data.h=)
	@tools/build-info $@ $(TLS) $(CA) $(CC_KIND)
# The command lines, so that other flags build anew.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$flags" | cmp -s - $@ || printf '%s\n' "$$flags" > $@
$(B)/flags: export flags = $(UNIT)
$(B)/vendor.flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$flags" | cmp -s - $@ || printf '%s\n' "$$flags" > $@
$(B)/vendor.flags: export flags = $(VCC) $(foreach u,$(ZLIB_UNITS) $(MBEDTLS_UNITS),$(u) $(VCC_$(u))) $(VCC_LTO)
build/kernel/.ok:
	@[ -e /usr/lib/x86_64-linux-musl/rcrt1.o ] || \
	  { echo "make: musl is missing; run: sh tools/setup" >&2; exit 1; }
	@mkdir -p $(@D)
	@for d in linux asm-generic; do ln -sfn /usr/include/$$d $(@D)/$$d; done
	@ln -sfn /usr/include/$$(gcc -print-multiarch)/asm $(@D)/asm
	@touch $@
.PHONY: FORCE
FORCE:
-include $(B)/abx.d

# --- the split build: every .c alone -----------------------------------------
# ABX_API and ABX_FN are external here: the linker names what nobody defines.
# Not optimised, because check-names reads the objects and must see functions
# that would be inlined away.
SPLIT_OPT_release := -O0
SPLIT_OBJ := $(foreach c,$(SRC),$(B)/split/$(subst /,_,$(c:.c=.o)))
define split_rule
$(B)/split/$(subst /,_,$(1:.c=.o)): $(1) $(GEN) $(B)/flags
	@mkdir -p $$(@D)
	$(Q)$$(UNIT) $$(SPLIT_OPT_$$(KIND)) -MMD -MP -c -o $$@ $(1)
endef
$(foreach c,$(SRC),$(eval $(call split_rule,$(c))))
$(B)/split/abx: $(SPLIT_OBJ) $(VENDOR_LIB)
	$(say) LD $@
	$(Q)$(CC_KIND) $(LD_KIND) -o $@ $^
-include $(SPLIT_OBJ:.o=.d)

.PHONY: split split-program split-objects
split:
	@$(MAKE) $(JOBS) --no-print-directory split-program
split-program: $(B)/split/abx
split-objects: $(SPLIT_OBJ)

# --- the library: the same unit for somebody else's program -------------------
# Nothing of it is visible but the functions of abx.h.
$(B)/lib/abx.o: abx.c $(GEN) $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(UNIT) $(SPLIT_OPT_$(KIND)) -DABX_LIBRARY -MMD -MP -c -o $@ abx.c
-include $(B)/lib/abx.d
.PHONY: check-library
check-library: $(B)/lib/abx.o
	@! nm -g --defined-only --format=posix $< | grep -vE '^(abx_|mbedtls_(hardware_poll|internal_sha1_process) )'

# --- other kinds -------------------------------------------------------------
.PHONY: debug asan
debug asan:
	@$(MAKE) --no-print-directory KIND=$@ all

# --- unit tests --------------------------------------------------------------
# tests/unit/test.c includes abx.c and every *_test.c: one program, and it sees
# every private name.
TEST_CC := $(UNIT) -Wno-unused-function -Itests/unit
$(B)/test: tests/unit/test.c $(GEN) $(B)/flags $(VENDOR_LIB)
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(TEST_CC) -MMD -MP -MF $(B)/test.d -o $@ tests/unit/test.c $(VENDOR_LIB) -lcmocka
-include $(B)/test.d

# Without TLS nearly all of it is the same once more, and the sanitizers have seen it.
UNIT_KIND := $(if $(filter none,$(TLS)),plain,asan)
.PHONY: unit unit-program unit-compiled
unit-program: $(B)/test
unit-compiled: need-cmocka $(firstword $(VENDOR_GEN)) build/kernel/.ok
	@$(MAKE) --no-print-directory $(JOBS) KIND=$(UNIT_KIND) unit-program
unit: unit-compiled
	build-$(UNIT_KIND)$(VARIANT)/test

# --- vectors: the recorded answers of another host, of whatever folder ---------
# A program of its own, without cmocka: tests/vectors/run builds and starts it.
$(B)/vectors: tests/unit/vectors_run.c $(GEN) $(B)/flags $(VENDOR_LIB)
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(TEST_CC) -O0 -MMD -MP -MF $(B)/vectors.d -o $@ tests/unit/vectors_run.c $(VENDOR_LIB) $(LD_KIND)
-include $(B)/vectors.d

.PHONY: vectors-program
vectors-program: $(B)/vectors

# --- fuzzers -----------------------------------------------------------------
# Each tests/fuzz/fuzz_FOO.c includes the headers it needs and is linked with
# the split objects, so that a change rebuilds little.
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ_OBJ := $(filter-out %_cli_main.o,$(SPLIT_OBJ))
$(B)/libabx.a: $(FUZZ_OBJ)
	@rm -f $@
	$(Q)ar rcsD $@ $^
$(B)/fuzz_%: tests/fuzz/fuzz_%.c $(B)/libabx.a $(VENDOR_LIB)
	$(say) CC $@
	$(Q)$(UNIT) -fsanitize=fuzzer -Wno-missing-prototypes -MMD -MP -MF $@.d -o $@ $< $(B)/libabx.a $(VENDOR_LIB)
-include $(FUZZERS:%=$(B)/%.d)

.PHONY: fuzz fuzz-programs
fuzz-programs: $(FUZZERS:%=$(B)/%)
fuzz: need-clang
	@$(MAKE) --no-print-directory $(JOBS) KIND=fuzz fuzz-programs
	@sh tools/fuzz build-fuzz$(VARIANT) $(FUZZ_SECONDS) $(FUZZERS)

# --- checks ------------------------------------------------------------------
.PHONY: check check-notls check-code check-gcc check-clang check-headers cli
# What compiles is compiled side by side; then it is run, one after the other.
check:
	@$(MAKE) --no-print-directory $(JOBS) program check-code unit-compiled
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory cli
check-notls:
	@$(MAKE) --no-print-directory TLS=none check

check-code: need-shellcheck split-program check-library check-gcc check-clang check-headers
	tools/check-layers
	tools/check-calls
	tools/check-names $(B)/split
	@set -- $$(grep -lE '^#!/bin/(ba)?sh' tools/* vendor/*.sh .ci/* e2e/* tests/*/* docs/* 2>/dev/null); shellcheck -S warning "$$@"

# glibc's headers, where the first build saw musl's: gcc and clang, both ways.
check-gcc check-clang: $(GEN)
	@for f in abx.c $(CHECK_SRC); do \
	  p=; [ $$f = abx.c ] && p=-DABX_PROGRAM; \
	  $(CC_$@) $(WARN) $(INC) $(VENDOR_INC) $$p -fsyntax-only $$f || exit 1; done
# Without TLS, what is another then.
CHECK_SRC      := $(if $(filter none,$(TLS)),$(shell grep -l ABX_TLS_NONE $(SRC)),$(SRC))
CC_check-gcc   := gcc -O2
CC_check-clang := $(CLANG)
check-clang: need-clang

# Every header by itself; abx.h in strict C and C++ too, for it goes abroad.
check-headers: $(GEN) need-clang
	@for h in $(HDR); do \
	  $(MUSL_CC) $(WARN) -Wno-unused-function $(INC) $(VENDOR_INC) -fsyntax-only -x c $$h || exit 1; done
	@for x in "c -std=c11" "c++ -std=c++11"; do \
	  $(CLANG) -x $$x -Wall -Wextra -Wpedantic -Werror -fsyntax-only abx.h || exit 1; done

# Most of these tests wait more than they work, so several run at once; those
# of one file stay together, for they share servers, and files go in order, for
# the longest (test_build) is not to be the last.
# Without TLS the code is the same but for net/tls and net/roots: there it is what
# is refused, the file itself, and what is carried into a sandbox that are tried.
CLI_NOTLS := build tls sources http verbs carry agent_commands agent_files agent_http agent_init
CLI_FILES = $(if $(filter none,$(TLS)),$(CLI_NOTLS:%=tests/cli/test_%.py),tests/cli --deselect $(CLI_BUILDS))
# What it builds in copies of the tree has no TLS: once is enough.
CLI_BUILDS := tests/cli/test_build.py::test_two_folders_give_the_same_bytes_and_a_second_make_does_nothing
CLI_SPREAD ?= -n 4 --dist loadfile --no-loadscope-reorder
cli: all need-pytest
	ABX_TEST_BINARY=$(CURDIR)/$(ABX) ABX_TEST_TLS=$(TLS) $(PYTEST) -q -p no:cacheprovider $(CLI_SPREAD) $(CLI_FILES)

# --- the real thing, measurements, the long run ------------------------------
.PHONY: e2e bench demo nightly
# Two files at a time, each with sandboxes of its own. The agent in the sandboxes
# is the program without TLS.
E2E_SPREAD ?= -n 2 --dist loadfile --no-loadscope-reorder
e2e: all need-e2e
	@$(MAKE) --no-print-directory TLS=none all
	@e2e/prepare
	$(E2E_PYTEST) -q -p no:cacheprovider $(E2E_SPREAD) e2e
bench: all
	@$(MAKE) --no-print-directory TLS=none all
	tests/bench/run
demo: all
	@$(MAKE) --no-print-directory TLS=none all
	e2e/demo
nightly: check
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=60
	@$(MAKE) --no-print-directory valgrind
	tools/check-same
	ABX_NIGHTLY=1 $(MAKE) --no-print-directory e2e

# Valgrind sees what the sanitizers do not: reads of memory never written. It
# runs the unit tests as the debug kind builds them, but against glibc.
.PHONY: valgrind
valgrind: need-cmocka need-valgrind
	@$(MAKE) --no-print-directory KIND=debug MUSL_debug= CC_KIND='gcc -O1 -g' B=build-valgrind$(VARIANT) unit-program
	valgrind -q --error-exitcode=9 --leak-check=full build-valgrind$(VARIANT)/test

# --- missing tools are said, never skipped -----------------------------------
.PHONY: need-cmocka need-clang need-pytest need-e2e need-valgrind need-shellcheck
missing = { echo "make: $(1) is missing; run: sh tools/setup --tests" >&2; exit 1; }
need-cmocka:
	@[ -e /usr/include/cmocka.h ] || $(call missing,cmocka)
need-clang:
	@command -v $(CLANG) > /dev/null || $(call missing,clang)
need-pytest:
	@$(PYTEST) --version > /dev/null 2>&1 || $(call missing,pytest ($(PYTEST)))
need-shellcheck:
	@command -v shellcheck > /dev/null || $(call missing,shellcheck)
need-e2e:
	@$(E2E_PYTEST) --version > /dev/null 2>&1 || $(call missing,what e2e/prepare fetches)
need-valgrind:
	@command -v valgrind > /dev/null || $(call missing,valgrind)

# --- the rest ----------------------------------------------------------------
.PHONY: clean help
clean:
	rm -rf build build-* abx abx-notls abx-noca abx-debug* abx-asan*
# vendor/dist and vendor/src stay: they cost a download.

help:
	@sed -n 's/^# help: //p' Makefile
# help: make              ./abx, static, for this machine's Linux (x86_64)
# help: make TLS=none     ./abx-notls, without TLS: zlib alone is fetched, https is refused
# help: make CA=none      ./abx-noca, without embedded root certificates
# help: make debug        ./abx-debug, for a debugger        make asan   ./abx-asan, sanitizers
# help: make demo         the main job on a real server
# help:
# help: make check        everything that needs no server: both builds, checkers, unit and cli tests
# help: make check-notls  the same without TLS
# help: make split        each file alone          make unit   unit tests under ASan and UBSan
# help: make cli          tests of ./abx against scripted servers
# help: make e2e          tests on a real opensandbox-server with Docker
# help: make fuzz         each fuzzer for FUZZ_SECONDS (5)
# help: make bench        measurements             make nightly  check, long fuzzing, valgrind
# help: make clean        removes what was built; vendor/dist and vendor/src stay
