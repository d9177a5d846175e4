# SPDX-License-Identifier: MIT
# vgpu-qemu-hook: build/qemu-hooks/, its installation. Included by the top Makefile after host-agent.mk, whose objects
# it uses. Its unit tests are in AGENT_TESTS_DIRS, because they need vgpud.

HOOK_SRC := qemu-hooks
HOOK_OUT := build/qemu-hooks
HOOK_SOURCES := $(wildcard $(HOOK_SRC)/*.c)
HOOK_PKG_LIBS = $(call once,HOOK_PKG_LIBS,pkg-config --libs gio-2.0 libxml-2.0 libpci json-glib-1.0)
HOOKS_DIR ?= /etc/libvirt/hooks

.PHONY: qemu-hooks install-qemu-hooks
qemu-hooks: $(HOOK_OUT)/vgpu-qemu-hook

$(HOOK_OUT)/vgpu-qemu-hook: $(call agent_objects,$(HOOK_SOURCES)) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(HOOK_PKG_LIBS)

# AppArmor's profile of libvirtd allows it to run programs in /usr/sbin.
install-qemu-hooks: qemu-hooks
	install -D -m 0755 $(HOOK_OUT)/vgpu-qemu-hook $(DESTDIR)$(PREFIX)/sbin/vgpu-qemu-hook
	install -d -m 0755 $(DESTDIR)$(HOOKS_DIR)/qemu.d
	ln -sfn $(PREFIX)/sbin/vgpu-qemu-hook $(DESTDIR)$(HOOKS_DIR)/qemu.d/50-vgpu
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(HOOK_SRC)/vgpu-qemu-hook.8
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/selinux/packages $(HOOK_SRC)/vgpu.cil
