# SPDX-License-Identifier: MIT
# The driver tests. They are built in the Debian 13 tree and run in L1 (tests/rig/):
#
#   make driver-tests-build		build/driver-tests/, to be called inside the tree
#   make driver-tests-holder KVER=…  the tests' own module, for one kernel
#   make check-driver [KERNELS="6.12-debug 6.1"] [TESTS="t-queue t-reset"] [DRIVER_FLAGS="--jobs 2 --seed random"]
#
# One kernel after the other. KERNEL= of the command line or the environment selects a single one. make exits with 2 for
# every failure: its output has the cause. tests/driver/check-driver itself exits with 75 if the rig failed.

DRIVER_TESTS_SRC := tests/driver
DRIVER_TESTS_OUT := build/driver-tests
KERNELS ?= $(or $(KERNEL),6.12)
TESTS ?=
DRIVER_FLAGS ?=

DRIVER_TESTS_LIB := $(patsubst $(DRIVER_TESTS_SRC)/lib/%.c,$(DRIVER_TESTS_OUT)/lib/%.o,\
	$(wildcard $(DRIVER_TESTS_SRC)/lib/*.c))
DRIVER_TESTS_PROGRAMS := $(patsubst $(DRIVER_TESTS_SRC)/%.c,$(DRIVER_TESTS_OUT)/%,\
	$(wildcard $(DRIVER_TESTS_SRC)/t-*.c $(DRIVER_TESTS_SRC)/long-*.c))
# t-real-engine uses the real one.
DRIVER_TESTS_ENGINE := $(DRIVER_TESTS_OUT)/vgpu-engine

DRIVER_TESTS_CFLAGS = -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra $(WERROR) -pthread \
	-I$(DRIVER_TESTS_SRC)/lib -Imdev-driver/uapi $(shell pkg-config --cflags glib-2.0)
DRIVER_TESTS_LIBS = $(shell pkg-config --libs glib-2.0)

# The tests' own module, for the kernel KVER.
DRIVER_TESTS_HOLDER := $(DRIVER_TESTS_OUT)/holder-$(KVER)

.PHONY: driver-tests-build driver-tests-holder check-driver
driver-tests-build: $(DRIVER_TESTS_PROGRAMS) $(DRIVER_TESTS_ENGINE)

driver-tests-holder: $(DRIVER_TESTS_HOLDER)/mm_holder.ko

$(DRIVER_TESTS_HOLDER)/mm_holder.ko: $(wildcard $(DRIVER_TESTS_SRC)/holder/*) \
		mdev-driver/compat.h
	@mkdir -p $(@D)
	cp $^ $(@D)
	$(MAKE) -C $(KERNEL_BUILD) M=$(abspath $(@D)) modules

$(DRIVER_TESTS_ENGINE): build/engine/vgpu-engine
	install -D -m 755 $< $@

$(DRIVER_TESTS_OUT)/%.o: $(DRIVER_TESTS_SRC)/%.c $(wildcard $(DRIVER_TESTS_SRC)/lib/*.h) \
		mdev-driver/uapi/linux/vgpu.h
	@mkdir -p $(@D)
	$(CC) $(DRIVER_TESTS_CFLAGS) -c -o $@ $<

$(DRIVER_TESTS_PROGRAMS): $(DRIVER_TESTS_OUT)/%: $(DRIVER_TESTS_OUT)/%.o $(DRIVER_TESTS_LIB)
	$(CC) $(LDFLAGS) -pthread -o $@ $^ $(DRIVER_TESTS_LIBS)

.SECONDARY: $(DRIVER_TESTS_PROGRAMS:=.o) $(DRIVER_TESTS_LIB)

check-driver:
	@status=0; for kernel in $(KERNELS); do \
		echo "# driver tests on $$kernel"; \
		$(DRIVER_TESTS_SRC)/check-driver --kernel $$kernel $(DRIVER_FLAGS) $(TESTS); \
		this=$$?; [ $$this = 0 ] || [ $$status = 1 ] || status=$$this; \
	done; \
	exit $$status
