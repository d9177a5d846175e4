# SPDX-License-Identifier: MIT
# Fuzzing of the device model with libFuzzer (clang): `make fuzz-build`, `make fuzz SECONDS=600`.

FUZZ_CC ?= clang
FUZZ_OUT := build/fuzz
FUZZ_CFLAGS := -std=c11 -O1 -g -Wall -Wextra -Werror -fno-omit-frame-pointer \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Imdev-driver/model
FUZZ_PROGRAMS := $(patsubst tests/fuzz/fuzz_%.c,$(FUZZ_OUT)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MODEL := $(wildcard mdev-driver/model/*.c)
# How long each program runs.
SECONDS ?= 20

.PHONY: fuzz-build fuzz
fuzz-build: $(FUZZ_PROGRAMS)

fuzz: fuzz-build
	prove -v -e sh tests/fuzz/run.sh :: $(SECONDS) $(FUZZ_PROGRAMS)

$(FUZZ_PROGRAMS): $(FUZZ_OUT)/%: tests/fuzz/fuzz_%.c $(FUZZ_MODEL) $(wildcard tests/fuzz/*.h \
		mdev-driver/model/*.h)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) -o $@ $< $(FUZZ_MODEL)
