# SPDX-License-Identifier: MIT
# What takes too long for make check, in a rig of its own: every case of the kill matrix, and hundreds of
# vGPUs made, used and removed, counting what is left. ROUNDS=N makes it shorter or longer.

ROUNDS ?= 500

.PHONY: soak
soak:
	RIG_NAME=$${RIG_NAME:-soak} VGPU_SOAK=1 VGPU_ROUNDS=$(ROUNDS) \
		tests/system/check tests/system/90-kills.t tests/system/92-rounds.t
