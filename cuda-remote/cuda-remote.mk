# SPDX-License-Identifier: MIT
# CUDA for programs that have no GPU's device node: the library that stands for libcuda.so.1 there, and
# vgpu-cuda-worker, which carries out its calls. They are installed with the door. Included by governor/cuda/cuda.mk.

REMOTE_SRC := cuda-remote
REMOTE_OUT := build/cuda-remote
REMOTE_INCLUDES := -I. -I$(REMOTE_SRC)/wire -I$(REMOTE_OUT)/made -I$(CUDA_SRC)/abi
REMOTE_WIRE := $(addprefix $(REMOTE_SRC)/wire/,channel.c signature.c structure.c)
REMOTE_GUEST := $(wildcard $(REMOTE_SRC)/guest/*.c) $(REMOTE_WIRE)
# Its NVML, by the same ways.
REMOTE_NVML := $(wildcard $(REMOTE_SRC)/nvml/*.c) $(wildcard $(REMOTE_SRC)/guest/transport*.c) \
	$(REMOTE_SRC)/guest/lost_memory.c $(REMOTE_SRC)/wire/channel.c
REMOTE_WORKER := $(wildcard $(REMOTE_SRC)/worker/*.c) $(REMOTE_WIRE)
# The library runs in foreign programs, as the door does.
REMOTE_GUEST_CFLAGS := $(CUDA_WARN) $(GOVERNOR_OLD_LIBC) -O2 -fPIC -fno-plt -fvisibility=hidden
REMOTE_WORKER_CFLAGS := $(CUDA_WARN) -O2 $(HARDEN_CFLAGS) -pthread -DVGPU_VERSION='"$(VERSION)"' \
	-DVGPU_CUDA_DOOR='"$(CUDA_DIR)/libcuda.so.1"'
# host_memory.c has an ioctl() that the driver's calls go through.
REMOTE_WORKER_LIBS := -Wl,--export-dynamic-symbol=ioctl -ldl -lpthread
# Where they are installed: the worker for guards, the library for containers.
CUDA_WORKER = $(PREFIX)/lib/mdev-vgpu/vgpu-cuda-worker
CUDA_GUEST_DIR = $(PREFIX)/lib/mdev-vgpu/guest

.PHONY: cuda-remote install-cuda-remote
governor: cuda-remote
install-governor: install-cuda-remote
cuda-remote: $(addprefix $(REMOTE_OUT)/,libcuda.so libnvidia-ml.so.1 vgpu-cuda-worker)

install-cuda-remote: cuda-remote
	install -D -m 0755 $(REMOTE_OUT)/vgpu-cuda-worker $(DESTDIR)$(CUDA_WORKER)
	install -D -m 0644 -t $(DESTDIR)$(CUDA_GUEST_DIR) $(addprefix $(REMOTE_OUT)/,libcuda.so.1 libnvidia-ml.so.1)
	ln -sf libcuda.so.1 $(DESTDIR)$(CUDA_GUEST_DIR)/libcuda.so
	ln -sf libnvidia-ml.so.1 $(DESTDIR)$(CUDA_GUEST_DIR)/libnvidia-ml.so

# For VMs: the same libraries where their programs find them, what gives it to containers there, and what says whether it
# works. Never installed on a host, whose programs would find it, too.
GUEST_PACKAGE_SRC := $(REMOTE_SRC)/guest-package
GUEST_LIBRARIES := $(addprefix $(REMOTE_OUT)/,libcuda.so.1 libnvidia-ml.so.1)
GUEST_PROGRAMS := $(addprefix $(REMOTE_OUT)/,vgpu-guest-cuda-check vgpu-guest-cdi)

.PHONY: guest-cuda install-guest-cuda
guest-cuda: $(GUEST_LIBRARIES) $(GUEST_PROGRAMS) container-hooks

install-guest-cuda: guest-cuda
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu/guest-cuda $(GUEST_LIBRARIES)
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu/guest-cuda $(REMOTE_OUT)/vgpu-guest-cdi $(CONTAINER_HOOK_OUT)/vgpu-container-hook
	install -d $(DESTDIR)$(PREFIX)/lib/$(GOVERNOR_MULTIARCH)
	ln -sf $(GUEST_LIBRARIES:$(REMOTE_OUT)/%=../mdev-vgpu/guest-cuda/%) $(DESTDIR)$(PREFIX)/lib/$(GOVERNOR_MULTIARCH)/
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $(REMOTE_OUT)/vgpu-guest-cuda-check
	$(call install_unit,$(GUEST_PACKAGE_SRC)/vgpu-guest-cdi.service,$(SYSTEMD_UNIT_DIR))
	$(call install_unit,$(GUEST_PACKAGE_SRC)/60-vgpu-guest.rules,$(UDEV_RULES_DIR))
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(GUEST_PACKAGE_SRC)/vgpu-guest-cuda-check.1
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(GUEST_PACKAGE_SRC)/vgpu-guest-cdi.8

$(GUEST_PROGRAMS): $(REMOTE_OUT)/%: $(GUEST_PACKAGE_SRC)/%.c $(addprefix $(GUEST_PACKAGE_SRC)/,nodes.c nodes.h) $(REMOTE_SRC)/wire/control.h
	@mkdir -p $(@D)
	$(CC) $(CUDA_WARN) -O2 $(HARDEN_CFLAGS) -DVGPU_VERSION='"$(VERSION)"' -DVGPU_FOLDER='"$(PREFIX)/lib/mdev-vgpu"' \
		-I$(REMOTE_SRC)/wire $(CPPFLAGS) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -ldl

$(REMOTE_OUT)/gen-remote: $(REMOTE_SRC)/wire/gen-remote.c $(addprefix $(CUDA_SRC)/,entry_table.c entry_table.h)
	@mkdir -p $(@D)
	$(CC) $(CUDA_WARN) -O1 -I$(CUDA_SRC) -o $@ $(filter %.c,$^)

# An entry point without a row in calls.def is an error.
$(REMOTE_OUT)/made/made: $(REMOTE_OUT)/gen-remote $(addprefix $(CUDA_SRC)/,entry_points.def argument_types.def) \
		$(addprefix $(REMOTE_SRC)/wire/,objects.def structures.def calls.def)
	@mkdir -p $(@D)
	$< $(filter %.def,$^) --numbers $(@D)/numbers.h --signatures $(@D)/signatures.inc --client $(@D)/client.inc \
		--entries $(@D)/entries.inc --invoke $(@D)/invoke.inc
	@touch $@

$(REMOTE_OUT)/guest/%.o: %.c $(REMOTE_OUT)/made/made
	@mkdir -p $(@D)
	$(CC) $(REMOTE_GUEST_CFLAGS) $(REMOTE_INCLUDES) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(REMOTE_OUT)/worker/%.o: %.c $(REMOTE_OUT)/made/made
	@mkdir -p $(@D)
	$(CC) $(REMOTE_WORKER_CFLAGS) $(REMOTE_INCLUDES) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(REMOTE_OUT)/libcuda.so.1: $(addprefix $(REMOTE_OUT)/guest/,$(REMOTE_GUEST:.c=.o))
	$(CC) $(REMOTE_GUEST_CFLAGS) -shared -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,-Bsymbolic -Wl,-z,nodelete \
		-Wl,-soname,$(@F) $(LDFLAGS) -o $@ $^ -lpthread

$(REMOTE_OUT)/guest/$(REMOTE_SRC)/nvml/%.o: REMOTE_INCLUDES += -I$(REMOTE_SRC)/guest -I$(CUDA_SRC)/nvml
$(REMOTE_OUT)/libnvidia-ml.so.1: $(addprefix $(REMOTE_OUT)/guest/,$(REMOTE_NVML:.c=.o))
	$(CC) $(REMOTE_GUEST_CFLAGS) -shared -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,-Bsymbolic -Wl,-z,nodelete \
		-Wl,-soname,$(@F) $(LDFLAGS) -o $@ $^ -lpthread

$(REMOTE_OUT)/libcuda.so: $(REMOTE_OUT)/libcuda.so.1
	ln -sf libcuda.so.1 $@

$(REMOTE_OUT)/vgpu-cuda-worker: $(addprefix $(REMOTE_OUT)/worker/,$(REMOTE_WORKER:.c=.o))
	$(CC) $(REMOTE_WORKER_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $^ $(REMOTE_WORKER_LIBS)

-include $(shell find $(REMOTE_OUT) -name '*.d' 2>/dev/null)
