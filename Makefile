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
PKGS := libmicrohttpd jansson libuv inih
PKG_CFLAGS = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
PKG_LIBS = $(shell pkg-config --libs $(PKGS) 2>/dev/null)
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
# The serial flavour of OpenBLAS: attnd has threads of its own.
BLAS_CFLAGS ?= -I/usr/include/$(MULTIARCH)/openblas-serial
BLAS_LIBS ?= -L/usr/lib/$(MULTIARCH)/openblas-serial -Wl,-rpath,/usr/lib/$(MULTIARCH)/openblas-serial -lopenblas
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wvla -Wundef $(if $(WERROR),-Werror)
ALL_CFLAGS = -std=gnu11 -fPIC -fvisibility=hidden -ftree-vectorize -fno-math-errno $(WARN) $(CFLAGS) \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=undefined) \
	$(if $(COVERAGE),--coverage)
ALL_CPPFLAGS = -Ilib -Iserver -D_GNU_SOURCE -DATTND_VERSION='"$(VERSION)"' $(PKG_CFLAGS) $(BLAS_CFLAGS) $(CPPFLAGS)
ALL_LDFLAGS = $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage) $(LDFLAGS)
LIBS = $(PKG_LIBS) $(BLAS_LIBS) -lm -lpthread

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
.PHONY: all
all: $(BUILD)/attnd ## build the daemon at build/attnd

$(BUILD)/attnd: $(BUILD)/server/main.o $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libattn.a: $(LIB_OBJ)
	rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/libserver.a: $(SERVER_OBJ)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tests/support/preload_%.so: tests/support/preload_%.c
	@mkdir -p $(@D)
	$(CC) $(filter-out -fvisibility=hidden,$(ALL_CPPFLAGS) $(ALL_CFLAGS)) -shared -o $@ $< -ldl

$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(SUPPORT_OBJ) $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $$(pkg-config --libs check) $(LIBS)
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libserver.a $(BUILD)/libattn.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/%.o: ALL_CPPFLAGS += -Itests/support

.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

.PHONY: help clean
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | LC_ALL=C sort | expand -t 22
clean: ## remove what was built
	rm -rf build compile_commands.json
