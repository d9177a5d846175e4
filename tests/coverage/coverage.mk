# SPDX-License-Identifier: MIT
# make coverage [LOWEST=20]: which of our lines the unit tests, the guard's live tests and the fuzzers' kept inputs
# cover: a table by folder, and the files with the lowest coverage. In the rig's tree.

LOWEST ?= 20

.PHONY: coverage fuzz-replay
coverage:
	$(RIG) build -- tests/coverage/run $(LOWEST)

# For run: fuzzers that were built with replay.c instead of libFuzzer.
fuzz-replay: $(FUZZ_TESTS)
	for program in $^; do $$program $$(tests/fuzz/inputs unpack $$(basename $$program)) || exit 1; done
