# SPDX-License-Identifier: MIT
# vgpu-guard, the door for containers; included by engine.mk. It links the parts that it shares with the
# engine.

GUARD_SRCS := $(wildcard engine/guard/*.c)
GUARD_COMMON := $(addprefix engine/,children.c cuda_alone.c cuda_worker.c gpu.c icd.c icd_known.c icd_probe.c guest_log.c options.c renderer.c sandbox.c shader_cache.c venus_rings.c vulkan_driver.c watchdog.c worker.c)
GUARD_OBJS := $(patsubst %.c,build/%.o,$(GUARD_SRCS) $(GUARD_COMMON))
GUARD_CPPFLAGS := -UG_LOG_DOMAIN -DG_LOG_DOMAIN='"vgpu-guard"' -Iengine/guard -Igovernor/member -Igovernor/protocol

engine: build/engine/vgpu-guard

build/engine/vgpu-guard: $(GUARD_OBJS) build/governor/libgovernor-member.a
	$(CC) $(ENGINE_CFLAGS) $(ENGINE_LDFLAGS) -o $@ $^ $(ENGINE_LIBS) -lpthread

build/engine/guard/%.o: ENGINE_CPPFLAGS += $(GUARD_CPPFLAGS)

# Unit tests: a session, sanitized, between a client of the test's and a fake virglrenderer.
GUARD_TESTS_SRC := tests/unit/guard
GUARD_TESTS_OUT := build/unit/guard
GUARD_TESTS := $(patsubst tests/%.c,build/%,$(wildcard $(GUARD_TESTS_SRC)/test-*.c))
GUARD_SESSION := $(addprefix engine/guard/,blob.c commands.c keeper_session.c keeper_wire.c serve.c session.c slots.c \
	submit.c sync.c wire.c) \
	engine/renderer.c engine/gpu.c engine/guest_log.c engine/venus_rings.c engine/worker.c
GUARD_FAKES := $(ENGINE_TESTS_SRC)/fake_virgl.c $(GUARD_TESTS_SRC)/fixture.c tests/guard/vtest_client.c
GUARD_TESTS_CPPFLAGS = $(ENGINE_CPPFLAGS) $(GUARD_CPPFLAGS) -I$(GUARD_TESTS_SRC) -Itests/guard
GUARD_TESTS_COMMON := $(patsubst %.c,$(GUARD_TESTS_OUT)/%.o,$(GUARD_SESSION) $(GUARD_FAKES))
UNIT_TESTS += $(GUARD_TESTS)

$(GUARD_TESTS_OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(GUARD_TESTS_CPPFLAGS) $(ENGINE_TESTS_CFLAGS) -MMD -MP -c -o $@ $<

$(GUARD_TESTS): $(GUARD_TESTS_OUT)/%: $(GUARD_TESTS_OUT)/$(GUARD_TESTS_SRC)/%.o $(GUARD_TESTS_COMMON)
	$(CC) $(ENGINE_TESTS_CFLAGS) -o $@ $^ $(ENGINE_TESTS_LIBS)

# Over stand-ins for the kernel and for a member of a slice.
$(GUARD_TESTS_OUT)/test-keeper: $(addprefix $(GUARD_TESTS_OUT)/engine/guard/,keeper.o kept.o)

.SECONDARY: $(GUARD_TESTS_COMMON) \
	$(GUARD_TESTS:$(GUARD_TESTS_OUT)/%=$(GUARD_TESTS_OUT)/$(GUARD_TESTS_SRC)/%.o)

# The real guard on lavapipe, with Mesa's own client and with hostile ones: tests/guard/live.t.
GUARD_LIVE := build/guard/t-hostile build/guard/t-lingering build/guard/t-hoard build/guard/t-asleep build/guard/t-worker-dies build/guard/udmabuf-shim.so build/guard/chain.so build/guard/layer/VkLayer_vgpu_guarded.json build/engine/vgpu-guard build/guest/vk-compute build/guest/vk-waits build/guest/vk-threads
UNIT_TESTS += tests/guard/live.t tests/guard/kills.t tests/guard/layer.t
UNIT_ALONE += tests/guard/live.t tests/guard/kills.t
UNIT_NEEDS += $(GUARD_LIVE)

.PHONY: check-guard guard-programs
# The system tests attack it with this.
guard-programs: build/guard/t-hostile build/guard/t-hoard

check-guard: $(GUARD_TESTS) $(GUARD_LIVE)
	tests/prove -v --exec '' $(GUARD_TESTS) tests/guard/live.t tests/guard/kills.t tests/guard/layer.t

# What takes longer; make check-all runs it.
.PHONY: guard-rings
guard-rings: $(GUARD_LIVE)
	tests/prove -v --exec '' tests/guard/rings.t

build/guard/t-hostile build/guard/t-asleep build/guard/t-worker-dies: build/guard/%: tests/guard/%.c tests/guard/vtest_client.c \
		$(wildcard tests/guard/*.h engine/guard/*.h)
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(GUARD_TESTS_CPPFLAGS) -I$(ENGINE_TESTS_SRC) -O2 -g -o $@ $(filter %.c,$^) $(ENGINE_TESTS_LIBS)

build/guard/t-lingering: tests/guard/t-lingering.c tests/guard/vtest_client.c tests/unit/governor/lingering.c \
		$(wildcard tests/guard/*.h engine/guard/*.h) tests/unit/governor/lingering.h
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(GUARD_TESTS_CPPFLAGS) -I$(ENGINE_TESTS_SRC) -Itests/unit/governor -O2 -g -o $@ \
		$(filter %.c,$^) $(ENGINE_TESTS_LIBS)

build/guard/t-hoard: tests/guard/t-hoard.c engine/guard/vtest.h
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) -D_GNU_SOURCE -Iengine/guard -O2 -g -o $@ $< -lvulkan

# If there is no /dev/udmabuf, lavapipe needs this to share its memory.
build/guard/udmabuf-shim.so: tests/rig/lib/udmabuf-shim.c
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -O1 -o $@ $< -ldl

build/guard/chain.so: tests/guard/chain.c
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) -shared -fPIC -O1 -o $@ $<

# The layer of containers, which looks for sockets in the build's folder.
build/guard/layer/VkLayer_vgpu_guarded.json: $(addprefix governor/vulkan/,guarded/guarded.c handle_map.c \
		guarded/VkLayer_vgpu_guarded.json.in)
	@mkdir -p $(@D)
	$(CC) $(VK_LAYER_CFLAGS) -DVTEST_DIR='"$(CURDIR)/build/guard/vtest"' $(GOVERNOR_OLD_LIBC) $(VK_LAYER_LDFLAGS) \
		-o $(@D)/libvgpu_guarded.so $(filter %.c,$^)
	sed 's|@LIBRARY@|./libvgpu_guarded.so|' $(lastword $^) > $@

-include $(GUARD_OBJS:.o=.d) $(GUARD_TESTS_COMMON:.o=.d) $(wildcard $(GUARD_TESTS_OUT)/$(GUARD_TESTS_SRC)/*.d)
