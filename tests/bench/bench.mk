# SPDX-License-Identifier: MIT
# make bench: this vGPU beside its peers, in the rig (README.md here). Never part of `make check`: it
# measures, and times are not what decides about right and wrong.

BENCH_SRC := tests/bench
BENCH_OUT := build/bench

.PHONY: bench bench-programs
bench:
	$(BENCH_SRC)/run

bench-programs: guest $(BENCH_OUT)/vk-bench

$(BENCH_OUT)/fma.spv.h: $(BENCH_SRC)/fma.comp
	@mkdir -p $(@D)
	glslangValidator -V --quiet --target-env vulkan1.1 --vn fma_spirv -o $@ $<

$(BENCH_OUT)/vk-bench.o: $(BENCH_SRC)/vk-bench.c $(BENCH_OUT)/fma.spv.h $(wildcard $(GUEST_SRC)/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -I$(BENCH_OUT) -c -o $@ $<

$(BENCH_OUT)/vk-bench: $(BENCH_OUT)/vk-bench.o $(addprefix $(GUEST_OUT)/,vk-dispatch.o vk-device.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lvulkan
