# attnd: `make help` lists the targets.
.DEFAULT_GOAL := all
VERSION := $(shell cat VERSION)

# ---- what a builder may set
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
CPPFLAGS ?=
LDFLAGS ?=
PYTHON ?= /usr/bin/python3
# build folder, sanitizers (for example address,undefined) and warnings as errors (WERROR=1)
BUILD ?= build
SANITIZE ?=
COVERAGE ?=
WERROR ?=

# ---- flags of the project
PKGS := libmicrohttpd jansson libuv inih libsystemd zlib libutf8proc libpcre2-8
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS = $(shell pkg-config --libs $(PKGS) 2>/dev/null)
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
# The pthread flavour of OpenBLAS, kept to one thread a call: attnd has threads of its own, and the serial
# flavour shares its work buffers between callers without a lock.
BLAS_CFLAGS ?= -I/usr/include/$(MULTIARCH)/openblas-pthread
BLAS_LIBS ?= -L/usr/lib/$(MULTIARCH)/openblas-pthread -Wl,-rpath,/usr/lib/$(MULTIARCH)/openblas-pthread -lopenblas
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wvla -Wundef $(if $(WERROR),-Werror)
ALL_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden -ftree-vectorize -fno-math-errno $(WARN) $(CFLAGS) \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined) \
	$(if $(SANITIZE),$(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized)) \
	$(if $(COVERAGE),--coverage -fprofile-update=atomic)
# Sanitizers make register tiles slow to compile: one tile for every number of rows then, of which gcc cannot see
# that it begins with zeros.
ALL_CPPFLAGS = $(if $(SANITIZE),-DATTN_ONE_TILE) -Ilib -Iserver -D_GNU_SOURCE -DATTND_VERSION='"$(VERSION)"' $(PKG_CFLAGS) $(BLAS_CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage) $(LDFLAGS)
LIBS = $(PKG_LIBS) $(BLAS_LIBS) -lm -lpthread
LIB_LIBS = $(shell pkg-config --libs jansson 2>/dev/null) $(BLAS_LIBS) -lm

