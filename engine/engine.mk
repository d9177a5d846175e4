# SPDX-License-Identifier: MIT
# vgpu-engine; included by the top Makefile.

ENGINE_PKGS := glib-2.0 virglrenderer libsystemd vulkan
ENGINE_SRCS := $(wildcard engine/*.c)
ENGINE_OBJS := $(ENGINE_SRCS:%.c=build/%.o)
VGPU_VERSION ?= $(shell cat mdev-driver/VERSION)
ENGINE_WARN := -std=c11 -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ENGINE_CPPFLAGS = -D_GNU_SOURCE -DVGPU_VERSION='"$(VGPU_VERSION)"' -DG_LOG_DOMAIN='"vgpu-engine"' \
	-DVGPU_CUDA_WORKER='"$(PREFIX)/lib/mdev-vgpu/vgpu-cuda-worker"' \
	-I. -Iengine -Icuda-remote -Imdev-driver/uapi $(ENGINE_PKG_CFLAGS)
ENGINE_CFLAGS ?= -O2 -g $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ENGINE_LDFLAGS ?= $(HARDEN_LDFLAGS) $(LDFLAGS)
ENGINE_PKG_CFLAGS = $(call once,ENGINE_PKG_CFLAGS,pkg-config --cflags $(ENGINE_PKGS))
ENGINE_LIBS = $(call once,ENGINE_LIBS,pkg-config --libs $(ENGINE_PKGS))

# Unit tests: the engine, sanitized, between a fake driver and a fake virglrenderer.
ENGINE_TESTS_SRC := tests/unit/engine
ENGINE_TESTS_OUT := build/unit/engine
ENGINE_TESTS := $(patsubst $(ENGINE_TESTS_SRC)/%.c,$(ENGINE_TESTS_OUT)/%,$(wildcard $(ENGINE_TESTS_SRC)/test-*.c))
ENGINE_TESTS_COMMON := $(patsubst engine/%.c,$(ENGINE_TESTS_OUT)/%.o,\
		$(filter-out engine/main.c,$(ENGINE_SRCS))) \
	$(addprefix $(ENGINE_TESTS_OUT)/,fake_driver.o fake_virgl.o fixture.o uapi_check.o)
ENGINE_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
ENGINE_TESTS_CFLAGS := -O1 -g $(ENGINE_SANITIZE) -I$(ENGINE_TESTS_SRC) -Imdev-driver/model
ENGINE_TESTS_LIBS = $(call once,ENGINE_TESTS_LIBS,pkg-config --libs $(filter-out virglrenderer,$(ENGINE_PKGS)))
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

# The fake driver refuses what the driver itself refuses.
$(ENGINE_TESTS_OUT)/uapi_check.o: mdev-driver/model/uapi_check.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_TESTS_CFLAGS) -std=c11 -MMD -MP -c -o $@ $<

$(ENGINE_TESTS): %: %.o $(ENGINE_TESTS_COMMON)
	$(CC) $(ENGINE_TESTS_CFLAGS) -o $@ $^ $(ENGINE_TESTS_LIBS)

# The engine over the real virglrenderer, on lavapipe. Run alone, because it waits for real
# processes.
ENGINE_LIVE := $(addprefix $(ENGINE_TESTS_OUT)/,live-lost live-parking)
UNIT_TESTS += $(ENGINE_LIVE)
UNIT_ALONE += $(ENGINE_LIVE)

$(ENGINE_LIVE): %: %.o $(ENGINE_TESTS_OUT)/live.o $(filter-out %/fake_virgl.o %/fixture.o,$(ENGINE_TESTS_COMMON))
	$(CC) $(ENGINE_TESTS_CFLAGS) -o $@ $^ $(ENGINE_LIBS)

# Races with the thread that paints.
.PHONY: tsan-engine
unit-tsan: tsan-engine
tsan-engine:
	$(MAKE) ENGINE_TESTS_OUT=build/tsan/engine ENGINE_SANITIZE=-fsanitize=thread build/tsan/engine/test-painter
	TSAN_OPTIONS=halt_on_error=1 tests/prove -e '' build/tsan/engine/test-painter

# Counts for tests/bench/RESULTS.md.
.PHONY: engine-counts
engine-counts: $(ENGINE_TESTS_OUT)/count-turns
$(ENGINE_TESTS_OUT)/count-turns: %: %.o $(ENGINE_TESTS_COMMON)
	$(CC) $(ENGINE_TESTS_CFLAGS) -o $@ $^ $(ENGINE_TESTS_LIBS)

.SECONDARY: $(ENGINE_TESTS_COMMON) $(ENGINE_TESTS:%=%.o) $(ENGINE_LIVE:%=%.o) $(ENGINE_TESTS_OUT)/live.o

check-engine: $(ENGINE_TESTS) $(ENGINE_LIVE)
	tests/prove -v --exec '' $(ENGINE_TESTS) $(ENGINE_LIVE)

install-engine: build/engine/vgpu-engine build/engine/vgpu-guard
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $^
	$(call install_unit,$(wildcard engine/systemd/*),$(SYSTEMD_UNIT_DIR))
	$(call install_unit,engine/udev/60-vgpu.rules,$(UDEV_RULES_DIR))
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu engine/udev/vgpu-engine-user
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 engine/vgpu-engine.8 engine/guard/vgpu-guard.8

include engine/guard/guard.mk

-include $(ENGINE_OBJS:.o=.d) $(wildcard $(ENGINE_TESTS_OUT)/*.d)
