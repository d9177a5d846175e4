# SPDX-License-Identifier: MIT
# The governor's CUDA door: build/governor/cuda/libcuda.so.1, and libnvidia-ml.so.1 beside it. Included by
# governor.mk, whose libvgpu-member they need. They need NVIDIA's libraries by absolute path; the tests' variants have a
# fake driver there.

CUDA_SRC := governor/cuda
CUDA_OUT := build/governor/cuda
# Where the driver's own libraries are, and ours.
CUDA_REAL_DIR = $(PREFIX)/lib/mdev-vgpu/real
CUDA_DIR = $(PREFIX)/lib/mdev-vgpu/cuda
# On a host the first is a link to this, where vgpud makes links to the driver that it finds.
CUDA_REAL_LINKS := /run/vgpu/nvidia
CUDA_WARN := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes -Wmissing-prototypes
CUDA_INCLUDES := $(addprefix -I$(CUDA_SRC)/,. abi memory time nvml) $(addprefix -Igovernor/,lane member protocol core)
# These libraries print nothing, and none of their code runs when they are loaded.
CUDA_CFLAGS := $(CUDA_WARN) $(GOVERNOR_OLD_LIBC) -O2 -fPIC -fno-plt -fvisibility=hidden -fno-omit-frame-pointer
CUDA_LDFLAGS := -shared -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,--no-as-needed
CUDA_SRCS := $(wildcard $(CUDA_SRC)/*.c $(CUDA_SRC)/memory/*.c $(CUDA_SRC)/time/*.c) $(GOVERNOR_LANE)
CUDA_SRCS := $(filter-out %/gen-stubs.c %/gen-fronts.c %/entry_table.c,$(CUDA_SRCS))
# What keeps threads out of the driver is in the door itself: each call passes it.
CUDA_SRCS += $(addprefix governor/member/,gate.c futex.c)
CUDA_NVML_SRCS := $(wildcard $(CUDA_SRC)/nvml/*.c) $(addprefix $(CUDA_SRC)/,entries.c real.c slices.c view.c)
CUDA_NAMES := $(addprefix tests/cuda/names/,cudarc.txt hipify.txt nvcuda.txt)
CUDA_NVML_NAMES := tests/cuda/names/nvml.txt

.PHONY: cuda-door install-cuda-door
governor: cuda-door
install-governor: install-cuda-door
cuda-door: $(CUDA_OUT)/libcuda.so.1 $(CUDA_OUT)/libnvidia-ml.so.1

$(CUDA_OUT)/gen-stubs: $(addprefix $(CUDA_SRC)/,gen-stubs.c entry_table.c entry_table.h)
	@mkdir -p $(@D)
	$(CC) $(CUDA_WARN) -O1 -o $@ $(filter %.c,$^)

$(CUDA_OUT)/gen-fronts: $(addprefix $(CUDA_SRC)/,gen-fronts.c entry_table.c entry_table.h)
	@mkdir -p $(@D)
	$(CC) $(CUDA_WARN) -O1 -o $@ $(filter %.c,$^)

# All at once. A name that the table lacks is an error, and so is one of which it is not said what it does while memory is
# displaced.
$(CUDA_OUT)/cuda/made: $(CUDA_OUT)/gen-stubs $(CUDA_OUT)/gen-fronts $(CUDA_SRC)/entry_points.def $(CUDA_SRC)/argument_types.def \
		$(CUDA_SRC)/away.def $(CUDA_NAMES)
	@mkdir -p $(@D)
	$< $(filter-out %/away.def,$(filter %.def,$^)) $(addprefix --names ,$(CUDA_NAMES)) --stubs $(@D)/stubs.S --header $(@D)/wrappers.h \
		--entries $(@D)/entries.inc --prototypes $(@D)/prototypes.inc --moves $(@D)/moves.inc --closes $(@D)/closes.inc \
		--calls $(@D)/calls.inc --outputs $(@D)/outputs.inc
	$(CUDA_OUT)/gen-fronts $(filter %.def,$^) --fronts $(@D)/fronts.inc --list $(@D)/away.inc
	@touch $@

$(CUDA_OUT)/nvml/made: $(CUDA_OUT)/gen-stubs $(CUDA_SRC)/nvml/nvml_entry_points.def \
		$(CUDA_SRC)/nvml/nvml_argument_types.def $(CUDA_NVML_NAMES)
	@mkdir -p $(@D)
	$< $(filter %.def,$^) --result nvmlReturn_t --abi nvml_abi.h $(addprefix --names ,$(CUDA_NVML_NAMES)) \
		--stubs $(@D)/stubs.S --header $(@D)/wrappers.h --entries $(@D)/entries.inc --calls $(@D)/calls.inc
	@touch $@

# $(call cuda_library,FOLDER,REAL_DIR,DOOR_DIR,RPATH,CFLAGS): the two libraries in FOLDER, which is DOOR_DIR where they are
# used, over a driver in REAL_DIR.
define cuda_library
$(1)/cuda/%.o: %.c $(CUDA_OUT)/cuda/made
	@mkdir -p $$(@D)
	$$(CC) $(5) -DVGPU_DOOR_DIR='"$(3)"' -I$(CUDA_OUT)/cuda $(CUDA_INCLUDES) -DVGPU_REAL_DIR='"$(2)"' -DVGPU_REAL_LIBRARY='"libcuda.so.1"' \
		-DVGPU_MISSING=CUDA_ERROR_NOT_FOUND $$(CPPFLAGS) $$(CFLAGS) -MMD -MP -c -o $$@ $$<

$(1)/nvml/%.o: %.c $(CUDA_OUT)/nvml/made
	@mkdir -p $$(@D)
	$$(CC) $(5) -DVGPU_DOOR_DIR='"$(3)"' -I$(CUDA_OUT)/nvml $(CUDA_INCLUDES) -DVGPU_REAL_DIR='"$(2)"' -DVGPU_REAL_LIBRARY='"libnvidia-ml.so.1"' \
		-DVGPU_MISSING=NVML_ERROR_FUNCTION_NOT_FOUND $$(CPPFLAGS) $$(CFLAGS) -MMD -MP -c -o $$@ $$<

$(1)/cuda/stubs.o $(1)/nvml/stubs.o: $(1)/%/stubs.o: $(CUDA_OUT)/%/made
	@mkdir -p $$(@D)
	$$(CC) -c -o $$@ $(CUDA_OUT)/$$*/stubs.S

# An empty library; only its name matters, by which the driver is needed.
$(1)/needed/%: | $(CUDA_OUT)/gen-stubs
	@mkdir -p $$(@D)
	$$(CC) -shared -nostdlib -Wl,-soname,$(2)/$$* -x c -o $$@ /dev/null

$(1)/libcuda.so.1: $(addprefix $(1)/cuda/,$(CUDA_SRCS:.c=.o) stubs.o) $(1)/needed/libcuda.so.1 $(GOVERNOR_MEMBER_SHARED)
	$$(CC) $(5) $$(CFLAGS) $(CUDA_LDFLAGS) -Wl,-soname,$$(@F) -Wl,-rpath,$(4) $$(LDFLAGS) -o $$@ $$^

$(1)/libnvidia-ml.so.1: $(addprefix $(1)/nvml/,$(CUDA_NVML_SRCS:.c=.o) stubs.o) $(1)/needed/libnvidia-ml.so.1 \
		$(GOVERNOR_MEMBER_SHARED)
	$$(CC) $(5) $$(CFLAGS) $(CUDA_LDFLAGS) -Wl,-soname,$$(@F) -Wl,-rpath,$(4) $$(LDFLAGS) -o $$@ $$^
endef

$(eval $(call cuda_library,$(CUDA_OUT),$(CUDA_REAL_DIR),$(CUDA_DIR),$(GOVERNOR_LIBRARIES),$(CUDA_CFLAGS)))

# For processes of a slice: vgpu-suspend, which loads the driver by its path.
CUDA_SUSPEND_SRCS := $(addprefix $(CUDA_SRC)/suspend/,vgpu-suspend.c driver.c end.c room.c)
CUDA_SUSPEND_HEADERS := $(addprefix $(CUDA_SRC)/,suspend/driver.h suspend/end.h suspend/room.h abi/nvml_abi.h)
CUDA_SUSPEND_CFLAGS := $(CUDA_WARN) -O2 -pthread -I$(CUDA_SRC)/abi
cuda-door: $(CUDA_OUT)/vgpu-suspend

$(CUDA_OUT)/vgpu-suspend: $(CUDA_SUSPEND_SRCS) $(CUDA_SUSPEND_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CUDA_SUSPEND_CFLAGS) -DVGPU_REAL_DIR='"$(CUDA_REAL_DIR)"' $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(CUDA_SUSPEND_SRCS) -ldl

# How much of a GPU's memory a cgroup may have, held by the driver: vgpu-memory-limit.
CUDA_LIMIT_SRCS := $(CUDA_SRC)/limits/vgpu-memory-limit.c
CUDA_LIMIT_CFLAGS := $(CUDA_WARN) -O2 -I$(CUDA_SRC)/abi
cuda-door: $(CUDA_OUT)/vgpu-memory-limit

$(CUDA_OUT)/vgpu-memory-limit: $(CUDA_LIMIT_SRCS) $(CUDA_SRC)/abi/nvml_abi.h
	@mkdir -p $(@D)
	$(CC) $(CUDA_LIMIT_CFLAGS) -DVGPU_REAL_DIR='"$(CUDA_REAL_DIR)"' $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(CUDA_LIMIT_SRCS) -ldl

# What only NVIDIA's library tells of a GPU, as files: vgpu-nvidia-readings.
CUDA_READINGS_SRCS := $(CUDA_SRC)/readings/vgpu-nvidia-readings.c
CUDA_READINGS_LIBS := -ldl -lsystemd
cuda-door: $(CUDA_OUT)/vgpu-nvidia-readings

$(CUDA_OUT)/vgpu-nvidia-readings: $(CUDA_READINGS_SRCS) $(CUDA_SRC)/abi/nvml_abi.h
	@mkdir -p $(@D)
	$(CC) $(CUDA_LIMIT_CFLAGS) $(HARDEN_CFLAGS) -DVGPU_REAL_DIR='"$(CUDA_REAL_DIR)"' $(CPPFLAGS) $(CFLAGS) $(HARDEN_LDFLAGS) \
		$(LDFLAGS) -o $@ $(CUDA_READINGS_SRCS) $(CUDA_READINGS_LIBS)

install-cuda-door: cuda-door
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu $(addprefix $(CUDA_OUT)/vgpu-,suspend memory-limit nvidia-readings)
	$(call install_unit,$(CUDA_SRC)/readings/vgpu-nvidia-readings.service,$(PREFIX)/lib/systemd/system)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(CUDA_SRC)/readings/vgpu-nvidia-readings.8 $(CUDA_SRC)/suspend/vgpu-suspend.8
	$(call install_unit,$(CUDA_SRC)/readings/70-vgpu-nvidia.rules,$(PREFIX)/lib/udev/rules.d)
	install -D -m 0644 -t $(DESTDIR)$(CUDA_DIR) $(CUDA_OUT)/libcuda.so.1 $(CUDA_OUT)/libnvidia-ml.so.1
	ln -sf libcuda.so.1 $(DESTDIR)$(CUDA_DIR)/libcuda.so
	ln -sf libnvidia-ml.so.1 $(DESTDIR)$(CUDA_DIR)/libnvidia-ml.so
	ln -sfn $(CUDA_REAL_LINKS) $(DESTDIR)$(CUDA_REAL_DIR)

-include $(shell find $(CUDA_OUT) -name '*.d' 2>/dev/null)

include cuda-remote/cuda-remote.mk
include tests/cuda/cuda-tests.mk
