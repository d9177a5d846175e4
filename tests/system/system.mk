# SPDX-License-Identifier: MIT
# Whole guests in the rig: the demo, and the tests (check-system). Both build what they need by
# themselves, in the rig's Debian tree.

.PHONY: demo host check-system

include tests/system/sandbox/sandbox.mk

UNIT_TESTS += tests/system/lib/judgement.t tests/system/lib/check.t

demo:
	tests/system/demo

host:
	tests/system/demo host

check-system:
	tests/system/check
