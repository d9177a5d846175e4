# SPDX-License-Identifier: MIT
# Unit tests. tests/unit/FOLDER/test-NAME.c is built to build/unit/FOLDER/test-NAME, by the fragment of the tested code,
# which adds it to UNIT_TESTS, and tests that read a clock to UNIT_ALONE as well. UNIT_NEEDS is what tests run besides.
#
#	make unit [JOBS=2]	all but those of UNIT_ALONE, one after the other, or so many at a time
#	make unit-alone		those of UNIT_ALONE; nothing else should run meanwhile
#	make unit-pure		those of what asks nobody: a package's build runs them (packaging/debian/rules)

UNIT_OUT := build/unit
UNIT_SRC := tests/unit/model
UNIT_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_CFLAGS := -std=c11 -O1 -g -Wall -Wextra $(WERROR) -fno-omit-frame-pointer $(UNIT_SANITIZE) \
	-Imdev-driver/model -I$(UNIT_SRC)
UNIT_GLIB_CFLAGS = $(call once,UNIT_GLIB_CFLAGS,pkg-config --cflags glib-2.0)
UNIT_GLIB_LIBS = $(call once,UNIT_GLIB_LIBS,pkg-config --libs glib-2.0)

UNIT_MODEL_OBJS := $(patsubst mdev-driver/model/%.c,$(UNIT_OUT)/obj/model/%.o, \
	$(wildcard mdev-driver/model/*.c))
UNIT_MODEL_TESTS := $(patsubst tests/%.c,build/%,$(wildcard $(UNIT_SRC)/test-*.c))
UNIT_TESTS += $(UNIT_MODEL_TESTS) tests/unit/circles.t tests/unit/format.t tests/unit/layers.t

# A failed GLib test says "Bail out!", which prove takes for an order to run no other test: that line is filtered.
UNIT_PROVE := tests/prove --timer -e tests/unit/run

.PHONY: unit unit-alone unit-pure
unit: unit-build
	$(UNIT_PROVE) -j$(JOBS) $(filter-out $(UNIT_ALONE),$(UNIT_TESTS))

unit-alone: unit-build
	$(UNIT_PROVE) $(UNIT_ALONE)

unit-pure: $(UNIT_MODEL_TESTS) $(REGISTRAR_TESTS) $(FLEET_UNIT) $(KUBE_UNIT)
	$(UNIT_PROVE) $^

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

-include $(wildcard $(UNIT_OUT)/obj/model/*.d $(UNIT_OUT)/obj/test/*.d)

include tests/fuzz/fuzz.mk

include tests/coverage/coverage.mk
