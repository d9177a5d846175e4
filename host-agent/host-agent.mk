# SPDX-License-Identifier: MIT
# vgpud and vgpuctl: build/host-agent/, their unit tests, their installation. Included by the top Makefile,
# which sets VERSION and PREFIX.

AGENT_SRC := host-agent
AGENT_OUT := build/host-agent
AGENT_TESTS := tests/unit/host-agent
AGENT_XML := $(AGENT_SRC)/dbus/org.mdev_vgpu.Host1.xml
AGENT_CFLAGS := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -I$(AGENT_SRC)/inventory \
	-I$(AGENT_SRC)/dbus -I$(AGENT_SRC)/vgpud -I$(AGENT_SRC)/doctor -Imdev-driver/registrar -I$(AGENT_OUT) \
	-DVGPU_VERSION='"$(VERSION)"'
# Expanded when used, so that targets that don't need them work without them.
AGENT_PKGS := gio-unix-2.0 libpci libudev json-glib-1.0
AGENT_PKG_CFLAGS = $(shell pkg-config --cflags $(AGENT_PKGS))
AGENT_PKG_LIBS = $(shell pkg-config --libs $(AGENT_PKGS))
AGENT_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

# How much memory a GPU has is found where its types are made.
AGENT_SHARED := $(addprefix mdev-driver/registrar/,conf.c units.c hardware.c)
AGENT_INVENTORY := $(wildcard $(AGENT_SRC)/inventory/*.c) $(AGENT_SHARED)
AGENT_HEADERS := $(wildcard $(AGENT_SRC)/*/*.h mdev-driver/registrar/*.h)
VGPUD_SOURCES := $(wildcard $(AGENT_SRC)/vgpud/*.c) $(AGENT_INVENTORY)
VGPUCTL_SOURCES := $(wildcard $(AGENT_SRC)/vgpuctl/*.c $(AGENT_SRC)/doctor/*.c) $(AGENT_INVENTORY)

UNIT_TESTS += $(addprefix $(AGENT_OUT)/test-,inventory doctor bus) $(AGENT_TESTS)/completion.t

.PHONY: host-agent install-host-agent
host-agent: $(AGENT_OUT)/vgpud $(AGENT_OUT)/vgpuctl

# Generated code is not held to our warnings.
$(AGENT_OUT)/vgpu-host.c $(AGENT_OUT)/vgpu-host.h &: $(AGENT_XML)
	@mkdir -p $(AGENT_OUT)
	gdbus-codegen --interface-prefix org.mdev_vgpu.Host1. --c-namespace Vgpu \
		--c-generate-object-manager --c-generate-autocleanup all \
		--generate-c-code $(AGENT_OUT)/vgpu-host $<

$(AGENT_OUT)/vgpu-host.o: $(AGENT_OUT)/vgpu-host.c
	$(CC) -std=gnu11 -O2 -g -I. $(AGENT_PKG_CFLAGS) -c -o $@ $<

$(AGENT_OUT)/vgpud: $(VGPUD_SOURCES) $(AGENT_OUT)/vgpu-host.o $(AGENT_HEADERS)
	$(CC) -O2 $(AGENT_CFLAGS) $(AGENT_PKG_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(AGENT_PKG_LIBS)

$(AGENT_OUT)/vgpuctl: $(VGPUCTL_SOURCES) $(AGENT_OUT)/vgpu-host.o $(AGENT_HEADERS)
	$(CC) -O2 $(AGENT_CFLAGS) $(AGENT_PKG_CFLAGS) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(AGENT_PKG_LIBS)

AGENT_TEST_PARTS := $(AGENT_TESTS)/recorded_host.c tests/unit/file_tree.c
AGENT_TEST_HEADERS := $(wildcard $(AGENT_TESTS)/*.h tests/unit/*.h) $(AGENT_HEADERS)
AGENT_TEST_CC = $(CC) -O1 $(AGENT_SANITIZE) $(AGENT_CFLAGS) $(AGENT_PKG_CFLAGS) -Itests/unit \
	-I$(AGENT_TESTS) -DHOSTS='"$(CURDIR)/$(AGENT_TESTS)/hosts"' -DAGENT_OUT='"$(CURDIR)/$(AGENT_OUT)"'

$(AGENT_OUT)/test-inventory: $(AGENT_TESTS)/test-inventory.c $(AGENT_TEST_PARTS) $(AGENT_INVENTORY) \
		$(AGENT_TEST_HEADERS)
	@mkdir -p $(AGENT_OUT)
	$(AGENT_TEST_CC) -o $@ $(filter %.c,$^) $(LDFLAGS) $(AGENT_PKG_LIBS)

$(AGENT_OUT)/test-doctor: $(AGENT_TESTS)/test-doctor.c $(AGENT_TEST_PARTS) $(AGENT_INVENTORY) \
		$(wildcard $(AGENT_SRC)/doctor/*.c) $(AGENT_TEST_HEADERS)
	@mkdir -p $(AGENT_OUT)
	$(AGENT_TEST_CC) -o $@ $(filter %.c,$^) $(LDFLAGS) $(AGENT_PKG_LIBS)

# The service in the test's own process, under the sanitizers; vgpuctl as it is installed.
$(AGENT_OUT)/test-bus: $(AGENT_TESTS)/test-bus.c $(AGENT_TEST_PARTS) $(AGENT_INVENTORY) \
		$(addprefix $(AGENT_SRC)/vgpud/,host.c gpu_object.c lists.c) $(AGENT_OUT)/vgpu-host.o \
		$(AGENT_TEST_HEADERS) $(AGENT_OUT)/vgpuctl
	$(AGENT_TEST_CC) -o $@ $(filter %.c %.o,$^) $(LDFLAGS) $(AGENT_PKG_LIBS)

$(AGENT_TESTS)/completion.t: $(AGENT_OUT)/vgpuctl

install-host-agent: host-agent
	install -D -m 0755 $(AGENT_OUT)/vgpud $(DESTDIR)$(PREFIX)/sbin/vgpud
	install -D -m 0755 $(AGENT_OUT)/vgpuctl $(DESTDIR)$(PREFIX)/bin/vgpuctl
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system $(AGENT_SRC)/systemd/vgpud.service
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/dbus-1/interfaces $(AGENT_XML)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/dbus-1/system.d $(AGENT_SRC)/dbus/org.mdev_vgpu.Host1.conf
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/dbus-1/system-services \
		$(AGENT_SRC)/dbus/org.mdev_vgpu.Host1.service
	install -D -m 0644 $(AGENT_SRC)/vgpuctl/vgpuctl.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/vgpuctl
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(AGENT_SRC)/vgpuctl/vgpuctl.1
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(AGENT_SRC)/vgpud/vgpud.8
