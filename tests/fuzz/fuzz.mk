# SPDX-License-Identifier: MIT
# Fuzzing with libFuzzer (clang). tests/fuzz/GROUP/NAME.c is built to build/fuzz/NAME, with the parts that its group
# names here.
#
#	make fuzz [JOBS=2]	the corpus, and then as many inputs as run.sh says, the same each time
#	make fuzz-long SECONDS=3600	each program for so long; what it finds stays in build/fuzz/
#	make fuzz-keep		takes what reaches new code into tests/fuzz/corpus/, as little as does it

FUZZ_CC ?= clang
FUZZ_OUT := build/fuzz
# make coverage sets none of them, and FUZZ_MAIN instead of libFuzzer.
FUZZ_SANITIZE ?= -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
FUZZ_MAIN ?=
# Longer inputs add nothing, and the repository keeps them forever.
FUZZ_KEPT_LEN := 160
FUZZ_GROUPS := model engine guard agent governor cuda cuda_remote fleet $(KUBE_ALL)

FUZZ_model_PARTS := $(wildcard mdev-driver/model/*.c)
FUZZ_model_CFLAGS := -std=c11 -Wall -Wextra $(WERROR) -Imdev-driver/model
FUZZ_model_LIBS :=

FUZZ_engine_PARTS := $(filter-out $(addprefix engine/,main.c cuda_alone.c cuda_worker.c icd_probe.c icd.c icd_known.c describe.c vulkan_driver.c),$(ENGINE_SRCS)) \
	$(addprefix $(ENGINE_TESTS_SRC)/,fake_cuda_worker.c fake_driver.c fake_virgl.c fixture.c) mdev-driver/model/uapi_check.c
FUZZ_engine_CFLAGS = $(ENGINE_WARN) $(ENGINE_CPPFLAGS) -I$(ENGINE_TESTS_SRC) -Imdev-driver/model
FUZZ_engine_LIBS = $(ENGINE_TESTS_LIBS)

FUZZ_guard_PARTS := $(GUARD_SESSION) $(GUARD_FAKES)
FUZZ_guard_CFLAGS = $(ENGINE_WARN) $(GUARD_TESTS_CPPFLAGS) -I$(ENGINE_TESTS_SRC) -Imdev-driver/model
FUZZ_guard_LIBS = $(ENGINE_TESTS_LIBS)

# vgpud's input from files and from the bus, and the hooks' from libvirt.
FUZZ_agent_PARTS := $(addprefix $(AGENT_SRC)/,$(addprefix model/,admission.c placement.c request.c \
	slice.c slice_keys.c)) $(addprefix $(LIB_SRC)/,vgpud_conf.c schedule_conf.c systemd.c program.c bus.c host_root.c vgpu.c mdev.c conf.c \
	gpu_name.c gpus.c types.c domain.c tenants_conf.c cards.c gpu_identity.c pci.c nvidia_readings.c)
FUZZ_agent_PKGS := gio-2.0 json-glib-1.0 libxml-2.0
FUZZ_agent_PKG_CFLAGS = $(call once,FUZZ_agent_PKG_CFLAGS,pkg-config --cflags $(FUZZ_agent_PKGS))
FUZZ_agent_CFLAGS = $(AGENT_CFLAGS) $(FUZZ_agent_PKG_CFLAGS)
FUZZ_agent_LIBS = $(call once,FUZZ_agent_LIBS,pkg-config --libs $(FUZZ_agent_PKGS))

# Members' messages and pages.
FUZZ_governor_PARTS := $(GOVERNOR_CORE) $(filter-out %/main.c,$(GOVERNOR_ARBITER))
FUZZ_governor_CFLAGS = $(GOVERNOR_WARN) $(GOVERNOR_INCLUDES) $(GOVERNOR_PKG_CFLAGS)
FUZZ_governor_LIBS = $(GOVERNOR_PKG_LIBS)

# What users of a cluster write, and what a node reads of their jobs.
FUZZ_fleet_PARTS := $(FLEET_UNIT_PARTS)
FUZZ_fleet_CFLAGS = $(FLEET_WARN)
FUZZ_fleet_LIBS :=

# What the kubelet and the API send to vgpu-kubelet; only where its libraries are.
FUZZ_kubernetes_PARTS := $(filter-out %/main.c,$(KUBE_SOURCES)) $(KUBE_PROTO) $(KUBE_LIB)
FUZZ_kubernetes_CFLAGS = $(KUBE_WARN) -Wno-strict-prototypes $(KUBE_PKG_CFLAGS)
FUZZ_kubernetes_LIBS = $(KUBE_PKG_LIBS)

# The CUDA door's maps of what it has charged.
FUZZ_cuda_PARTS := $(addprefix governor/cuda/memory/,ranges.c mappings.c)
FUZZ_cuda_CFLAGS = -std=c11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) $(CUDA_INCLUDES)
FUZZ_cuda_LIBS := -lpthread

# What a program sends to its CUDA worker. The driver's functions are called by types that are made from the same table.
FUZZ_cuda_remote_PARTS := $(filter-out $(addprefix $(REMOTE_SRC)/worker/,main.c listen.c control.c confine.c driver.c channels.c host_memory.c),$(REMOTE_WORKER))
FUZZ_cuda_remote_CFLAGS = -std=c11 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -fno-sanitize=function $(REMOTE_INCLUDES) -I$(REMOTE_SRC)/worker
FUZZ_cuda_remote_LIBS := -lpthread
FUZZ_cuda_remote_NEEDS := $(REMOTE_OUT)/made/made

# The parts of a group are compiled once for all of its programs. NEEDS: what must be made before.
define fuzz_group
FUZZ_$(1)_TESTS := $(patsubst tests/fuzz/$(1)/%.c,$(FUZZ_OUT)/%,$(wildcard tests/fuzz/$(1)/*.c))
FUZZ_TESTS += $$(FUZZ_$(1)_TESTS)

$(FUZZ_OUT)/obj/$(1)/%.o: %.c | $$(FUZZ_$(1)_NEEDS)
	@mkdir -p $$(@D)
	$$(FUZZ_CC) -O1 -g -fno-omit-frame-pointer $$(FUZZ_SANITIZE) $$(FUZZ_$(1)_CFLAGS) -MMD -MP -c -o $$@ $$<

$$(FUZZ_$(1)_TESTS): $(FUZZ_OUT)/%: $(FUZZ_OUT)/obj/$(1)/tests/fuzz/$(1)/%.o \
		$$(patsubst %.c,$(FUZZ_OUT)/obj/$(1)/%.o,$$(FUZZ_$(1)_PARTS) $$(FUZZ_MAIN))
	$$(FUZZ_CC) $$(FUZZ_SANITIZE) -o $$@ $$^ $$(FUZZ_$(1)_LIBS)
endef
$(foreach group,$(FUZZ_GROUPS),$(eval $(call fuzz_group,$(group))))

.PHONY: fuzz-build fuzz fuzz-long fuzz-keep
fuzz-build: $(FUZZ_TESTS)

fuzz: fuzz-build
	tests/prove --timer -v -j$(JOBS) -e tests/fuzz/run.sh $(FUZZ_TESTS)

fuzz-long: fuzz-build
	FUZZ_SECONDS=$(or $(SECONDS),600) tests/prove --timer -v -j$(JOBS) -e tests/fuzz/run.sh $(FUZZ_TESTS)

fuzz-keep: fuzz-build
	for program in $(FUZZ_TESTS); do \
		name=$$(basename $$program) && kept=$$(tests/fuzz/inputs unpack $$name) && \
		mkdir -p $$program.found && \
		$$program -set_cover_merge=1 -max_len=$(FUZZ_KEPT_LEN) $$kept $$program.found && \
		tests/fuzz/inputs pack $$name || exit 1; \
	done

-include $(shell find $(FUZZ_OUT)/obj -name '*.d' 2>/dev/null)
