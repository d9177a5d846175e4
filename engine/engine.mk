# SPDX-License-Identifier: MIT
# vgpu-engine; included by the top Makefile.

ENGINE_PKGS := glib-2.0 virglrenderer libsystemd vulkan
ENGINE_SRCS := $(wildcard engine/*.c)
ENGINE_OBJS := $(ENGINE_SRCS:%.c=build/%.o)
VGPU_VERSION ?= $(shell cat mdev-driver/VERSION)
ENGINE_WARN := -std=c11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ENGINE_CPPFLAGS = -D_GNU_SOURCE -DVGPU_VERSION='"$(VGPU_VERSION)"' -DG_LOG_DOMAIN='"vgpu-engine"' \
	-Iengine -Imdev-driver/uapi $(shell pkg-config --cflags $(ENGINE_PKGS))
ENGINE_CFLAGS ?= -O2 -g $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ENGINE_LDFLAGS ?= $(HARDEN_LDFLAGS) $(LDFLAGS)
ENGINE_LIBS = $(shell pkg-config --libs $(ENGINE_PKGS))

# Unit tests: the engine, sanitized, between a fake driver and a fake virglrenderer.
ENGINE_TESTS_SRC := tests/unit/engine
ENGINE_TESTS_OUT := build/unit/engine
ENGINE_TESTS := $(patsubst $(ENGINE_TESTS_SRC)/test-%.c,build/unit/engine-%,\
	$(wildcard $(ENGINE_TESTS_SRC)/test-*.c))
ENGINE_TESTS_COMMON := $(patsubst engine/%.c,$(ENGINE_TESTS_OUT)/%.o,\
		$(filter-out engine/main.c,$(ENGINE_SRCS))) \
	$(addprefix $(ENGINE_TESTS_OUT)/,fake_driver.o fake_virgl.o fixture.o uapi_check.o)
ENGINE_TESTS_CFLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	-I$(ENGINE_TESTS_SRC) -Imdev-driver/model
ENGINE_TESTS_LIBS = $(shell pkg-config --libs $(filter-out virglrenderer,$(ENGINE_PKGS)))
UNIT_TESTS += $(ENGINE_TESTS)

SYSTEMD_UNIT_DIR ?= $(PREFIX)/lib/systemd/system
UDEV_RULES_DIR ?= $(PREFIX)/lib/udev/rules.d

.PHONY: engine check-engine install-engine
engine: build/engine/vgpu-engine

build/engine/vgpu-engine: $(ENGINE_OBJS)
	$(CC) $(ENGINE_CFLAGS) $(ENGINE_LDFLAGS) -o $@ $(ENGINE_OBJS) $(ENGINE_LIBS)

build/engine/%.o: engine/%.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(ENGINE_CFLAGS) $(ENGINE_CPPFLAGS) -MMD -MP -c -o $@ $<

$(ENGINE_TESTS_OUT)/%.o: engine/%.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(ENGINE_TESTS_CFLAGS) $(ENGINE_CPPFLAGS) -MMD -MP -c -o $@ $<

$(ENGINE_TESTS_OUT)/%.o: $(ENGINE_TESTS_SRC)/%.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(ENGINE_TESTS_CFLAGS) $(ENGINE_CPPFLAGS) -MMD -MP -c -o $@ $<

# What the driver itself refuses, the fake one refuses, too.
$(ENGINE_TESTS_OUT)/uapi_check.o: mdev-driver/model/uapi_check.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_TESTS_CFLAGS) -std=c11 -MMD -MP -c -o $@ $<

build/unit/engine-%: $(ENGINE_TESTS_OUT)/test-%.o $(ENGINE_TESTS_COMMON)
	$(CC) $(ENGINE_TESTS_CFLAGS) -o $@ $^ $(ENGINE_TESTS_LIBS)

.SECONDARY: $(ENGINE_TESTS_COMMON) $(ENGINE_TESTS:build/unit/engine-%=$(ENGINE_TESTS_OUT)/test-%.o)

# Fuzzing of the control commands: part of `make fuzz`.
ENGINE_FUZZ := build/fuzz/engine-commands
ENGINE_FUZZ_CFLAGS := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	-I$(ENGINE_TESTS_SRC) -Imdev-driver/model
ENGINE_FUZZ_SRCS := $(filter-out engine/main.c engine/icd_probe.c engine/icd.c engine/describe.c engine/vulkan_driver.c,$(ENGINE_SRCS)) \
	$(addprefix $(ENGINE_TESTS_SRC)/,fuzz_commands.c fake_driver.c fake_virgl.c fixture.c) \
	mdev-driver/model/uapi_check.c

.PHONY: fuzz-engine
fuzz-build: $(ENGINE_FUZZ)
fuzz: fuzz-engine
fuzz-engine: $(ENGINE_FUZZ)
	prove -v -e sh tests/fuzz/run.sh :: $(or $(SECONDS),20) $(ENGINE_FUZZ)

$(ENGINE_FUZZ): $(ENGINE_FUZZ_SRCS) $(wildcard engine/*.h $(ENGINE_TESTS_SRC)/*.h)
	@mkdir -p $(@D)
	$(or $(FUZZ_CC),clang) $(ENGINE_WARN) $(ENGINE_FUZZ_CFLAGS) $(ENGINE_CPPFLAGS) -o $@ \
		$(ENGINE_FUZZ_SRCS) $(ENGINE_TESTS_LIBS)

check-engine: $(ENGINE_TESTS)
	prove -v --exec '' $(ENGINE_TESTS)

install-engine: build/engine/vgpu-engine build/engine/vgpu-guard
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $^
	$(call install_unit,$(wildcard engine/systemd/*),$(SYSTEMD_UNIT_DIR))
	$(call install_unit,engine/udev/60-vgpu.rules,$(UDEV_RULES_DIR))
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu engine/udev/vgpu-engine-user
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 engine/vgpu-engine.8 engine/guard/vgpu-guard.8

include engine/guard/guard.mk

-include $(ENGINE_OBJS:.o=.d) $(wildcard $(ENGINE_TESTS_OUT)/*.d)
