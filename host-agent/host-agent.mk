# SPDX-License-Identifier: MIT
# vgpud and vgpuctl: build/host-agent/, their unit tests, their installation. Included by the top Makefile,
# which sets VERSION and PREFIX.

AGENT_SRC := host-agent
AGENT_OUT := build/host-agent
AGENT_TESTS := tests/unit/host-agent
AGENT_XML := $(AGENT_SRC)/dbus/org.mdev_vgpu.Host1.xml
# Each may use the earlier ones, and vgpuctl only lib/ and model/ (tests/unit/host-agent/test-layers.c checks this).
AGENT_MODEL := $(wildcard $(AGENT_SRC)/model/*.c)
AGENT_STORE := $(wildcard $(AGENT_SRC)/store/*.c)
AGENT_DAEMON := $(wildcard $(AGENT_SRC)/daemon/*.c $(AGENT_SRC)/daemon/*/*.c)
AGENT_METER := $(wildcard $(AGENT_SRC)/meter/*.c)
AGENT_DOCTOR := $(wildcard $(AGENT_SRC)/doctor/*.c)
# Files that change the host; unit tests replace them.
AGENT_KERNEL := $(AGENT_SRC)/daemon/modes/kernel_call.c
# The folder of code that is generated from the interface.
AGENT_CFLAGS := $(LIB_CFLAGS) -I$(AGENT_OUT) -DVGPU_VERSION='"$(VERSION)"'
VGPUD_PKGS := gio-unix-2.0 libacl libpci libudev json-glib-1.0 sqlite3 polkit-gobject-1 libsystemd
METER_PKGS := gio-unix-2.0 libacl libpci json-glib-1.0 sqlite3 libmicrohttpd
AGENT_PKGS := $(VGPUD_PKGS) libmicrohttpd
AGENT_PKG_CFLAGS = $(call once,AGENT_PKG_CFLAGS,pkg-config --cflags $(AGENT_PKGS) libxml-2.0 smartcols)
VGPUD_PKG_LIBS = $(call once,VGPUD_PKG_LIBS,pkg-config --libs $(VGPUD_PKGS))
VGPUCTL_PKG_LIBS = $(call once,VGPUCTL_PKG_LIBS,pkg-config --libs gio-unix-2.0 libpci json-glib-1.0 libxml-2.0 smartcols sqlite3)
METER_PKG_LIBS = $(call once,METER_PKG_LIBS,pkg-config --libs $(METER_PKGS))
AGENT_TEST_PKG_LIBS = $(call once,AGENT_TEST_PKG_LIBS,pkg-config --libs $(AGENT_PKGS) libxml-2.0)
AGENT_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

VGPUD_SOURCES := $(AGENT_DAEMON) $(AGENT_STORE) $(AGENT_MODEL)
# What it has in common with vgpud reads files and runs nothing.
METER_SOURCES := $(AGENT_METER) $(AGENT_STORE) $(AGENT_MODEL) $(wildcard $(AGENT_SRC)/daemon/engines/*.c) \
	$(addprefix $(AGENT_SRC)/daemon/,slices/offers.c containers/claim_process.c containers/transport.c)
VGPUCTL_SOURCES := $(wildcard $(AGENT_SRC)/vgpuctl/*.c) $(AGENT_DOCTOR) $(addprefix $(AGENT_SRC)/model/,slice.c slice_keys.c)

# A unit test is a file test-NAME.c in a folder of a program that talks to vgpud. All of vgpud except main(), under the
# sanitizers, is a shared library for them: linking it into each of them statically takes longer than compiling it.
AGENT_TESTS_DIRS := $(AGENT_TESTS) $(addprefix tests/unit/,mdevctl-plugins qemu-hooks container-hooks)
AGENT_UNIT_TESTS := $(patsubst tests/%.c,build/%,$(wildcard $(AGENT_TESTS_DIRS:%=%/test-*.c)))
AGENT_TEST_LIB := $(AGENT_OUT)/libvgpud-test.so
AGENT_TEST_SOURCES := $(filter-out $(LIB_CALL),$(LIB_SOURCES)) $(AGENT_DOCTOR) \
	$(filter-out %/main.c $(AGENT_KERNEL),$(VGPUD_SOURCES) $(AGENT_METER)) \
	$(filter-out $(AGENT_TESTS)/test-%.c,$(wildcard $(AGENT_TESTS)/*.c)) \
	tests/unit/container-hooks/container.c tests/unit/file_tree.c
UNIT_TESTS += $(AGENT_UNIT_TESTS) $(AGENT_TESTS)/completion.t $(AGENT_TESTS)/units.t $(AGENT_TESTS)/messages.t $(AGENT_TESTS)/commands.t
# vgpud waits for an arbiter for 0.2 s.
UNIT_ALONE += build/unit/host-agent/test-arbiter

agent_objects = $(patsubst %.c,$(AGENT_OUT)/obj/%.o,$(1))
agent_test_objects = $(patsubst %.c,$(AGENT_OUT)/test-lib/%.o,$(1))

# Made from vgpuctl's own table of commands.
AGENT_COMPLETIONS := $(addprefix $(AGENT_OUT)/vgpuctl.,bash zsh fish)

.PHONY: host-agent install-host-agent
host-agent: $(AGENT_OUT)/vgpud $(AGENT_OUT)/vgpu-meter $(AGENT_OUT)/vgpuctl $(AGENT_COMPLETIONS)

# Generated code is compiled without our warnings.
$(AGENT_OUT)/vgpu-host.c $(AGENT_OUT)/vgpu-host.h &: $(AGENT_XML)
	@mkdir -p $(AGENT_OUT)
	gdbus-codegen --interface-prefix org.mdev_vgpu.Host1. --c-namespace Vgpu \
		--c-generate-object-manager --c-generate-autocleanup all \
		--generate-c-code $(AGENT_OUT)/vgpu-host $<

$(AGENT_OUT)/vgpu-host.o: $(AGENT_OUT)/vgpu-host.c
	$(CC) -std=gnu11 -O2 -g $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS) -I. $(AGENT_PKG_CFLAGS) -c -o $@ $<

$(AGENT_OUT)/obj/%.o: %.c $(AGENT_OUT)/vgpu-host.h
	@mkdir -p $(@D)
	$(CC) -O2 $(HARDEN_CFLAGS) $(AGENT_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(AGENT_PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(AGENT_OUT)/test-lib/%.o: %.c $(AGENT_OUT)/vgpu-host.h
	@mkdir -p $(@D)
	$(CC) -O1 -fPIC $(AGENT_SANITIZE) $(AGENT_CFLAGS) $(AGENT_PKG_CFLAGS) \
		-DHOSTS='"$(CURDIR)/$(AGENT_TESTS)/hosts"' -DAGENT_OUT='"$(CURDIR)/$(AGENT_OUT)"' \
		-DHOOK_OUT='"$(CURDIR)/$(HOOK_OUT)"' -DCONTAINER_HOOK='"$(CURDIR)/$(CONTAINER_HOOK_OUT)/vgpu-container-hook"' \
		-MMD -MP -c -o $@ $<

$(AGENT_OUT)/test-lib/vgpu-host.o: $(AGENT_OUT)/vgpu-host.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g -fPIC -I. $(AGENT_PKG_CFLAGS) -c -o $@ $<

$(AGENT_OUT)/vgpud: $(call agent_objects,$(VGPUD_SOURCES)) $(AGENT_OUT)/vgpu-host.o $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(VGPUD_PKG_LIBS)

$(AGENT_OUT)/vgpu-meter: $(call agent_objects,$(METER_SOURCES)) $(AGENT_OUT)/vgpu-host.o $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(METER_PKG_LIBS)

$(AGENT_OUT)/vgpuctl: $(call agent_objects,$(VGPUCTL_SOURCES)) $(AGENT_OUT)/vgpu-host.o $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(VGPUCTL_PKG_LIBS)

$(AGENT_TEST_LIB): $(call agent_test_objects,$(AGENT_TEST_SOURCES)) $(AGENT_OUT)/test-lib/vgpu-host.o
	$(CC) $(AGENT_SANITIZE) -shared -o $@ $^ $(LDFLAGS) $(AGENT_TEST_PKG_LIBS)

# The service runs in the test's own process, under the sanitizers; vgpuctl is the installed one. A changed library is no
# reason to link again.
$(AGENT_UNIT_TESTS): build/%: $(AGENT_OUT)/test-lib/tests/%.o | $(AGENT_TEST_LIB) $(AGENT_OUT)/vgpuctl \
		build/qemu-hooks/vgpu-qemu-hook build/container-hooks/vgpu-container-hook
	@mkdir -p $(@D)
	$(CC) $(AGENT_SANITIZE) -Wl,-rpath,'$$ORIGIN/../../host-agent' -o $@ $< $(AGENT_TEST_LIB) $(LDFLAGS) $(AGENT_TEST_PKG_LIBS)

$(AGENT_COMPLETIONS): $(AGENT_OUT)/vgpuctl.%: $(AGENT_OUT)/vgpuctl
	$< completion $* >$@.new
	mv $@.new $@

$(AGENT_TESTS)/completion.t: $(AGENT_OUT)/vgpuctl $(AGENT_COMPLETIONS)

-include $(shell find $(AGENT_OUT) -name '*.d' 2>/dev/null)

install-host-agent: host-agent
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/sbin $(AGENT_OUT)/vgpud $(AGENT_OUT)/vgpu-meter
	install -D -m 0755 $(AGENT_OUT)/vgpuctl $(DESTDIR)$(PREFIX)/bin/vgpuctl
	$(call install_unit,$(addprefix $(AGENT_SRC)/systemd/,vgpud.service vgpu-meter.service vgpu-device-limits@.service \
		vgpu-schedule@.service),\
		$(PREFIX)/lib/systemd/system)
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu $(AGENT_SRC)/daemon/engines/vgpu-device-limits
	install -D -m 0644 -t $(DESTDIR)$(DBUS_DIR)/interfaces $(AGENT_XML)
	install -D -m 0644 -t $(DESTDIR)$(DBUS_DIR)/system.d $(AGENT_SRC)/dbus/org.mdev_vgpu.Host1.conf
	install -D -m 0644 -t $(DESTDIR)$(DBUS_DIR)/system-services \
		$(addprefix $(AGENT_SRC)/dbus/,org.mdev_vgpu.Host1.service org.mdev_vgpu.Meter1.service)
	install -D -m 0644 -t $(DESTDIR)$(POLKIT_DIR) $(AGENT_SRC)/dbus/org.mdev_vgpu.Host1.policy
	install -D -m 0644 $(AGENT_OUT)/vgpuctl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/vgpuctl
	install -D -m 0644 $(AGENT_OUT)/vgpuctl.zsh $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_vgpuctl
	install -D -m 0644 $(AGENT_OUT)/vgpuctl.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/vgpuctl.fish
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(AGENT_SRC)/vgpuctl/vgpuctl.1
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(AGENT_SRC)/daemon/vgpud.8 $(AGENT_SRC)/meter/vgpu-meter.8
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(addprefix $(AGENT_SRC)/daemon/,vgpu-schedule.conf.5 vgpu-tenants.conf.5)
