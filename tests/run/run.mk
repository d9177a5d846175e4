# SPDX-License-Identifier: MIT
# "vgpuctl run" without a VM, a kernel module and systemd: vgpud, vgpu-arbiter and the governor's layer as they are
# installed, on software Vulkan. Suspended slices likewise, with the CUDA door on the fake card. Part of `make unit`.

RUN_OUT := build/run
RUN_CUDA := build/cuda-test
RUN_NEEDS := $(RUN_OUT)/t-fill $(RUN_OUT)/t-turns $(GUEST_OUT)/vk-compute host-agent governor build/engine/vgpu-guard \
	build/guard/udmabuf-shim.so $(addprefix $(RUN_CUDA)/,plain/libcuda.so.1 plain/libnvidia-ml.so.1 \
	real/libcuda.so.1 real/libnvidia-ml.so.1 vgpu-suspend vgpu-memory-limit client-container)
UNIT_TESTS += tests/run/live.t tests/run/meter.t tests/run/owners.t tests/run/record.t tests/run/suspend.t tests/run/try.t tests/run/turns.t
UNIT_NEEDS += $(RUN_NEEDS)

# A shell on such a host, for people.
NEED_try := cc glslangValidator $(AGENT_PKGS) libxml-2.0 smartcols vulkan
.PHONY: check-run try
try: host-agent arbiter vulkan-layer $(GUEST_OUT)/vk-compute
	tests/run/try

check-run: $(RUN_NEEDS)
	tests/prove -v $(filter tests/run/%,$(UNIT_TESTS))

$(RUN_OUT)/t-fill: tests/run/t-fill.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(WERROR) -o $@ $< -lvulkan

$(RUN_OUT)/t-turns: tests/run/t-turns.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(WERROR) -o $@ $< -ldl
