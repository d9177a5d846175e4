# SPDX-License-Identifier: MIT
# make tests-build [KVER=…]: builds all that any step of the tests runs, in one make and so as parallel as -j
# allows; to be called inside the rig's tree. The steps after it only run. This is the last fragment, because it
# uses names of the others.

.PHONY: format
format:
	$(RIG) build -- tests/format --write

# How many tests run at a time; one processor is left for other work.
JOBS ?= 1

.PHONY: tests-build unit-build
unit-build: $(UNIT_TESTS) $(UNIT_NEEDS)

tests-build: all unit-build cuda-tests fuzz-build driver-tests-build guest sandbox-probe guard-programs bench-governor-programs
