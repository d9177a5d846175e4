# SPDX-License-Identifier: MIT
# make coverage [LOWEST=20]: which lines of ours the unit tests, the guard's live tests and the fuzzers' kept inputs reach: a
# table by folder, and the files of which they reach least. In the rig's tree.

LOWEST ?= 20

.PHONY: coverage fuzz-replay
coverage:
	$(RIG) build -- tests/coverage/run $(LOWEST)

# For run: fuzzers that were built with replay.c in libFuzzer's place.
fuzz-replay: $(FUZZ_TESTS)
	for program in $^; do $$program tests/fuzz/corpus/$$(basename $$program) || exit 1; done
