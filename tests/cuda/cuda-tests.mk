# SPDX-License-Identifier: MIT
# The CUDA door over a fake card (tests/fake-cuda), natively. Included by governor/cuda/cuda.mk.
#
#	make cuda	all tests but the one that reads a clock, which is of make unit-alone
#	make check-cuda	all tests
#
# build/cuda-test/real has the fake driver; san and plain have the door in front of it, sanitized and as installed.

CUDA_TEST := build/cuda-test
CUDA_TEST_SRC := tests/cuda
CUDA_FAKE_SRC := tests/fake-cuda
CUDA_TEST_REAL := $(CURDIR)/$(CUDA_TEST)/real
CUDA_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
CUDA_SAN_CFLAGS := $(CUDA_WARN) -O1 -fPIC -fvisibility=hidden -fno-omit-frame-pointer $(CUDA_SANITIZE)
CUDA_FAKE_CFLAGS := $(filter-out -Wmissing-prototypes -Wstrict-prototypes,$(CUDA_WARN)) -O1 -fPIC

$(eval $(call cuda_library,$(CUDA_TEST)/san,$(CUDA_TEST_REAL),$(CURDIR)/$(CUDA_TEST)/san,$(CURDIR)/$(GOVERNOR_OUT),$(CUDA_SAN_CFLAGS)))
$(eval $(call cuda_library,$(CUDA_TEST)/plain,$(CUDA_TEST_REAL),$(CURDIR)/$(CUDA_TEST)/plain,$(CURDIR)/$(GOVERNOR_OUT),$(CUDA_CFLAGS)))

$(CUDA_TEST)/fake/%.o: $(CUDA_FAKE_SRC)/%.c $(CUDA_OUT)/cuda/made $(CUDA_OUT)/nvml/made
	@mkdir -p $(@D)
	$(CC) $(CUDA_FAKE_CFLAGS) -I$(CUDA_FAKE_SRC) -I$(CARD_MODEL_SRC) -I$(CUDA_SRC)/abi -I$(CUDA_OUT)/cuda -I$(CUDA_OUT) -MMD -MP -c -o $@ $<

# It rounds as PTX says, by modes that it sets.
CUDA_PTX_CFLAGS := -ffp-contract=off -frounding-math -O2
$(CUDA_TEST)/fake/ptx/%.o: CUDA_FAKE_CFLAGS += $(CUDA_PTX_CFLAGS)

$(CUDA_TEST)/fake/%.o: $(CARD_MODEL_SRC)/%.c
	@mkdir -p $(@D)
	$(CC) $(CUDA_FAKE_CFLAGS) -MMD -MP -c -o $@ $<

