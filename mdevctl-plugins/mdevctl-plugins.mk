# SPDX-License-Identifier: MIT
# mdev-vgpu, mdevctl's callout: build/mdevctl-plugins/mdev-vgpu. Its unit tests are in AGENT_TESTS_DIRS, because they
# run it against vgpud. Included by the top Makefile after host-agent.mk, whose flags and parts it uses.

CALLOUT_SRC := mdevctl-plugins
CALLOUT_OUT := build/mdevctl-plugins
CALLOUT_WARN := -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# mdevctl looks only there, whatever the prefix.
CALLOUT_DIR := /usr/lib/mdevctl/scripts.d/callouts
CALLOUT_SOURCES := $(wildcard $(CALLOUT_SRC)/*.c)
# The parts that it uses of model/ and lib/: vGPUs, types, tenants and errors, as in the agent and the registrar.
CALLOUT_MODEL := $(addprefix $(AGENT_SRC)/model/,slice.c slice_keys.c)
CALLOUT_LIB := $(addprefix $(LIB_SRC)/,vgpu.c mdev.c input.c json.c gpu_name.c gpus.c host_root.c bus.c control.c conf.c types.c tenants_conf.c cards.c gpu_identity.c pci.c nvidia_readings.c)
CALLOUT_PKGS := gio-unix-2.0 json-glib-1.0
CALLOUT_PKG_CFLAGS = $(call once,CALLOUT_PKG_CFLAGS,pkg-config --cflags $(CALLOUT_PKGS))
CALLOUT_PKG_LIBS = $(call once,CALLOUT_PKG_LIBS,pkg-config --libs $(CALLOUT_PKGS))

.PHONY: mdevctl-plugins install-mdevctl-plugins
mdevctl-plugins: $(CALLOUT_OUT)/mdev-vgpu

$(CALLOUT_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O2 $(HARDEN_CFLAGS) $(AGENT_CFLAGS) $(CALLOUT_WARN) $(CPPFLAGS) $(CFLAGS) $(CALLOUT_PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(CALLOUT_OUT)/test-obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O1 $(AGENT_SANITIZE) $(AGENT_CFLAGS) $(CALLOUT_WARN) $(CALLOUT_PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(CALLOUT_OUT)/mdev-vgpu: $(patsubst %.c,$(CALLOUT_OUT)/obj/%.o,$(CALLOUT_SOURCES) $(CALLOUT_MODEL)) $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(CALLOUT_PKG_LIBS)

# The same under the sanitizers, and with a driver that notes its calls; the tree's mdevctl runs it.
$(CALLOUT_OUT)/test/mdev-vgpu: $(patsubst %.c,$(CALLOUT_OUT)/test-obj/%.o,$(CALLOUT_SOURCES) $(CALLOUT_MODEL) $(CALLOUT_LIB) \
		tests/unit/mdevctl-plugins/noted_call.c)
	@mkdir -p $(@D)
	$(CC) $(AGENT_SANITIZE) -o $@ $^ $(LDFLAGS) $(CALLOUT_PKG_LIBS)

UNIT_TESTS += tests/unit/mdevctl-plugins/upgrade.t

build/unit/mdevctl-plugins/test-mdevctl: | $(CALLOUT_OUT)/test/mdev-vgpu

-include $(shell find $(CALLOUT_OUT) -name '*.d' 2>/dev/null)

install-mdevctl-plugins: mdevctl-plugins
	install -D -m 0755 $(CALLOUT_OUT)/mdev-vgpu $(DESTDIR)$(CALLOUT_DIR)/mdev-vgpu
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(CALLOUT_SRC)/mdev-vgpu.8
