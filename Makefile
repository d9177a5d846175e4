# SPDX-License-Identifier: MIT
#
#   make			all programs, and the module for the running kernel
#   make cockpit		the page of Cockpit, by npm's packages; make install-cockpit
#   make install		them (DESTDIR; PREFIX: /usr or /usr/local), the module as DKMS source
#   make deb			Debian packages of all of it, in build/deb/ (root)
#   make try			a shell with a GPU host of its own, with a GPU in software (Debian 13)
#   make demo			a GPU shared by two VMs, on a machine without a GPU (root)
#   make host			the demo's virtual GPU host, with a shell in it (root)
#   make check			the gate: the same tests each time (root)
#   make check-fleet		our vGPUs under Slurm: real daemons on this machine (root)
#   make check-kubernetes	our vGPUs under Kubernetes: with a fake kubelet, API and vgpud (root)
#   make check-all SHARD=1	everything except tests that take hours, in six shards (root)
#   make check-changed BASE=…	the tests beyond the gate that changes since a commit require (root)
#   make check-turn MINUTES=30	the part of what is beyond the gate whose turn it is today (root)
#   make format		user space's C files in the form of .clang-format, by the Debian tree's clang-format (root)
#   make which FILE=…		the tests that a change of a file requires
#   make card			measures the GPU of this machine, with the programs built here
#   make conformance		other projects' test programs in VMs and containers (root)
#   make soak			tests that take hours: every fault, hundreds of rounds (root)
#
# Programs for the rig are built in the rig's Debian 13 tree, whatever this machine has installed.

VERSION := $(shell cat mdev-driver/VERSION)
PREFIX ?= /usr
# Fixed paths: D-Bus and polkit read their files only there.
DBUS_DIR ?= /usr/share/dbus-1
POLKIT_DIR ?= /usr/share/polkit-1/actions
RIG := tests/rig/rig
UNIT_TESTS :=
# A warning is an error for those who develop this. Packagers, whose compiler is another one, export WERROR empty.
WERROR ?= -Werror
# Of every program that is installed. CPPFLAGS, CFLAGS and LDFLAGS are a packager's, and come after.
HARDEN_CFLAGS := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
HARDEN_LDFLAGS := -pie -Wl,-z,relro,-z,now

# What goals that compile here, and not in the rig's tree, need: NEED_GOAL, if a fragment says so, or all of it.
NATIVE := all registrar engine host-agent mdevctl-plugins qemu-hooks container-hooks governor card-programs card try cuda unit \
	unit-alone $(addprefix check-,cuda engine governor guard registrar run vulkan-layer)
NEEDED = $(sort $(foreach goal,$(or $(MAKECMDGOALS),all),$(or $(NEED_$(goal)),cc glslangValidator $(AGENT_PKGS) $(CARD_PKGS) \
	$(ENGINE_PKGS) $(LIB_PKGS) smartcols)))
lacking = $(if $(shell packaging/need $(NEEDED)),$(error $(shell packaging/need $(NEEDED))))
# NAME = $(call once,NAME,COMMAND): what COMMAND prints, run when NAME is first used, and once.
once = $(eval $(1) := $(shell $(2) 2>/dev/null))$(if $(filter-out 0,$(.SHELLSTATUS)),$(lacking))$($(1))

# $(call install_unit,FILE…,DIR): units and rules, which name programs of ours by /usr.
install_unit = install -d -m 0755 $(DESTDIR)$(strip $(2)) && for file in $(1); do \
	sed -E 's,/usr/(s?bin/vgpu|lib/mdev-vgpu/),$(PREFIX)/\1,g' $$file >$(DESTDIR)$(strip $(2))/$${file\#\#*/} && \
	chmod 0644 $(DESTDIR)$(strip $(2))/$${file\#\#*/} || exit 1; done

.DEFAULT_GOAL := all
.PHONY: all install clean check check-unit check-fuzz check-module

include mdev-driver/module.mk
include lib/lib.mk
include mdev-driver/registrar/registrar.mk
include mdev-driver/dkms/dkms.mk
include engine/engine.mk
include host-agent/host-agent.mk
include mdevctl-plugins/mdevctl-plugins.mk
include cockpit/cockpit.mk
include qemu-hooks/qemu-hooks.mk
include container-hooks/container-hooks.mk
include governor/governor.mk
include fleet/fleet.mk
include fleet/kubernetes/kubernetes.mk
include tests/unit/unit.mk
include tests/driver/driver-tests.mk
include tests/guest/guest.mk
include tests/run/run.mk
-include tests/system/system.mk
include packaging/packaging.mk
include tests/bench/bench.mk
include card/card.mk
include tests/conformance/conformance.mk
include tests/page/page.mk
include tests/soak/soak.mk
include tests/tests.mk

# Asked before anything is compiled.
$(if $(filter $(NATIVE),$(or $(MAKECMDGOALS),all)),$(lacking))

all: module registrar engine host-agent mdevctl-plugins qemu-hooks container-hooks governor card-programs $(FLEET_ALL) $(KUBE_ALL)

install: install-dkms install-registrar install-engine install-host-agent install-mdevctl-plugins install-qemu-hooks \
    install-container-hooks install-governor install-card

# tests/README.md says what is in them. check-unit and its like are for one layer alone.
.PHONY: check-all check-changed check-turn which check-rig
check:
	tests/check gate

check-all:
	tests/check all $(SHARD)

check-changed:
	tests/check changed $(or $(BASE),$(error BASE=COMMIT is missing)) $(addprefix --minutes ,$(MINUTES))

check-turn:
	tests/check turn $(or $(MINUTES),$(error MINUTES=N is missing))

which:
	@tests/check which $(or $(FILE),$(error FILE=PATH is missing))

check-unit check-fuzz check-module check-rig check-page: check-%:
	tests/check only $*

clean:
	rm -rf build
