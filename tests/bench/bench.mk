# SPDX-License-Identifier: MIT
# make bench: this vGPU beside its alternatives, in the rig (README.md here). Never part of `make check`: it measures,
# and times do not decide about right and wrong.

BENCH_SRC := tests/bench
BENCH_OUT := build/bench

.PHONY: bench bench-agent bench-programs
bench:
	$(BENCH_SRC)/run

bench-agent:
	$(BENCH_SRC)/agent

bench-programs: guest $(BENCH_OUT)/vk-bench

$(BENCH_OUT)/fma.spv.h: $(BENCH_SRC)/fma.comp
	@mkdir -p $(@D)
	glslangValidator -V --quiet --target-env vulkan1.1 --vn fma_spirv -o $@ $<

$(BENCH_OUT)/vk-bench.o: $(BENCH_SRC)/vk-bench.c $(BENCH_OUT)/fma.spv.h $(wildcard $(GUEST_SRC)/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -I$(BENCH_OUT) -c -o $@ $<

$(BENCH_OUT)/vk-bench: $(BENCH_OUT)/vk-bench.o $(addprefix $(GUEST_OUT)/,vk-dispatch.o vk-device.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lvulkan

# For guests: the caching of the window.
$(BENCH_OUT)/window-memory: $(BENCH_SRC)/window-memory.c
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -o $@ $<

# make bench-guarded: containers' guarded door, in the rig's tree alone.
.PHONY: bench-guarded bench-guarded-programs
bench-guarded:
	$(BENCH_SRC)/guarded

bench-guarded-programs: build/engine/vgpu-guard build/guard/udmabuf-shim.so $(BENCH_OUT)/vk-bench

# make bench-governor: shares of a GPU, measured by finished work: first in the rig's tree, without a rig, then two VMs
# in it.
LOAD_SRC := $(BENCH_SRC)/governor-load
LOAD_OUT := $(BENCH_OUT)/governor-load
LOAD_OBJECTS := $(patsubst $(LOAD_SRC)/%.c,$(LOAD_OUT)/%.o,$(wildcard $(LOAD_SRC)/*.c))

.PHONY: bench-governor bench-governor-programs
bench-governor:
	$(BENCH_SRC)/governor
	$(BENCH_SRC)/governor-vms

bench-governor-programs: governor vulkan-layer guest $(LOAD_OUT)/governor-load

$(LOAD_OUT)/%.o: $(LOAD_SRC)/%.c $(BENCH_OUT)/fma.spv.h $(wildcard $(LOAD_SRC)/*.h $(GUEST_SRC)/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -I$(BENCH_OUT) -c -o $@ $<

$(LOAD_OUT)/governor-load: $(LOAD_OBJECTS) $(addprefix $(GUEST_OUT)/,vk-dispatch.o vk-device.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lvulkan -lm

# For tests/cuda/on-card: that and cuda-load in one process.
$(CUDA_ON_CARD)/both-load: tests/bench/cuda/both-load.c tests/bench/cuda/cuda-load.c $(CUDA_TEST_SRC)/spin.c $(LOAD_OUT)/governor-load
	@mkdir -p $(@D)
	objcopy --redefine-sym main=vulkan_main $(LOAD_OUT)/main.o $@-vulkan.o
	$(CUDA_CARD_CC) -Dmain=cuda_main -c -o $@-cuda.o tests/bench/cuda/cuda-load.c
	$(CUDA_CARD_CC) -o $@ $< $(CUDA_TEST_SRC)/spin.c $@-vulkan.o $@-cuda.o \
		$(filter-out %/main.o,$(LOAD_OBJECTS)) $(addprefix $(GUEST_OUT)/,vk-dispatch.o vk-device.o job.o) \
		-L$(CUDA_ON_CARD_REAL) -l:libcuda.so.1 -ldl -lvulkan -lm

# make bench-fleet [ROW=day|prolog|rate]: Slurm's scheduler on nodes that have only slurmd; a whole day takes 75 minutes.
.PHONY: bench-fleet
bench-fleet:
	$(BENCH_SRC)/fleet/run $(ROW)

# make bench-cuda: the CUDA door over the fake card.
.PHONY: bench-cuda bench-cuda-programs
bench-cuda:
	$(BENCH_SRC)/cuda/run

bench-cuda-programs: governor cuda-remote $(CUDA_TEST)/test-deadlocks $(CUDA_DOORS) $(BENCH_OUT)/cuda-load

$(BENCH_OUT)/cuda-load: $(CUDA_LOAD_SRCS) | $(CUDA_TEST)/real/libcuda.so.1
	@mkdir -p $(@D)
	$(CUDA_CARD_CC) -o $@ $^ -ldl

# make bench-first-touch: exits of a guest that touches device memory for the first time, with the driver's patch and without.
.PHONY: bench-first-touch
bench-first-touch:
	$(BENCH_SRC)/first-touch/run

# make bench-chain: what a tiny submit costs each thread of the host, by the kernel's trace.
.PHONY: bench-chain
bench-chain:
	$(BENCH_SRC)/chain