# ---- sources
LIB_SRC := $(wildcard lib/*.c)
SERVER_SRC := $(shell find server -name '*.c' 2>/dev/null | LC_ALL=C sort)
SUPPORT_SRC := $(wildcard tests/support/*.c)
TEST_SRC := $(shell find tests/unit -name 'test_*.c' 2>/dev/null | LC_ALL=C sort)
BENCH_SRC := $(wildcard tests/bench/bench_*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)

LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
SERVER_OBJ := $(filter-out $(BUILD)/server/main.o,$(SERVER_SRC:%.c=$(BUILD)/%.o))
SUPPORT_OBJ := $(filter-out $(BUILD)/tests/support/preload_%,$(SUPPORT_SRC:%.c=$(BUILD)/%.o))
PRELOADS := $(patsubst %.c,$(BUILD)/%.so,$(wildcard tests/support/preload_*.c))
TESTS := $(TEST_SRC:%.c=$(BUILD)/%)
BENCHES := $(BENCH_SRC:%.c=$(BUILD)/%)
FUZZERS := $(FUZZ_SRC:%.c=$(BUILD)/%)

# ---- building
SONAME := libattn.so.$(firstword $(subst ., ,$(VERSION)))
SHARED := libattn.so.$(VERSION)

.PHONY: all
all: $(BUILD)/attnd $(BUILD)/$(SHARED) ## build the daemon at build/attnd, and libattn

$(BUILD)/attnd: $(BUILD)/server/main.o $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libattn.a: $(LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/$(SHARED): $(LIB_OBJ)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -Wl,-soname,$(SONAME) $(if $(SANITIZE),,-Wl,-z,defs) -o $@ $^ $(LIB_LIBS)
$(BUILD)/libserver.a: $(SERVER_OBJ)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/support/preload_%.so: tests/support/preload_%.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -fvisibility=hidden,$(ALL_CPPFLAGS) $(ALL_CFLAGS)) -shared -o $@ $< -ldl

# A program takes what it uses of these: a test may have functions of its own in the place of the library's.
$(BUILD)/tests/support/libsupport.a: $(SUPPORT_OBJ)
	rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/tests/support/libsupport.a $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $$(pkg-config --libs check) $(LIBS)
$(BUILD)/tests/text/%: $(BUILD)/tests/text/%.o $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/%.o: ALL_CPPFLAGS += -Itests/support
# Its vectors are passed between functions of one file alone, so that their ABI does not matter.
$(BUILD)/tests/support/wide_kernels.o: ALL_CFLAGS += -Wno-psabi

# A fuzz driver has LLVMFuzzerTestOneInput; without clang's fuzzer (FUZZ=1) it gets a main that reads files.
FUZZ ?=
$(filter $(BUILD)/tests/fuzz/fuzz_attention_%,$(FUZZERS)): $(BUILD)/tests/fuzz/attention_checks.o
$(filter $(BUILD)/tests/fuzz/fuzz_tokenizer_%,$(FUZZERS)): $(BUILD)/tests/fuzz/tokenizer_checks.o
$(BUILD)/tests/fuzz/fuzz_forward_request: $(BUILD)/tests/support/byte_reader.o
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(if $(FUZZ),,$(BUILD)/tests/fuzz/replay.o) $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(if $(FUZZ),-fsanitize=fuzzer) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

.PHONY: tests preloads fuzzers syntax
tests: $(TESTS) preloads
preloads: $(PRELOADS)
fuzzers: $(FUZZERS)

# Every C file read by the compiler, no code made.
C_SRC = $(LIB_SRC) $(SERVER_SRC) $(SUPPORT_SRC) $(TEST_SRC) $(wildcard tests/bench/*.c tests/fuzz/*.c tests/text/*.c)
SYNTAX := $(C_SRC:%=syntax/%)
.PHONY: $(SYNTAX)
syntax: $(SYNTAX)
$(SYNTAX): syntax/%: %
	$(CC) $(ALL_CPPFLAGS) -Itests/support $(ALL_CFLAGS) -fsyntax-only $<

compile_commands.json: Makefile ## commands for editors and tools (clangd)
	$(PYTHON) tests/support/compile_commands.py "$(CC) $(ALL_CPPFLAGS) -Itests/support $(ALL_CFLAGS)" $(C_SRC) >$@

# ---- running
LISTEN ?= 127.0.0.1:8080
.PHONY: run demo
BUILD_ALL = echo "building $(BUILD)/attnd" && $(MAKE) --no-print-directory -s -j$$(nproc) all
run: ## build, serve the embedded model on 127.0.0.1:8080 (LISTEN=host:port), print a line to paste
	@./bootstrap.sh run
	@$(BUILD_ALL)
	@clients/run.sh $(BUILD)/attnd $(LISTEN)
demo: ## the textbook's four embeddings through the daemon, with a heat map of the weights
	@./bootstrap.sh demo
	@$(BUILD_ALL)
	@$(PYTHON) clients/demo.py --daemon $(BUILD)/attnd

# ---- checking: tests/support/suites.py lists what each group runs
TALLY = $(PYTHON) tests/support/tally.py --build $(BUILD)
.PHONY: check check-unit check-integration check-clients check-weights sanitize tsan valgrind fuzz lint format coverage check-container check-floats check-exp
check: ## every test; installs what is missing; last line `N passed, N failed, N skipped`
	@./bootstrap.sh test
	@$(TALLY) lint unit fuzz asan tsan integration clients package valgrind
check-unit: ## unit tests
	@./bootstrap.sh test
	@$(TALLY) unit
check-integration: ## the real daemon over real sockets
	@./bootstrap.sh test
	@$(TALLY) integration
check-clients: ## the examples of clients/
	@./bootstrap.sh test
	@$(TALLY) clients
check-weights: ## trained models against torch and transformers (PYTHON with tests/models/requirements.txt; downloads)
	@./bootstrap.sh test
	@$(TALLY) weights
.PHONY: weights
weights: ## fetch trained models into BUILD/weights, as directories that --models serves
	@$(PYTHON) tests/models/fetch_weights.py --to $(BUILD)/weights
sanitize: ## unit tests, fuzz corpora and a live load under the address and UB sanitizers
	@./bootstrap.sh test
	@$(TALLY) asan fuzz
tsan: ## unit tests and a live load under the thread sanitizer
	@./bootstrap.sh test
	@$(TALLY) tsan
valgrind: ## a short live run under valgrind
	@./bootstrap.sh test
	@$(TALLY) valgrind
lint: ## layers, sizes, words, format, clang's warnings
	@./bootstrap.sh test
	@$(TALLY) lint
check-container: ## build the Dockerfile with buildah and ask the image a question (root, Debian)
	@./bootstrap.sh container
	@tests/container/build.sh

check-floats: $(BUILD)/tests/bench/exhaustive_floats ## print and read back every float32 (minutes)
	$<
check-exp: $(BUILD)/tests/bench/exhaustive_exp ## the softmax's exponential of every float32 it can meet (a minute)
	$<

PEERS ?= $(PYTHON)
PARTS ?= all
.PHONY: bench benches soak
bench: ## figures and ratios of this machine, as one table; PEERS="python ..." has the libraries to compare with
	@./bootstrap.sh demo
	@$(MAKE) --no-print-directory all benches
	@$(PYTHON) tests/bench/run.py --build $(BUILD) --pythons $(PEERS) --parts $(PARTS)
benches: $(BENCHES) $(BUILD)/tests/bench/load

SOAK_MINUTES ?= 10
soak: all ## mixed traffic, kills, garbage and overload for SOAK_MINUTES; ends with figures of what is left
	$(PYTHON) tests/soak/soak.py --daemon $(BUILD)/attnd --minutes $(SOAK_MINUTES)

FUZZ_SECONDS ?= 60
fuzz: ## clang's fuzzer on each driver, FUZZ_SECONDS each
	@./bootstrap.sh test
	$(MAKE) CC=clang FUZZ=1 BUILD=$(BUILD)/fuzz SANITIZE=address,undefined CFLAGS="-O1 -g -fsanitize=fuzzer-no-link" fuzzers
	@set -e; for driver in $(basename $(notdir $(FUZZ_SRC))); do \
		mkdir -p $(BUILD)/fuzz/corpus/$$driver; \
		$(BUILD)/fuzz/tests/fuzz/$$driver -max_total_time=$(FUZZ_SECONDS) \
			$(BUILD)/fuzz/corpus/$$driver tests/fuzz/corpus/$${driver#fuzz_}; \
	done

coverage: ## lines reached by unit and integration tests, by file, with a total for lib and one for server
	@./bootstrap.sh coverage
	@mkdir -p $(BUILD)/coverage && find $(BUILD)/coverage -name '*.gcda' -delete
	@status=0; $(PYTHON) tests/support/tally.py --build $(BUILD)/coverage unit integration || status=1; \
		gcovr --root . --filter 'lib/' --filter 'server/' --json $(BUILD)/coverage/coverage.json $(BUILD)/coverage && \
		for folder in lib server; do \
			gcovr --root . --add-tracefile $(BUILD)/coverage/coverage.json --filter "$$folder/"; \
		done && exit $$status
coverage: export COVERAGE := 1
coverage: export CFLAGS := -O1 -g

format: ## clang-format every C file in place
	clang-format -i $(shell find lib server tests clients -name '*.[ch]')

# ---- installing: each folder may be set; DESTDIR goes before all of them
INSTALL ?= install
bindir ?= $(PREFIX)/bin
includedir ?= $(PREFIX)/include
libdir ?= $(PREFIX)/lib
pkgconfigdir ?= $(libdir)/pkgconfig
datadir ?= $(PREFIX)/share
# The daemon looks for its models at ../share/attnd/models, seen from its own folder.
modeldir ?= $(datadir)/attnd/models
completiondir ?= $(datadir)/bash-completion/completions
docdir ?= $(datadir)/doc/attnd
mandir ?= $(datadir)/man
sysconfdir ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
unitdir ?= $(PREFIX)/lib/systemd/system

MODEL_FILES := $(patsubst config/models/%,%,$(wildcard $(foreach f,config.json tokenizer.json README.md *.safetensors,config/models/*/$f)))
DOCS := README.md CHANGELOG.md LICENSE $(wildcard doc/*.md doc/*.yaml)
PAGES := $(wildcard doc/*.[1-9])
UNITS := $(wildcard systemd/attnd.*)
# Rows from=to: files copied as they are, and texts that learn the folders on the way.
COPIES = lib/attn.h=$(includedir)/attn.h $(BUILD)/libattn.a=$(libdir)/libattn.a $(BUILD)/$(SHARED)=$(libdir)/$(SHARED) \
	config/bash-completion/attnd=$(completiondir)/attnd $(foreach f,$(MODEL_FILES),config/models/$f=$(modeldir)/$f) \
	$(foreach f,$(DOCS),$f=$(docdir)/$(notdir $f))
TEXTS = lib/attn.pc.in=$(pkgconfigdir)/attn.pc $(foreach f,$(UNITS),$f=$(unitdir)/$(notdir $f)) \
	$(foreach f,$(PAGES),$f=$(mandir)/man$(subst .,,$(suffix $f))/$(notdir $f))
LINKS = $(libdir)/$(SONAME) $(libdir)/libattn.so
INSTALLED = $(bindir)/attnd $(LINKS) $(foreach row,$(COPIES) $(TEXTS),$(lastword $(subst =, ,$(row))))
OWN_FOLDERS = $(sort $(dir $(MODEL_FILES:%=$(modeldir)/%))) $(modeldir) $(datadir)/attnd $(docdir) $(sysconfdir)/attnd
CONFIGURATION = "$(DESTDIR)$(sysconfdir)/attnd/attnd.conf"
# The texts name folders as @bindir@ or, where a reader may see them as they are, as on a system where PREFIX is
# /usr. In attn.pc folders below PREFIX are told by it, so that the whole tree can be moved.
FILL = sed -e 's|/etc/attnd\>|@sysconfdir@/attnd|g; s|/usr/share/attnd/models|@modeldir@|g' \
	-e 's|@version@|$(VERSION)|g; s|@blas_libs@|$(BLAS_LIBS)|g; s|@prefix@|$(PREFIX)|g; s|@bindir@|$(bindir)|g' \
	-e 's|@sysconfdir@|$(sysconfdir)|g; s|@modeldir@|$(modeldir)|g' \
	-e 's|@libdir@|$(libdir:$(PREFIX)/%=$${prefix}/%)|g; s|@includedir@|$(includedir:$(PREFIX)/%=$${prefix}/%)|g'

.PHONY: install uninstall
install: all ## install under DESTDIR and PREFIX; an attnd.conf that is there already stays
	$(INSTALL) -D -m 755 $(BUILD)/attnd "$(DESTDIR)$(bindir)/attnd"
	@set -e; for row in $(COPIES); do $(INSTALL) -D -m 644 "$${row%%=*}" "$(DESTDIR)$${row#*=}"; done
	@set -e; for row in $(TEXTS); do $(FILL) "$${row%%=*}" | $(INSTALL) -D -m 644 /dev/stdin "$(DESTDIR)$${row#*=}"; done
	@set -e; for link in $(LINKS); do ln -sf $(SHARED) "$(DESTDIR)$$link"; done
	@if test -e $(CONFIGURATION); then echo "kept as it is: "$(CONFIGURATION); \
		else $(FILL) config/attnd.conf | $(INSTALL) -D -m 644 /dev/stdin $(CONFIGURATION); fi
	@test -n "$(DESTDIR)" || echo "ldconfig (as root) tells the dynamic linker of $(libdir)/$(SONAME)"
uninstall: ## remove what install put there; an attnd.conf that was edited stays
	rm -f $(foreach file,$(INSTALLED),"$(DESTDIR)$(file)")
	@if $(FILL) config/attnd.conf | cmp -s - $(CONFIGURATION); then rm -f $(CONFIGURATION); fi
	@if test -e $(CONFIGURATION); then echo "kept, since it was edited: "$(CONFIGURATION); fi
	@for folder in $(OWN_FOLDERS); do test ! -d "$(DESTDIR)$$folder" || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$folder"; done

.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: help clean
help: ## list the targets
	@sed -n 's/^\([a-z][a-z_.-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | LC_ALL=C sort | expand -t 22
clean: ## remove what was built
	rm -rf build compile_commands.json
