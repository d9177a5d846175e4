# SPDX-License-Identifier: MIT
# vgpu-container-hook: build/container-hooks/, its installation. Included by the top Makefile after host-agent.mk, whose
# objects it uses. Its unit tests are in AGENT_TESTS_DIRS, because they need vgpud.

CONTAINER_HOOK_SRC := container-hooks
CONTAINER_HOOK_OUT := build/container-hooks
CONTAINER_HOOK_SOURCES := $(wildcard $(CONTAINER_HOOK_SRC)/*.c)
CONTAINER_HOOK_PKG_LIBS = $(call once,CONTAINER_HOOK_PKG_LIBS,pkg-config --libs gio-2.0 json-glib-1.0)

.PHONY: container-hooks install-container-hooks
container-hooks: $(CONTAINER_HOOK_OUT)/vgpu-container-hook

$(CONTAINER_HOOK_OUT)/vgpu-container-hook: $(call agent_objects,$(CONTAINER_HOOK_SOURCES)) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(CONTAINER_HOOK_PKG_LIBS)

install-container-hooks: container-hooks
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu $(CONTAINER_HOOK_OUT)/vgpu-container-hook
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(CONTAINER_HOOK_SRC)/vgpu-container-hook.8
