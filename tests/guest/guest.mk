# SPDX-License-Identifier: MIT
# The programs that compute in guests: build/guest/vk-compute, vk-waits, vk-threads and
# cl-compute.
# They are plain C with the Vulkan loader and the OpenCL loader, nothing else.

GUEST_SRC := tests/guest
GUEST_OUT := build/guest
GUEST_PROGRAMS := $(addprefix $(GUEST_OUT)/,vk-compute vk-waits vk-threads cl-compute)
GUEST_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(WERROR) -I$(GUEST_SRC) -I$(GUEST_OUT)

# Checks that their check of the data finds errors; needs no GPU.
UNIT_TESTS += $(GUEST_OUT)/job-test

.PHONY: guest
guest: $(GUEST_PROGRAMS)

$(GUEST_OUT)/%.spv.h: $(GUEST_SRC)/%.comp $(GUEST_SRC)/constants.h
	@mkdir -p $(@D)
	glslangValidator -V --quiet --target-env vulkan1.1 --vn $*_spirv -o $@ $<

$(GUEST_OUT)/kernels.cl.h: $(GUEST_SRC)/constants.h $(GUEST_SRC)/kernels.cl
	@mkdir -p $(@D)
	{ echo 'static const char kernels_cl[] ='; \
	  cat $^ | sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/'; echo '    ;'; } > $@

$(GUEST_OUT)/%.o: $(GUEST_SRC)/%.c $(wildcard $(GUEST_SRC)/*.h)
	@mkdir -p $(@D)
	$(CC) $(GUEST_CFLAGS) -c -o $@ $<

$(GUEST_OUT)/vk-compute.o: $(GUEST_OUT)/madd.spv.h $(GUEST_OUT)/gather.spv.h
$(GUEST_OUT)/vk-threads.o: $(GUEST_OUT)/madd.spv.h
$(GUEST_OUT)/cl-compute.o: $(GUEST_OUT)/kernels.cl.h

$(GUEST_OUT)/vk-compute: $(addprefix $(GUEST_OUT)/,vk-compute.o vk-dispatch.o vk-device.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lvulkan

$(GUEST_OUT)/vk-waits: $(addprefix $(GUEST_OUT)/,vk-waits.o vk-device.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lvulkan

$(GUEST_OUT)/vk-threads: $(addprefix $(GUEST_OUT)/,vk-threads.o vk-device.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lvulkan -lpthread

$(GUEST_OUT)/cl-compute: $(addprefix $(GUEST_OUT)/,cl-compute.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^ -lOpenCL

$(GUEST_OUT)/job-test: $(addprefix $(GUEST_OUT)/,job-test.o job.o)
	$(CC) $(LDFLAGS) -o $@ $^
