# SPDX-License-Identifier: MIT
# Unit tests: the device model in userspace under ASan and UBSan, and the programs that other fragments
# add to UNIT_TESTS. `make unit-build`, `make unit`; `make unit-coverage` shows what they reach.

UNIT_OUT ?= build/unit
UNIT_SRC := tests/unit/model
UNIT_SANITIZE ?= -fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_CFLAGS = -std=c11 -O1 -g -Wall -Wextra -Werror -fno-omit-frame-pointer $(UNIT_SANITIZE) \
	-Imdev-driver/model -I$(UNIT_SRC)
UNIT_GLIB_CFLAGS = $(shell pkg-config --cflags glib-2.0)
UNIT_GLIB_LIBS = $(shell pkg-config --libs glib-2.0)

UNIT_MODEL_OBJS := $(patsubst mdev-driver/model/%.c,$(UNIT_OUT)/obj/model/%.o, \
	$(wildcard mdev-driver/model/*.c))
UNIT_MODEL_TESTS := $(patsubst $(UNIT_SRC)/%.c,$(UNIT_OUT)/model/%,$(wildcard $(UNIT_SRC)/test_*.c))
UNIT_TESTS += $(UNIT_MODEL_TESTS)

.PHONY: unit-build unit unit-coverage
# A make of its own, because fragments that come later may still add to UNIT_TESTS, and to what those run (UNIT_NEEDS).
unit-build:
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(UNIT_TESTS) $(UNIT_NEEDS)

unit: unit-build
	prove -e '' $(UNIT_TESTS)

$(UNIT_OUT)/obj/model/%.o: mdev-driver/model/%.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -MMD -MP -c -o $@ $<

$(UNIT_OUT)/obj/test/%.o: $(UNIT_SRC)/%.c
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) $(UNIT_GLIB_CFLAGS) -MMD -MP -c -o $@ $<

$(UNIT_MODEL_TESTS): $(UNIT_OUT)/model/%: $(UNIT_OUT)/obj/test/%.o $(UNIT_OUT)/obj/test/fake_guest.o \
		$(UNIT_MODEL_OBJS)
	@mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -o $@ $^ $(UNIT_GLIB_LIBS)

# Lines of the model that its own tests run, with gcov.
unit-coverage:
	@rm -rf build/unit-coverage
	@$(MAKE) --no-print-directory unit UNIT_OUT=build/unit-coverage UNIT_SANITIZE=--coverage \
		UNIT_TESTS='$(UNIT_MODEL_TESTS:$(UNIT_OUT)/%=build/unit-coverage/%)'
	@gcov -b -n build/unit-coverage/obj/model/*.gcda

-include $(wildcard $(UNIT_OUT)/obj/model/*.d $(UNIT_OUT)/obj/test/*.d)

include tests/fuzz/fuzz.mk
