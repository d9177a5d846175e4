# SPDX-License-Identifier: MIT
# vgpu-engine; included by the top Makefile.

ENGINE_PKGS := glib-2.0 virglrenderer libsystemd vulkan
ENGINE_SRCS := $(wildcard engine/*.c)
ENGINE_OBJS := $(ENGINE_SRCS:%.c=build/%.o)
ENGINE_VERSION ?= $(or $(VERSION),$(shell git describe --always --dirty 2>/dev/null),unknown)
ENGINE_WARN := -std=c11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ENGINE_CPPFLAGS = -D_GNU_SOURCE -DVGPU_VERSION='"$(ENGINE_VERSION)"' -DG_LOG_DOMAIN='"vgpu-engine"' \
	-Iengine -Imdev-driver/uapi $(shell pkg-config --cflags $(ENGINE_PKGS))
ENGINE_CFLAGS ?= -O2 -g -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
ENGINE_LDFLAGS ?= -pie -Wl,-z,relro,-z,now
ENGINE_LIBS = $(shell pkg-config --libs $(ENGINE_PKGS))

PREFIX ?= /usr
SYSTEMD_UNIT_DIR ?= $(PREFIX)/lib/systemd/system
UDEV_RULES_DIR ?= $(PREFIX)/lib/udev/rules.d

.PHONY: engine install-engine
engine: build/engine/vgpu-engine

build/engine/vgpu-engine: $(ENGINE_OBJS)
	$(CC) $(ENGINE_CFLAGS) $(ENGINE_LDFLAGS) -o $@ $(ENGINE_OBJS) $(ENGINE_LIBS)

build/engine/%.o: engine/%.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(ENGINE_CFLAGS) $(ENGINE_CPPFLAGS) -MMD -MP -c -o $@ $<

-include $(ENGINE_OBJS:.o=.d)
