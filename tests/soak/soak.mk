# SPDX-License-Identifier: MIT
# Tests that take too long for make check, in rigs of their own: every case of the kill matrix, hundreds of vGPUs made,
# used and removed while counting what is left, vgpud killed at hundreds of random moments, render workers at a hundred,
# the driver on Debian's own kernels, and the packages on a working host. ROUNDS=N, KILLS=N, WORKER_KILLS=N and
# FUZZ_SECONDS=N (for each fuzzer) make it shorter or longer.

ROUNDS ?= 500
KILLS ?= 200
WORKER_KILLS ?= 100
FUZZ_SECONDS ?= 1200

.PHONY: soak
soak:
	RIG_NAME=$${RIG_NAME:-soak} VGPU_SOAK=1 VGPU_ROUNDS=$(ROUNDS) VGPU_KILLS=$(KILLS) \
		tests/system/check tests/system/92-rounds.t tests/system/95-agent-kills.t tests/system/90-kills.t
	$(MAKE) --no-print-directory check-driver KERNELS="6.12 6.1 backports" DRIVER_FLAGS="--seed random"
	tests/fleet/check --sid
	tests/fleet/check tests/fleet/t-ledger :: -n 20000
	tests/fleet/check tests/fleet/long-kills :: -n $(KILLS)
	tests/fleet/check tests/fleet/long-chunks :: --chunks 1000 --kills 100
	$(MAKE) --no-print-directory check-deb check-upgrade
	$(RIG) build -- $(MAKE) --no-print-directory -j2 unit-build
	$(RIG) build -- env KILLS=$(WORKER_KILLS) tests/prove -v -e '' build/unit/engine/live-lost tests/guard/kills.t
	$(RIG) build -- $(MAKE) --no-print-directory -j2 fuzz-long SECONDS=$(FUZZ_SECONDS) JOBS=2