# It calls its own functions, except where memory.c says otherwise.
$(CUDA_TEST)/real/libcuda.so.1: $(patsubst $(CUDA_FAKE_SRC)/%.c,$(CUDA_TEST)/fake/%.o,\
		$(filter-out %/nvml.c %/nvml_calls.c,$(wildcard $(CUDA_FAKE_SRC)/*.c $(CUDA_FAKE_SRC)/ptx/*.c))) \
		$(CUDA_TEST)/fake/card_model.o
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,defs -Wl,-Bsymbolic-functions -Wl,-soname,$(@F) -o $@ $^ -lpthread -lm -ldl

$(CUDA_TEST)/real/libnvidia-ml.so.1: $(addprefix $(CUDA_TEST)/fake/,nvml.o nvml_calls.o card.o)
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,defs -Wl,-soname,$(@F) -o $@ $^ -lpthread

CUDA_DOORS := $(foreach kind,san plain,$(CUDA_TEST)/$(kind)/libcuda.so.1 $(CUDA_TEST)/$(kind)/libnvidia-ml.so.1) \
	$(CUDA_TEST)/real/libcuda.so.1 $(CUDA_TEST)/real/libnvidia-ml.so.1

CUDA_TEST_CFLAGS = -std=c11 -D_GNU_SOURCE -g -Wall -Wextra $(WERROR) -Wshadow -O1 $(CUDA_SANITIZE) $(CUDA_INCLUDES) \
	-I$(CUDA_OUT)/cuda -I$(CUDA_TEST) -I$(CUDA_TEST_SRC) -I$(CUDA_FAKE_SRC) -I$(GOVERNOR_TESTS_SRC) -Igovernor/core \
	$(GOVERNOR_PKG_CFLAGS) -DARBITER='"$(CURDIR)/$(GOVERNOR_OUT)/vgpu-arbiter"' -DREAL_DIR='"$(CUDA_TEST_REAL)"' \
	-DPLAIN_DIR='"$(CURDIR)/$(CUDA_TEST)/plain"' -DCLIENTS_DIR='"$(CURDIR)/$(CUDA_TEST)"' -DLAYER='"$(CURDIR)/$(GOVERNOR_OUT)/vulkan/libvgpu_governor.so"' \
	-DMULTIARCH='"$(GOVERNOR_MULTIARCH)"' -DMEMBER='"$(CURDIR)/$(GOVERNOR_MEMBER_SHARED)"' -DMEMBER_DIR='"$(GOVERNOR_LIBRARIES)"' \
	-DDOOR_DIR='"$(CURDIR)/$(CUDA_OUT)"' -DCONTAINER_HOOK='"$(CURDIR)/$(CONTAINER_HOOK_OUT)/vgpu-container-hook"'

# Functions that pass, without those that the tests' headers declare.
$(CUDA_TEST)/undeclared.inc: $(CUDA_OUT)/cuda/made $(CUDA_TEST_SRC)/kit.h
	@mkdir -p $(@D)
	sed -n 's/.*[ *]\(cu[A-Z]\w*\)(.*/C(\1,/p' $(CUDA_TEST_SRC)/kit.h | grep -vwFf - $(CUDA_OUT)/cuda/calls.inc >$@

# What Debian's libffmpeg-nvenc-dev declares of the same functions: its loader says which type is which symbol's. The name
# cuModuleGetGlobal is of a 32-bit form, which that loader takes for the later one.
FFNVCODEC := /usr/include/ffnvcodec
$(CUDA_TEST)/shared-symbols.inc: $(CUDA_OUT)/cuda/made $(CUDA_TEST_SRC)/cuda-tests.mk
	@mkdir -p $(@D)
	sed -n 's/.*LOAD_SYMBOL[A-Z_]*(.*, *\(tcu[A-Z]\w*\), *"\(cu\w*\)").*/ \2_prototype( \1/p' $(FFNVCODEC)/dynlink_loader.h | \
		grep -vw cuModuleGetGlobal_prototype >$(@D)/their-symbols
	cut -d' ' -f2 $(@D)/their-symbols | sed 's/^/ /' | grep -Ff - $(CUDA_OUT)/cuda/prototypes.inc >$(@D)/shared-prototypes.inc
	sed 's/.* \(\w*_prototype(\).*/ \1 /' $(@D)/shared-prototypes.inc | grep -Ff - $(@D)/their-symbols | \
		sed 's/ \(.*\)_prototype( \(.*\)/S(\1, \2)/' >$@

$(CUDA_TEST)/obj/tests/cuda/abi_theirs.o: $(CUDA_TEST)/shared-symbols.inc

$(CUDA_TEST)/obj/%.o: %.c $(CUDA_TEST)/undeclared.inc
	@mkdir -p $(@D)
	$(CC) $(CUDA_TEST_CFLAGS) -MMD -MP -c -o $@ $<

CUDA_TESTS := $(patsubst $(CUDA_TEST_SRC)/%.c,$(CUDA_TEST)/%,$(wildcard $(CUDA_TEST_SRC)/test-*.c))
CUDA_UNIT_TESTS := $(addprefix $(CUDA_TEST)/test-,abi channel event-clock ptx ranges)
CUDA_TESTS_COMMON := $(addprefix $(CUDA_TEST)/obj/,$(CUDA_TEST_SRC)/kit.o $(GOVERNOR_TESTS_SRC)/live.o \
	$(GOVERNOR_TESTS_SRC)/refuse_option.o)

$(filter-out $(CUDA_UNIT_TESTS),$(CUDA_TESTS)): $(CUDA_TEST)/%: $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/%.o $(CUDA_TESTS_COMMON) $(CUDA_DOORS) \
		$(GOVERNOR_OUT)/vgpu-arbiter
	@$(CC) $(CUDA_SANITIZE) -o $@ $(filter %.o,$^) -L$(CUDA_TEST)/san -Wl,--no-as-needed -l:libcuda.so.1 \
		-l:libnvidia-ml.so.1 $(GOVERNOR_MEMBER_SHARED) -Wl,--allow-shlib-undefined \
		-Wl,-rpath,$(CURDIR)/$(CUDA_TEST)/san:$(CURDIR)/$(GOVERNOR_OUT) $(GOVERNOR_PKG_LIBS) -ldl -lpthread

# Orders of the test's own, and every entry while memory is displaced.
$(addprefix $(CUDA_TEST)/test-,away displace): $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/orders.o

# A member without the member library.
$(CUDA_TEST)/test-kept: $(CUDA_TEST)/obj/$(GOVERNOR_TESTS_SRC)/raw.o | $(CUDA_TEST)/vgpu-nvidia-readings

# The parts of the door that need no driver.
$(CUDA_TEST)/test-ranges: $(addprefix $(CUDA_TEST)/obj/,$(CUDA_TEST_SRC)/test-ranges.o $(CUDA_SRC)/memory/ranges.o \
		$(CUDA_SRC)/memory/mappings.o)
	$(CC) $(CUDA_SANITIZE) -o $@ $^ $(GOVERNOR_PKG_LIBS) -lpthread

$(CUDA_TEST)/test-event-clock: $(addprefix $(CUDA_TEST)/obj/,$(CUDA_TEST_SRC)/test-event-clock.o $(CUDA_SRC)/time/event_clock.o)
	$(CC) $(CUDA_SANITIZE) -o $@ $^ $(GOVERNOR_PKG_LIBS)

$(CUDA_TEST)/test-abi: $(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/,test-abi.o abi_ours.o abi_theirs.o)
	$(CC) $(CUDA_SANITIZE) -o $@ $^ $(GOVERNOR_PKG_LIBS)

$(CUDA_TEST)/test-channel: $(addprefix $(CUDA_TEST)/obj/,$(CUDA_TEST_SRC)/test-channel.o $(CUDA_TEST_SRC)/remote/steps.o) \
		$(REMOTE_SRC)/wire/channel.c $(REMOTE_SRC)/wire/channel.h
	$(CC) $(CUDA_TEST_CFLAGS) -DCHANNEL_STEPS -o $@ $(filter-out %.h,$^) $(GOVERNOR_PKG_LIBS) -lpthread
$(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/test-channel.o: CUDA_TEST_CFLAGS += -I. -I$(REMOTE_SRC)/wire -DCHANNEL_STEPS

# The interpreter of the fake card, without the files that join it to the driver.
CUDA_PTX_SRCS := $(filter-out $(addprefix %/,content.c effects.c host.c image.c linker.c tables.c),\
	$(wildcard $(CUDA_FAKE_SRC)/ptx/*.c))
$(CUDA_TEST)/obj/$(CUDA_FAKE_SRC)/ptx/%.o: CUDA_TEST_CFLAGS += $(CUDA_PTX_CFLAGS)
$(CUDA_TEST)/test-ptx: $(addprefix $(CUDA_TEST)/obj/,$(CUDA_TEST_SRC)/test-ptx.o $(CUDA_PTX_SRCS:.c=.o))
	$(CC) $(CUDA_SANITIZE) -o $@ $^ $(GOVERNOR_PKG_LIBS) -lm -ldl

# tests/cuda/real/check: programs of NVIDIA's toolkit.
CUDA_REAL := build/cuda-real
$(CUDA_REAL)/programs: CUDA_TEST_CFLAGS += -DREAL_PROGRAMS='"$(CURDIR)/$(CUDA_REAL)"'
$(CUDA_REAL)/programs: | $(CUDA_TEST)/vgpu-cuda-worker $(CUDA_TEST)/vm-shim.so $(REMOTE_OUT)/libcuda.so
$(CUDA_REAL)/programs: $(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/,real/programs.o remote/program.o remote/server.o remote/vm_program.o) $(CUDA_TESTS_COMMON) $(CUDA_DOORS) $(GOVERNOR_OUT)/vgpu-arbiter
	@mkdir -p $(@D)
	$(CC) $(CUDA_SANITIZE) -o $@ $(filter %.o,$^) -L$(CUDA_TEST)/san -Wl,--no-as-needed -l:libcuda.so.1 \
		-l:libnvidia-ml.so.1 $(GOVERNOR_MEMBER_SHARED) -Wl,--allow-shlib-undefined \
		-Wl,-rpath,$(CURDIR)/$(CUDA_TEST)/san:$(CURDIR)/$(GOVERNOR_OUT) $(GOVERNOR_PKG_LIBS) -ldl -lpthread

# A foreign client, which links nothing of ours.
$(CUDA_TEST)/client-ffnvcodec: $(CUDA_TEST_SRC)/client-ffnvcodec.c
	@mkdir -p $(@D)
	$(CC) -O1 -g -o $@ $< -ldl

# A program in a container: it needs libcuda.so.1, and does not say where that is.
$(CUDA_TEST)/client-container: $(CUDA_TEST_SRC)/client-container.c $(CUDA_TEST)/real/libcuda.so.1
	$(CC) -O1 -g -Wall -Werror -o $@ $< -L$(CUDA_TEST)/real -l:libcuda.so.1

# A program whose driver is a worker's, and the worker, sanitized. Where both ends are (tsan-cuda-remote), REMOTE_TEST_GUEST is
# where that library is, and REMOTE_TEST_STEPS is what makes them wait at each step of their protocol.
REMOTE_TEST_GUEST := $(REMOTE_OUT)
REMOTE_TEST_STEPS :=
REMOTE_TEST_SANITIZE :=
REMOTE_TEST_CFLAGS = -O1 $(if $(REMOTE_TEST_STEPS),-DCHANNEL_STEPS)
$(CUDA_TEST)/guest/libcuda.so.1: $(REMOTE_GUEST) $(wildcard $(REMOTE_SRC)/*/*.h) $(REMOTE_TEST_STEPS) $(REMOTE_OUT)/made/made
	@mkdir -p $(@D)
	$(CC) $(CUDA_WARN) $(REMOTE_TEST_CFLAGS) $(CUDA_SANITIZE) -fPIC -fvisibility=hidden $(REMOTE_INCLUDES) -shared -Wl,-Bsymbolic -Wl,-z,nodelete \
		-Wl,-soname,$(@F) -o $@ $(REMOTE_GUEST) $(REMOTE_TEST_STEPS) -lpthread

CUDA_REMOTE_CLIENT := $(wildcard $(CUDA_TEST_SRC)/remote/client/*.c)
$(CUDA_TEST)/remote-client: $(CUDA_REMOTE_CLIENT) $(wildcard $(CUDA_TEST_SRC)/remote/client/*.h) $(REMOTE_TEST_GUEST)/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra $(WERROR) $(REMOTE_TEST_SANITIZE) -I$(CUDA_SRC)/abi -o $@ $(CUDA_REMOTE_CLIENT) -L$(REMOTE_TEST_GUEST) -l:libcuda.so.1 -lpthread

$(CUDA_TEST)/vgpu-cuda-worker: $(REMOTE_WORKER) $(wildcard $(REMOTE_SRC)/*/*.h) $(REMOTE_TEST_STEPS) $(REMOTE_OUT)/made/made
	@mkdir -p $(@D)
	$(CC) $(filter-out -O2 -fPIE -D_FORTIFY_SOURCE=2,$(REMOTE_WORKER_CFLAGS)) $(REMOTE_TEST_CFLAGS) $(CUDA_SANITIZE) $(REMOTE_INCLUDES) -o $@ \
		$(REMOTE_WORKER) $(REMOTE_TEST_STEPS) $(REMOTE_WORKER_LIBS)

$(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/test-remote.o: CUDA_TEST_CFLAGS += -I. -I$(REMOTE_SRC)/wire
$(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/,test-remote.o remote/program.o remote/server.o): CUDA_TEST_CFLAGS += \
	-DREMOTE_WORKER='"$(CURDIR)/$(CUDA_TEST)/vgpu-cuda-worker"' -DREMOTE_CLIENT='"$(CURDIR)/$(CUDA_TEST)/remote-client"' \
	-DREMOTE_DIR='"$(CURDIR)/$(REMOTE_TEST_GUEST)"'
$(CUDA_TEST)/test-remote: $(addprefix $(CUDA_TEST)/obj/,$(addprefix $(REMOTE_SRC)/wire/,channel.o signature.o) \
		$(addprefix $(CUDA_TEST_SRC)/remote/,program.o server.o))
$(CUDA_TEST)/test-remote: | $(CUDA_TEST)/remote-client $(CUDA_TEST)/vgpu-cuda-worker $(REMOTE_OUT)/libnvidia-ml.so.1
# The same by a VM's engine, which is in the client's process here with what stands for the guest's kernel.
CUDA_VM_SRCS := $(CUDA_TEST_SRC)/remote/vm.c $(filter-out engine/main.c,$(ENGINE_SRCS)) $(addprefix $(ENGINE_TESTS_SRC)/,fake_driver.c fake_virgl.c) \
	mdev-driver/model/uapi_check.c
CUDA_VM_CFLAGS = $(ENGINE_WARN) -O1 -g -fPIC -fvisibility=hidden -I$(ENGINE_TESTS_SRC) -Imdev-driver/model $(ENGINE_CPPFLAGS)
$(CUDA_TEST)/vm/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CUDA_VM_CFLAGS) -MMD -MP -c -o $@ $<

$(CUDA_TEST)/vm-shim.so: $(CUDA_VM_SRCS:%.c=$(CUDA_TEST)/vm/%.o)
	$(CC) -shared -Wl,-z,defs -o $@ $^ $(ENGINE_TESTS_LIBS)

CUDA_TESTS_VM := $(addprefix $(CUDA_TEST)/,test-vm test-vm-shares)
$(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/,test-vm.o test-vm-shares.o remote/vm_program.o): CUDA_TEST_CFLAGS += \
	-DREMOTE_WORKER='"$(CURDIR)/$(CUDA_TEST)/vgpu-cuda-worker"' -DREMOTE_CLIENT='"$(CURDIR)/$(CUDA_TEST)/remote-client"' \
	-DREMOTE_DIR='"$(CURDIR)/$(REMOTE_OUT)"' -DVM_SHIM='"$(CURDIR)/$(CUDA_TEST)/vm-shim.so"'
$(CUDA_TESTS_VM): $(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/remote/,program.o vm_program.o)
$(CUDA_TESTS_VM): | $(REMOTE_OUT)/vgpu-guest-cuda-check $(REMOTE_OUT)/libnvidia-ml.so.1 $(CUDA_TEST)/vm-shim.so $(CUDA_TEST)/remote-client $(CUDA_TEST)/vgpu-cuda-worker
$(addprefix $(CUDA_TEST)/,test-vm-shares test-guard-shares): $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/remote/shares.o
# The same by a slice's guard.
CUDA_TESTS_GUARD := $(addprefix $(CUDA_TEST)/,test-container test-guard test-guard-shares)
$(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/,test-container.o test-guard.o remote/guard.o): CUDA_TEST_CFLAGS += -I. -I$(REMOTE_SRC)/wire \
	-DREMOTE_WORKER='"$(CURDIR)/$(CUDA_TEST)/vgpu-cuda-worker"' -DREMOTE_CLIENT='"$(CURDIR)/$(CUDA_TEST)/remote-client"' \
	-DREMOTE_DIR='"$(CURDIR)/$(REMOTE_OUT)"' -DGUARD='"$(CURDIR)/build/engine/vgpu-guard"'
$(CUDA_TESTS_GUARD): $(addprefix $(CUDA_TEST)/obj/$(CUDA_TEST_SRC)/remote/,guard.o program.o)
$(CUDA_TESTS_GUARD): | $(CUDA_TEST)/remote-client $(CUDA_TEST)/vgpu-cuda-worker build/engine/vgpu-guard
$(CUDA_TEST)/obj/$(REMOTE_SRC)/wire/signature.o: CUDA_TEST_CFLAGS += -I$(REMOTE_OUT)/made
$(CUDA_TEST)/obj/$(REMOTE_SRC)/wire/signature.o: $(REMOTE_OUT)/made/made

$(CUDA_TEST)/vgpu-suspend: $(CUDA_SUSPEND_SRCS) $(CUDA_SUSPEND_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CUDA_SUSPEND_CFLAGS) -O1 $(CUDA_SANITIZE) -DVGPU_REAL_DIR='"$(CUDA_TEST_REAL)"' -o $@ $(CUDA_SUSPEND_SRCS) -ldl

$(addprefix $(CUDA_TEST)/,test-suspend test-vm): | $(CUDA_TEST)/vgpu-suspend

$(CUDA_TEST)/vgpu-memory-limit: $(CUDA_LIMIT_SRCS) $(CUDA_SRC)/abi/nvml_abi.h
	@mkdir -p $(@D)
	$(CC) $(CUDA_LIMIT_CFLAGS) -O1 $(CUDA_SANITIZE) -DVGPU_REAL_DIR='"$(CUDA_TEST_REAL)"' -o $@ $(CUDA_LIMIT_SRCS) -ldl

$(CUDA_TEST)/test-memory-limit: | $(CUDA_TEST)/vgpu-memory-limit

$(CUDA_TEST)/vgpu-nvidia-readings: $(CUDA_READINGS_SRCS) $(CUDA_SRC)/abi/nvml_abi.h
	@mkdir -p $(@D)
	$(CC) $(CUDA_LIMIT_CFLAGS) -O1 $(CUDA_SANITIZE) -DVGPU_REAL_DIR='"$(CUDA_TEST_REAL)"' -o $@ $(CUDA_READINGS_SRCS) $(CUDA_READINGS_LIBS)

$(CUDA_TEST)/test-readings: | $(CUDA_TEST)/vgpu-nvidia-readings

# For tests/system/61-cuda*.t: these programs, the fake driver under the names that NVIDIA's files have, and the module that
# stands for NVIDIA's, for the kernel KVER.
CUDA_IN_L1 := build/cuda-in-l1
.PHONY: cuda-in-l1
cuda-in-l1: $(CUDA_TEST)/client-container $(CUDA_TEST)/remote-client $(CUDA_TEST)/real/libcuda.so.1 $(CUDA_TEST)/real/libnvidia-ml.so.1 \
		$(CUDA_IN_L1)/module-$(KVER)/nvidia.ko
	cp $(CUDA_TEST)/client-container $(CUDA_TEST)/remote-client $(CUDA_IN_L1)/module-$(KVER)/nvidia.ko $(CUDA_IN_L1)/
	cp $(CUDA_TEST)/real/libcuda.so.1 $(CUDA_IN_L1)/libcuda.so.570.1
	cp $(CUDA_TEST)/real/libnvidia-ml.so.1 $(CUDA_IN_L1)/libnvidia-ml.so.570.1

$(CUDA_IN_L1)/module-$(KVER)/nvidia.ko: $(wildcard $(CUDA_FAKE_SRC)/module/*)
	@mkdir -p $(@D)
	cp $^ $(@D)
	$(MAKE) -C $(KERNEL_BUILD) M=$(abspath $(@D)) modules

$(CUDA_TEST)/test-container: | $(CUDA_TEST)/client-container $(CUDA_OUT)/libcuda.so.1 $(CUDA_OUT)/libnvidia-ml.so.1 \
		$(CONTAINER_HOOK_OUT)/vgpu-container-hook

$(CUDA_TEST)/test-clients: | $(CUDA_TEST)/client-ffnvcodec $(CUDA_TEST)/plain/libcuda.so
$(CUDA_TEST)/plain/libcuda.so: $(CUDA_TEST)/plain/libcuda.so.1
	ln -sf libcuda.so.1 $@

# tests/cuda/on-card: the door over the driver in CUDA_ON_CARD_REAL, and programs that ask the card.
CUDA_ON_CARD := build/on-card
CUDA_ON_CARD_REAL ?= $(CUDA_TEST_REAL)
$(eval $(call cuda_library,$(CUDA_ON_CARD),$(CUDA_ON_CARD_REAL),$(CURDIR)/$(CUDA_ON_CARD),$(CURDIR)/$(GOVERNOR_OUT),$(CUDA_CFLAGS)))
CUDA_CARD_CC = $(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra $(WERROR) -I$(CUDA_SRC)/abi -I$(CUDA_FAKE_SRC) -I$(CUDA_TEST_SRC) \
	-DREAL_DIR='"$(CUDA_ON_CARD_REAL)"'
CUDA_LOAD_SRCS := tests/bench/cuda/cuda-load.c tests/bench/cuda/by-name.c $(CUDA_TEST_SRC)/spin.c

.PHONY: cuda-on-card cuda-on-card-remote cuda-on-card-memory
cuda-on-card-memory: cuda-on-card $(CUDA_ON_CARD)/card-service $(GOVERNOR_OUT)/vgpu-vault
cuda-on-card-remote: cuda-on-card cuda-remote $(CUDA_ON_CARD)/card-micro $(CUDA_TEST)/remote-client
cuda-on-card: $(addprefix $(CUDA_ON_CARD)/,libcuda.so.1 libnvidia-ml.so.1 card-probe card-tenant cuda-load both-load vgpu-suspend spike) $(GOVERNOR_OUT)/vgpu-arbiter

# What the design takes for true of the driver, asked of it: tests/cuda/on-card begins with it. Its getpid(), pthread_self(),
# ioctl() and dlsym() are what libraries call.
CUDA_SPIKE := $(wildcard $(CUDA_TEST_SRC)/spike/*.c) $(REMOTE_SRC)/worker/confine.c
$(CUDA_TEST)/spike $(CUDA_ON_CARD)/spike: $(CUDA_SPIKE) $(wildcard $(CUDA_TEST_SRC)/spike/*.h) $(CUDA_TEST_SRC)/compute_ptx.h $(REMOTE_OUT)/made/made
	@mkdir -p $(@D)
	$(CC) $(CUDA_WARN) -O2 -fno-strict-aliasing $(REMOTE_INCLUDES) -I$(REMOTE_SRC)/worker -o $@ $(CUDA_SPIKE) \
		$(addprefix -Wl$(comma)--export-dynamic-symbol=,getpid pthread_self ioctl dlsym) -ldl -lpthread

# NVIDIA's libraries as far as it calls them.
CUDA_STAND_INS := $(addprefix $(CUDA_TEST)/stand-ins/,libcudart.so.13 libcufft.so.12)
$(CUDA_STAND_INS): $(CUDA_TEST)/stand-ins/lib%: $(wildcard $(CUDA_TEST_SRC)/spike/stand-ins/*.c)
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra $(WERROR) -shared -fPIC -o $@ $(CUDA_TEST_SRC)/spike/stand-ins/$(firstword $(subst .so, ,$*)).c -ldl

$(addprefix $(CUDA_ON_CARD)/,card-probe card-tenant card-service): $(CUDA_ON_CARD)/%: $(CUDA_TEST_SRC)/%.c $(CUDA_TEST_SRC)/spin.c
	@mkdir -p $(@D)
	$(CUDA_CARD_CC) -o $@ $^ -L$(CUDA_ON_CARD_REAL) -l:libcuda.so.1 -ldl

$(CUDA_ON_CARD)/card-micro: $(CUDA_TEST_SRC)/card-micro.c
	@mkdir -p $(@D)
	$(CUDA_CARD_CC) -o $@ $^ -L$(CUDA_ON_CARD_REAL) -l:libcuda.so.1 -ldl

$(CUDA_ON_CARD)/cuda-load: $(CUDA_LOAD_SRCS)
	@mkdir -p $(@D)
	$(CUDA_CARD_CC) -o $@ $^ -ldl

$(CUDA_ON_CARD)/vgpu-suspend: $(CUDA_SUSPEND_SRCS)
	@mkdir -p $(@D)
	$(CC) $(CUDA_SUSPEND_CFLAGS) -DVGPU_REAL_DIR='"$(CUDA_ON_CARD_REAL)"' -o $@ $^ -ldl

NEED_cuda := cc glslangValidator $(AGENT_PKGS) $(ENGINE_PKGS) libxml-2.0 smartcols vulkan ffnvcodec
NEED_check-cuda := $(NEED_cuda)
CUDA_ALONE := $(addprefix $(CUDA_TEST)/,test-shares test-guard-shares test-vm-shares)
UNIT_ALONE += $(CUDA_ALONE)
UNIT_NEEDS += $(CUDA_ALONE)

.SECONDARY:
.PHONY: check-cuda cuda cuda-tests
cuda-tests: $(CUDA_TESTS) cuda-door vulkan-layer $(CUDA_TEST)/spike $(CUDA_STAND_INS)
# Vulkan and CUDA by one guard.
CUDA_BOTH := $(CUDA_TEST)/remote-client $(CUDA_TEST)/real/libcuda.so.1 $(REMOTE_OUT)/vgpu-cuda-worker build/engine/vgpu-guard \
	build/guest/vk-compute build/guard/udmabuf-shim.so
cuda: cuda-tests $(CUDA_BOTH)
	tests/prove --timer $(addprefix $(CUDA_TEST_SRC)/,libraries.t spike.t) tests/guard/both.t
	tests/prove --timer -e '' $(filter-out $(CUDA_ALONE),$(CUDA_TESTS))

check-cuda: cuda cuda-budgets
	tests/prove --timer -e '' $(CUDA_ALONE)
	tests/prove --timer -e '' $(CUDA_TEST)/test-vm :: -m slow

# Instructions for a launch, by valgrind.
.PHONY: cuda-on-card-test
cuda-on-card-test:
	tests/prove --timer $(CUDA_TEST_SRC)/on-card-memory.t

.PHONY: cuda-budgets
cuda-budgets: bench-cuda-programs
	tests/prove --timer $(CUDA_TEST_SRC)/budgets.t

# Races between threads. The fake driver is not instrumented.
CUDA_TSAN := $(addprefix build/tsan/cuda/test-,threads mapping charge displace)
.PHONY: unit-tsan tsan-cuda
unit-tsan: tsan-cuda
tsan-cuda:
	$(MAKE) CUDA_TEST=build/tsan/cuda CUDA_SANITIZE='-fsanitize=thread -Wno-tsan' $(CUDA_TSAN)
	TSAN_OPTIONS=die_after_fork=0:halt_on_error=1:ignore_noninstrumented_modules=1 tests/prove -e '' $(CUDA_TSAN)

# Both ends of CUDA by a worker, each of which looks at its own threads; what one end writes under the other's eyes is
# test-channel's, with both in one process. They are built after the others, in the same place.
CUDA_TSAN_REMOTE := $(addprefix build/tsan/cuda/test-,remote channel)
CUDA_TSAN_CASES := threads local stress callbacks waiting order nodes any-nodes objects lost killed
.PHONY: tsan-cuda-remote
unit-tsan: tsan-cuda-remote
tsan-cuda-remote: tsan-cuda
	$(MAKE) CUDA_TEST=build/tsan/cuda CUDA_SANITIZE='-fsanitize=thread -Wno-tsan' REMOTE_TEST_SANITIZE=-fsanitize=thread \
		REMOTE_TEST_GUEST=build/tsan/cuda/guest REMOTE_TEST_STEPS=$(CUDA_TEST_SRC)/remote/steps.c $(CUDA_TSAN_REMOTE)
	TSAN_OPTIONS=halt_on_error=1 tests/prove -e '' build/tsan/cuda/test-channel
	for case in $(CUDA_TSAN_CASES); do TSAN_OPTIONS=die_after_fork=0:halt_on_error=1:ignore_noninstrumented_modules=1 \
		tests/prove -e '' build/tsan/cuda/test-remote :: -p /remote/$$case || exit 1; done

-include $(shell find $(CUDA_TEST) -name '*.d' 2>/dev/null)
