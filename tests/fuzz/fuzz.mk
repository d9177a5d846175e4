# SPDX-License-Identifier: MIT
# Fuzzing of the device model with libFuzzer (clang):
#
#	make fuzz-build
#	make fuzz SECONDS=600	each target so long; what it finds stays in build/fuzz/
#	make fuzz-keep		takes what reaches new code into tests/fuzz/corpus/, as little as does it
#	make fuzz-coverage	what the inputs in both places reach of the model, by gcov

FUZZ_CC ?= clang
FUZZ_OUT := build/fuzz
FUZZ_CFLAGS := -std=c11 -O1 -g -Wall -Wextra -Werror -fno-omit-frame-pointer \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Imdev-driver/model
FUZZ_PROGRAMS := $(patsubst tests/fuzz/fuzz_%.c,$(FUZZ_OUT)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MODEL := $(wildcard mdev-driver/model/*.c)
# Longer inputs say the same again, and the repository keeps them for ever.
FUZZ_KEPT_LEN := 160
# How long each program runs.
SECONDS ?= 20

.PHONY: fuzz-build fuzz fuzz-keep fuzz-coverage
fuzz-build: $(FUZZ_PROGRAMS)

fuzz: fuzz-build
	prove -v -e sh tests/fuzz/run.sh :: $(SECONDS) $(FUZZ_PROGRAMS)

fuzz-keep: fuzz-build
	for program in $(FUZZ_PROGRAMS) $(ENGINE_FUZZ) $(GUARD_FUZZ) $(AGENT_FUZZ) $(GOVERNOR_FUZZ); do \
		mkdir -p $$program.found && \
		$$program -set_cover_merge=1 -max_len=$(FUZZ_KEPT_LEN) \
			tests/fuzz/corpus/$$(basename $$program) $$program.found || exit 1; \
	done

$(FUZZ_PROGRAMS): $(FUZZ_OUT)/%: tests/fuzz/fuzz_%.c $(FUZZ_MODEL) $(wildcard tests/fuzz/*.h \
		mdev-driver/model/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -o $@ $< $(FUZZ_MODEL)

# The model's objects are shared by all programs, so that their counts add up.
fuzz-coverage:
	@rm -rf build/fuzz-coverage && mkdir -p build/fuzz-coverage
	@for source in $(FUZZ_MODEL); do \
		$(CC) -std=c11 -O0 -g --coverage -Imdev-driver/model -c $$source \
			-o build/fuzz-coverage/$$(basename $$source .c).o || exit 1; \
	done
	@for source in tests/fuzz/fuzz_*.c; do \
		name=$$(basename $$source .c); name=$${name#fuzz_}; \
		$(CC) -std=c11 -O0 -g -Imdev-driver/model --coverage -o build/fuzz-coverage/$$name $$source \
			tests/fuzz/replay.c build/fuzz-coverage/*.o || exit 1; \
		mkdir -p $(FUZZ_OUT)/$$name.found; \
		echo "$$name: $$(build/fuzz-coverage/$$name tests/fuzz/corpus/$$name $(FUZZ_OUT)/$$name.found)"; \
	done
	@gcov -b -n $(patsubst mdev-driver/model/%.c,build/fuzz-coverage/%.gcda,$(FUZZ_MODEL))

include tests/fuzz/agent/agent-fuzz.mk
