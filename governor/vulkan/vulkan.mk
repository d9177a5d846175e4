# SPDX-License-Identifier: MIT
# The governor's Vulkan layer: build/governor/vulkan/. Included by the top Makefile, after
# governor.mk, whose libvgpu-member it links.

VK_LAYER_SRC := governor/vulkan
VK_LAYER_OUT := build/governor/vulkan
VK_LAYER_NAME := VkLayer_vgpu_governor.json
VK_LAYER_DIR = $(GOVERNOR_LIBRARIES)
VK_LAYER_SRCS := $(wildcard $(VK_LAYER_SRC)/*.c) $(GOVERNOR_LANE)
# -fno-plt: calls of the member library need no extra jump.
VK_LAYER_CFLAGS := -std=c11 -D_GNU_SOURCE -O2 -g -fPIC -fno-plt -fvisibility=hidden -Wall -Wextra $(WERROR) \
	-Wshadow -Wstrict-prototypes -Wmissing-prototypes $(addprefix -Igovernor/,lane member protocol core)
# No symbol may be taken from the application, and none may be missing.
VK_LAYER_LDFLAGS := -shared -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,-Bsymbolic '-Wl,-rpath,$$ORIGIN'

VK_LAYER_TESTS_SRC := tests/unit/governor-vulkan
VK_LAYER_TESTS_OUT := build/unit/governor-vulkan
VK_LAYER_TESTS := $(patsubst $(VK_LAYER_TESTS_SRC)/test-%.c,$(VK_LAYER_TESTS_OUT)/test-%,\
	$(wildcard $(VK_LAYER_TESTS_SRC)/test-*.c))
VK_LAYER_SANITIZE ?= -fsanitize=address,undefined -fno-sanitize-recover=all
VK_LAYER_TESTS_CFLAGS = -std=c11 -D_GNU_SOURCE -O1 -g $(VK_LAYER_SANITIZE) -Wall -Wextra $(WERROR) \
	-Wshadow -Wstrict-prototypes -Wmissing-prototypes $(addprefix -Igovernor/,lane member protocol core) -I$(VK_LAYER_TESTS_OUT) -I$(VK_LAYER_SRC) \
	-I$(VK_LAYER_TESTS_SRC) -DARBITER='"$(CURDIR)/$(GOVERNOR_OUT)/vgpu-arbiter"' \
	-DLIVE_LAYER_DIR='"$(CURDIR)/$(VK_LAYER_OUT)"' -DLAYER_DIR='"$(CURDIR)/$(VK_LAYER_TESTS_OUT)/layer"' \
	-DASAN_LIBRARY='"$(VK_LAYER_ASAN_LIBRARY)"' \
	$(VK_LAYER_TESTS_PKG_CFLAGS)
VK_LAYER_TESTS_PKG_CFLAGS = $(call once,VK_LAYER_TESTS_PKG_CFLAGS,pkg-config --cflags glib-2.0 vulkan)
VK_LAYER_TESTS_PKG_LIBS = $(call once,VK_LAYER_TESTS_PKG_LIBS,pkg-config --libs glib-2.0 vulkan)
VK_LAYER_ASAN_LIBRARY = $(call once,VK_LAYER_ASAN_LIBRARY,$(CC) -print-file-name=libasan.so)
UNIT_TESTS += $(VK_LAYER_TESTS)
# It compares times of the processors, which are the GPU there.
UNIT_ALONE += $(VK_LAYER_TESTS_OUT)/test-hard

.PHONY: vulkan-layer check-vulkan-layer install-vulkan-layer
governor: vulkan-layer
install-governor: install-vulkan-layer
vulkan-layer: $(VK_LAYER_OUT)/libvgpu_governor.so $(VK_LAYER_OUT)/$(VK_LAYER_NAME) $(VK_LAYER_OUT)/libvgpu_guarded.so

$(VK_LAYER_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(VK_LAYER_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(GOVERNOR_OLD_LIBC) -MMD -MP -c -o $@ $<

$(VK_LAYER_OUT)/libvgpu_governor.so: $(patsubst %.c,$(VK_LAYER_OUT)/obj/%.o,$(VK_LAYER_SRCS)) \
		$(GOVERNOR_MEMBER_SHARED)
	ln -sf ../$(notdir $(GOVERNOR_MEMBER_SHARED)) $(@D)/
	$(CC) $(VK_LAYER_CFLAGS) $(CFLAGS) $(VK_LAYER_LDFLAGS) $(LDFLAGS) -o $@ $^

# In the build's folder the library is beside it. The installed one is in a folder of its own, because programs must not
# link it.
$(VK_LAYER_OUT)/$(VK_LAYER_NAME): $(VK_LAYER_SRC)/$(VK_LAYER_NAME).in
	@mkdir -p $(@D)
	sed 's|@LIBRARY@|./libvgpu_governor.so|' $< > $@

# For containers with a guarded slice.
VK_GUARDED := $(VK_LAYER_SRC)/guarded
VK_GUARDED_NAME := VkLayer_vgpu_guarded.json

$(VK_LAYER_OUT)/libvgpu_guarded.so: $(addprefix $(VK_LAYER_OUT)/obj/,$(VK_GUARDED)/guarded.o $(VK_LAYER_SRC)/handle_map.o)
	$(CC) $(VK_LAYER_CFLAGS) $(CFLAGS) $(VK_LAYER_LDFLAGS) $(LDFLAGS) -o $@ $^

install-vulkan-layer: $(VK_LAYER_OUT)/libvgpu_governor.so $(VK_LAYER_OUT)/libvgpu_guarded.so
	install -D -m 0644 -t $(DESTDIR)$(VK_LAYER_DIR) $^
	install -d $(DESTDIR)$(PREFIX)/lib/mdev-vgpu
	sed 's|@LIBRARY@|$(VK_LAYER_DIR)/libvgpu_guarded.so|' $(VK_GUARDED)/$(VK_GUARDED_NAME).in > \
		$(DESTDIR)$(PREFIX)/lib/mdev-vgpu/$(VK_GUARDED_NAME)
	install -d $(DESTDIR)$(PREFIX)/share/vulkan/implicit_layer.d
	sed 's|@LIBRARY@|$(VK_LAYER_DIR)/libvgpu_governor.so|' $(VK_LAYER_SRC)/$(VK_LAYER_NAME).in > \
		$(DESTDIR)$(PREFIX)/share/vulkan/implicit_layer.d/$(VK_LAYER_NAME)
	chmod 0644 $(DESTDIR)$(PREFIX)/share/vulkan/implicit_layer.d/$(VK_LAYER_NAME)

# The layer under test: sanitized, with a member that the tests command.
$(VK_LAYER_TESTS_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(VK_LAYER_TESTS_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<

$(VK_LAYER_TESTS_OUT)/layer/libvgpu_governor.so: $(patsubst %.c,$(VK_LAYER_TESTS_OUT)/obj/%.o,\
		$(VK_LAYER_SRCS) $(VK_LAYER_TESTS_SRC)/fake_member.c governor/member/sockets.c)
	@mkdir -p $(@D)
	$(CC) $(VK_LAYER_SANITIZE) -shared -Wl,-Bsymbolic -o $@ $^ -lpthread
	sed 's|@LIBRARY@|./libvgpu_governor.so|' $(VK_LAYER_SRC)/$(VK_LAYER_NAME).in > $(@D)/$(VK_LAYER_NAME)

$(VK_LAYER_TESTS_OUT)/spin.h: $(VK_LAYER_TESTS_SRC)/spin.comp
	@mkdir -p $(@D)
	glslangValidator -V --vn spin_spirv -o $@ $< >/dev/null

$(VK_LAYER_TESTS_OUT)/obj/$(VK_LAYER_TESTS_SRC)/gpu.o: $(VK_LAYER_TESTS_OUT)/spin.h

# Parts without Vulkan are tested directly.
VK_LAYER_TESTS_COMMON := $(addprefix $(VK_LAYER_TESTS_OUT)/obj/,$(VK_LAYER_TESTS_SRC)/gpu.o \
	$(addprefix $(VK_LAYER_TESTS_SRC)/,gpu_work.o host.o mock_driver.o registry.o) \
	$(addprefix $(VK_LAYER_SRC)/,handle_map.o ticks.o) governor/lane/learn.o)

$(VK_LAYER_TESTS): $(VK_LAYER_TESTS_OUT)/test-%: $(VK_LAYER_TESTS_OUT)/obj/$(VK_LAYER_TESTS_SRC)/test-%.o \
		$(VK_LAYER_TESTS_COMMON) | $(VK_LAYER_TESTS_OUT)/layer/libvgpu_governor.so
	$(CC) $(VK_LAYER_SANITIZE) -o $@ $^ $(VK_LAYER_TESTS_PKG_LIBS)

# Over stand-ins for a driver, the member and the layer's own counts.
$(VK_LAYER_TESTS_OUT)/test-driver-memory: $(VK_LAYER_TESTS_OUT)/obj/$(VK_LAYER_SRC)/driver_memory.o

# Over stand-ins for a driver and the member.
$(VK_LAYER_TESTS_OUT)/test-physical: $(VK_LAYER_TESTS_OUT)/obj/$(VK_LAYER_SRC)/physical.o \
	$(VK_LAYER_TESTS_OUT)/obj/governor/member/sockets.o
$(VK_LAYER_TESTS_OUT)/test-engines: $(VK_LAYER_TESTS_OUT)/obj/$(VK_LAYER_SRC)/engines.o

.SECONDARY:

# The installed layer.
$(addprefix $(VK_LAYER_TESTS_OUT)/,test-live test-hard test-several): | vulkan-layer $(GOVERNOR_OUT)/vgpu-arbiter

.PHONY: unit-device-clock unit-tsan tsan-vulkan-layer
check-vulkan-layer: $(VK_LAYER_TESTS) unit-device-clock
	tests/prove -e '' $(VK_LAYER_TESTS)

# On software Vulkan the host's clock times most work, so tests of the GPU's own timestamps run a second time.
VK_LAYER_TESTS_OF_TIME := $(addprefix $(VK_LAYER_TESTS_OUT)/test-,hard layer live semaphore submit torture wait)

unit-device-clock: $(VK_LAYER_TESTS_OF_TIME)
	VGPU_GOVERNOR_CLOCK=device tests/prove -e '' $(VK_LAYER_TESTS_OF_TIME)

# Races between threads that the sanitizer sees: not in the driver, which is not built with it.
unit-tsan: tsan-vulkan-layer
tsan-vulkan-layer:
	$(MAKE) VK_LAYER_TESTS_OUT=build/tsan/vulkan VK_LAYER_SANITIZE=-fsanitize=thread build/tsan/vulkan/test-torture
	TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=$(CURDIR)/$(VK_LAYER_TESTS_SRC)/tsan.supp \
		tests/prove -e '' build/tsan/vulkan/test-torture

-include $(shell find $(VK_LAYER_OUT) $(VK_LAYER_TESTS_OUT) -name '*.d' 2>/dev/null)
