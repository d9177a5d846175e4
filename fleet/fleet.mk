# SPDX-License-Identifier: MIT
# Our vGPUs in a cluster: build/fleet/. Built where libslurm-dev is installed, which a host without Slurm does not have:
# in the rig that is tests/fleet/enter. Included by the top Makefile.
#
#	make fleet		the plugins of Slurm, and vgpu-slurm
#	make check-fleet	real slurmctld and slurmds on this machine (root); at most 4 minutes

FLEET_SRC := fleet
FLEET_OUT := build/fleet
FLEET_TESTS := tests/fleet
FLEET_WARN := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra $(WERROR) -I.
FLEET_CFLAGS := -O2 $(HARDEN_CFLAGS) $(FLEET_WARN)

FLEET_REQUEST := $(wildcard $(FLEET_SRC)/request/*.c)
FLEET_SUBMIT := $(FLEET_SRC)/slurm/submit/job_submit_vgpu.c $(FLEET_REQUEST)
FLEET_SPANK := $(FLEET_SRC)/slurm/spank/spank_vgpu.c $(FLEET_SRC)/slurm/node/job_file.c \
	$(addprefix $(FLEET_SRC)/request/,parse.c words.c)

fleet_objects = $(patsubst %.c,$(FLEET_OUT)/obj/%.o,$(1))

# Of `make all`: a host without Slurm has no headers of it.
FLEET_ALL := $(if $(wildcard /usr/include/slurm/spank.h),fleet)

.PHONY: fleet fleet-tests check-fleet
fleet: $(FLEET_OUT)/job_submit_vgpu.so $(FLEET_OUT)/spank_vgpu.so $(FLEET_OUT)/vgpu-slurm
fleet-tests: fleet $(addprefix $(FLEET_OUT)/tests/,witness ledger submit_cost vgpu-slurm replay allocate)

check-fleet:
	$(FLEET_TESTS)/check

# The functions that Slurm looks for are in the plugins' own files; two plugins must not take each other's others.
$(call fleet_objects,$(FLEET_REQUEST) $(FLEET_SRC)/slurm/node/job_file.c): FLEET_HIDE := -fvisibility=hidden

$(FLEET_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FLEET_CFLAGS) $(FLEET_HIDE) -fPIC $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

FLEET_PLUGIN_LD := -shared -Wl,-z,relro,-z,now

$(FLEET_OUT)/job_submit_vgpu.so: $(call fleet_objects,$(FLEET_SUBMIT))
	$(CC) $(CFLAGS) $(FLEET_PLUGIN_LD) -o $@ $^ $(LDFLAGS)

$(FLEET_OUT)/spank_vgpu.so: $(call fleet_objects,$(FLEET_SPANK))
	$(CC) $(CFLAGS) $(FLEET_PLUGIN_LD) -o $@ $^ $(LDFLAGS)

# vgpu-slurm; with the real vgpud, or for tests with a fake one.
FLEET_AGENT := $(addprefix $(FLEET_SRC)/slurm/node/,agent.c agent_watch.c) $(FLEET_SRC)/guard_sockets.c
FLEET_NODE := $(filter-out $(FLEET_AGENT),$(wildcard $(FLEET_SRC)/slurm/node/*.c)) $(FLEET_REQUEST)
FLEET_NODE_PKG_CFLAGS = $(call once,FLEET_NODE_PKG_CFLAGS,pkg-config --cflags gio-2.0)
FLEET_NODE_PKG_LIBS = $(call once,FLEET_NODE_PKG_LIBS,pkg-config --libs gio-2.0)

$(FLEET_OUT)/node/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FLEET_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(FLEET_NODE_PKG_CFLAGS) -DVGPU_VERSION='"$(VERSION)"' -MMD -MP -c -o $@ $<

$(FLEET_OUT)/vgpu-slurm: $(patsubst %.c,$(FLEET_OUT)/node/%.o,$(FLEET_NODE) $(FLEET_AGENT)) $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(FLEET_NODE_PKG_LIBS) -lslurm

$(FLEET_OUT)/tests/vgpu-slurm: $(patsubst %.c,$(FLEET_OUT)/node/%.o,$(FLEET_NODE) $(FLEET_TESTS)/fake_agent.c) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(FLEET_NODE_PKG_LIBS) -lslurm

# Unit tests need no Slurm.
FLEET_UNIT := $(patsubst tests/%.c,build/%,$(wildcard tests/unit/fleet/test-*.c))
FLEET_UNIT_PARTS := $(FLEET_REQUEST) $(addprefix $(FLEET_SRC)/slurm/node/,job_file.c detail.c)
UNIT_TESTS += $(FLEET_UNIT)

build/unit/fleet/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O1 $(FLEET_WARN) -fsanitize=address,undefined -fno-sanitize-recover=all $(UNIT_GLIB_CFLAGS) -MMD -MP -c -o $@ $<

$(FLEET_UNIT): build/unit/fleet/%: build/unit/fleet/obj/tests/unit/fleet/%.o \
		$(patsubst %.c,build/unit/fleet/obj/%.o,$(FLEET_UNIT_PARTS))
	$(CC) -fsanitize=address,undefined -o $@ $^ $(UNIT_GLIB_LIBS)

# The witness and its like use the public API alone, and nothing of ours.
$(FLEET_OUT)/tests/%: $(FLEET_TESTS)/%.c
	@mkdir -p $(@D)
	$(CC) -O2 $(FLEET_WARN) -o $@ $< -lslurm

# Of tests/bench/fleet, too.
$(FLEET_OUT)/tests/replay $(FLEET_OUT)/tests/allocate: $(FLEET_OUT)/tests/%: tests/bench/fleet/%.c
	@mkdir -p $(@D)
	$(CC) -O2 $(FLEET_WARN) -o $@ $< -lslurm

-include $(shell find $(FLEET_OUT)/obj $(FLEET_OUT)/node build/unit/fleet/obj -name '*.d' 2>/dev/null)

# By itself, because only the hosts of a cluster need it.
.PHONY: install-fleet
install-fleet: fleet
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/sbin $(FLEET_OUT)/vgpu-slurm
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu/slurm $(FLEET_OUT)/job_submit_vgpu.so $(FLEET_OUT)/spank_vgpu.so
	for name in prolog epilog health pressure; do \
		sed 's,/usr/,$(PREFIX)/,' $(FLEET_SRC)/slurm/conf/$$name >$(DESTDIR)$(PREFIX)/lib/mdev-vgpu/slurm/$$name && \
		chmod 0755 $(DESTDIR)$(PREFIX)/lib/mdev-vgpu/slurm/$$name || exit 1; done
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/doc/mdev-vgpu/examples $(addprefix $(FLEET_SRC)/slurm/conf/,checkpoint.sh chunk.sh)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(FLEET_SRC)/slurm/conf/vgpu-slurm.8
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(FLEET_SRC)/slurm/conf/vgpu.conf.5
