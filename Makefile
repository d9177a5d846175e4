# SPDX-License-Identifier: MIT
#
#   make			all programs, and the module for the running kernel
#   make install		them (DESTDIR, PREFIX), the module as DKMS source
#   make demo			the whole way, on a machine without a GPU (root)
#   make check			all tests, the same (root)
#   make soak			what takes hours: every fault, hundreds of rounds (root)
#
# What runs in the rig is built in the rig's Debian 13 tree; what this machine has does not matter to it.

VERSION := $(shell cat mdev-driver/VERSION)
PREFIX ?= /usr
RIG := tests/rig/rig
UNIT_TESTS :=

.DEFAULT_GOAL := all
.PHONY: all install clean check check-unit check-fuzz check-module

include mdev-driver/module.mk
include mdev-driver/registrar/registrar.mk
include mdev-driver/dkms/dkms.mk
include engine/engine.mk
include host-agent/host-agent.mk
include tests/unit/unit.mk
include tests/driver/driver-tests.mk
include tests/guest/guest.mk
-include tests/system/system.mk
include tests/bench/bench.mk
include tests/soak/soak.mk

all: module registrar engine host-agent

install: install-dkms install-registrar install-engine install-host-agent

# In order of cost. Each step is a TAP run of its own; all are run, and one that fails fails the whole.
check:
	tests/check

check-unit:
	$(RIG) build -- $(MAKE) unit check-guest

check-fuzz:
	$(RIG) build -- $(MAKE) fuzz

check-module:
	prove -v tests/module.t
	$(MAKE) --no-print-directory check-dkms KERNEL=6.12

clean:
	rm -rf build
