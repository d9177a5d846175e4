# SPDX-License-Identifier: MIT
# The governor: vgpu-arbiter, the member library that doors link, their unit tests and fuzzing. Included by the top
# Makefile, which sets VERSION and PREFIX. A door has a fragment of its own.

GOVERNOR_SRC := governor
GOVERNOR_OUT ?= build/governor
GOVERNOR_TESTS_SRC := tests/unit/governor
GOVERNOR_TESTS_OUT ?= build/unit/governor
# What a card does with its time, for the simulation and for the fake CUDA driver.
CARD_MODEL_SRC := tests/lib/card
GOVERNOR_INCLUDES := -I. $(addprefix -I$(GOVERNOR_SRC)/,protocol core member arbiter vault)
GOVERNOR_TEST_INCLUDES := $(GOVERNOR_INCLUDES) -I$(GOVERNOR_SRC)/lane
GOVERNOR_WARN := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -fno-omit-frame-pointer
comma := ,
GOVERNOR_PKGS := glib-2.0 libsystemd
GOVERNOR_PKG_CFLAGS = $(call once,GOVERNOR_PKG_CFLAGS,pkg-config --cflags $(GOVERNOR_PKGS))
GOVERNOR_PKG_LIBS = $(call once,GOVERNOR_PKG_LIBS,pkg-config --libs $(GOVERNOR_PKGS))
GOVERNOR_SANITIZE ?= -fsanitize=address,undefined -fno-sanitize-recover=all
# For what is loaded into programs of containers, whose C library may be older, or musl.
GOVERNOR_OLD_LIBC := -U_FORTIFY_SOURCE -include $(GOVERNOR_SRC)/member/old_libc.h
# Where glibc before 2.34 has functions that are in libc.so.6 since. An auxiliary library is loaded if it is there; an image
# with a newer glibc may have been made without these. For all doors, the member library names them: glibc 2.31 aborts if
# a library that dlopen() is called for has some.
GOVERNOR_OLD_LIBRARIES := -Wl,--auxiliary=libpthread.so.0 -Wl,--auxiliary=libdl.so.2
GOVERNOR_HARDEN = -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 $(CPPFLAGS) $(CFLAGS)

GOVERNOR_CORE := $(wildcard $(GOVERNOR_SRC)/core/*.c)
GOVERNOR_ARBITER := $(wildcard $(GOVERNOR_SRC)/arbiter/*.c)
GOVERNOR_VAULT := $(wildcard $(GOVERNOR_SRC)/vault/*.c)
# Linked into other programs: only the parts of the core without GLib.
GOVERNOR_MEMBER := $(wildcard $(GOVERNOR_SRC)/member/*.c) $(addprefix $(GOVERNOR_SRC)/core/,backlog.c budget.c coverage.c silence.c)
# Linked into each door.
GOVERNOR_LANE := $(wildcard $(GOVERNOR_SRC)/lane/*.c)
GOVERNOR_MEMBER_LIB := $(GOVERNOR_OUT)/libgovernor-member.a
# The same for doors. A process loads it once, however many doors it uses, and so is one member.
GOVERNOR_MEMBER_SHARED := $(GOVERNOR_OUT)/libvgpu-member.so.1
GOVERNOR_MULTIARCH = $(call once,GOVERNOR_MULTIARCH,$(CC) -print-multiarch)
GOVERNOR_LIBRARIES = $(PREFIX)/lib/$(GOVERNOR_MULTIARCH)/mdev-vgpu

governor_objects = $(patsubst %.c,$(GOVERNOR_OUT)/$(1)/%.o,$(2))

.PHONY: arbiter governor install-arbiter install-governor
arbiter: $(GOVERNOR_OUT)/vgpu-arbiter $(GOVERNOR_OUT)/vgpu-vault $(GOVERNOR_MEMBER_SHARED)
governor: arbiter $(GOVERNOR_MEMBER_LIB)

$(GOVERNOR_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(GOVERNOR_HARDEN) -fPIE $(GOVERNOR_WARN) $(GOVERNOR_INCLUDES) $(GOVERNOR_PKG_CFLAGS) \
		-DVGPU_VERSION='"$(VERSION)"' -DG_LOG_DOMAIN='"vgpu-arbiter"' -MMD -MP -c -o $@ $<

$(GOVERNOR_OUT)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(GOVERNOR_HARDEN) $(GOVERNOR_OLD_LIBC) -fPIC -fvisibility=hidden $(GOVERNOR_WARN) $(GOVERNOR_INCLUDES) \
		-MMD -MP -c -o $@ $<

$(GOVERNOR_OUT)/test/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O1 $(GOVERNOR_SANITIZE) $(GOVERNOR_WARN) $(GOVERNOR_TEST_INCLUDES) -I$(GOVERNOR_TESTS_SRC) -I$(CARD_MODEL_SRC) \
		$(GOVERNOR_PKG_CFLAGS) -DVGPU_VERSION='"$(VERSION)"' -DARBITER='"$(CURDIR)/$(GOVERNOR_OUT)/vgpu-arbiter-test"' \
		-DVAULT='"$(CURDIR)/$(GOVERNOR_OUT)/vgpu-vault-test"' \
		-MMD -MP -c -o $@ $<

$(GOVERNOR_OUT)/vgpu-arbiter: $(call governor_objects,obj,$(GOVERNOR_CORE) $(GOVERNOR_ARBITER))
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(GOVERNOR_PKG_LIBS)

$(GOVERNOR_OUT)/vgpu-vault: $(call governor_objects,obj,$(GOVERNOR_VAULT))
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(GOVERNOR_PKG_LIBS)

$(GOVERNOR_MEMBER_LIB): $(call governor_objects,pic,$(GOVERNOR_MEMBER))
	rm -f $@
	$(AR) rcs $@ $^

$(GOVERNOR_MEMBER_SHARED): $(call governor_objects,pic,$(GOVERNOR_MEMBER))
	$(CC) $(CFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,-Bsymbolic $(GOVERNOR_OLD_LIBRARIES) \
		$(LDFLAGS) -o $@ $^

# A unit test is a file test-NAME.c, linked with everything except main(), under the sanitizers; live ones start a
# sanitized arbiter.
GOVERNOR_TESTS := $(patsubst $(GOVERNOR_TESTS_SRC)/%.c,$(GOVERNOR_TESTS_OUT)/%,\
	$(wildcard $(GOVERNOR_TESTS_SRC)/test-*.c))
GOVERNOR_TESTS_COMMON := $(call governor_objects,test,$(sort $(GOVERNOR_CORE) $(GOVERNOR_MEMBER) $(GOVERNOR_LANE) \
	$(filter-out %/main.c,$(GOVERNOR_ARBITER)) \
	$(filter-out $(GOVERNOR_TESTS_SRC)/test-%.c,$(wildcard $(GOVERNOR_TESTS_SRC)/*.c)) $(CARD_MODEL_SRC)/card_model.c))
UNIT_TESTS += $(GOVERNOR_TESTS)
# Run with nothing beside: some bounds are parts of a processor for a flood of messages, and the work of many threads
# that must each be woken beside that of one. The bounds of the other tests are orders, counts, and what happens in one
# run with something and without.
UNIT_ALONE += $(addprefix $(GOVERNOR_TESTS_OUT)/test-,flood kills markers wakes)

$(GOVERNOR_OUT)/vgpu-arbiter-test: $(call governor_objects,test,$(GOVERNOR_CORE) $(GOVERNOR_ARBITER))
	$(CC) $(GOVERNOR_SANITIZE) -o $@ $^ $(LDFLAGS) $(GOVERNOR_PKG_LIBS)

$(GOVERNOR_OUT)/vgpu-vault-test: $(call governor_objects,test,$(GOVERNOR_VAULT))
	$(CC) $(GOVERNOR_SANITIZE) -o $@ $^ $(LDFLAGS) $(GOVERNOR_PKG_LIBS)

$(GOVERNOR_TESTS): $(GOVERNOR_TESTS_OUT)/%: $(GOVERNOR_OUT)/test/$(GOVERNOR_TESTS_SRC)/%.o \
		$(GOVERNOR_TESTS_COMMON) | $(GOVERNOR_OUT)/vgpu-arbiter-test $(GOVERNOR_OUT)/vgpu-vault-test
	@mkdir -p $(@D)
	$(CC) $(GOVERNOR_SANITIZE) -o $@ $^ $(LDFLAGS) $(GOVERNOR_PKG_LIBS) -lm

# Sees a member's writes, see kill_point.h.
$(GOVERNOR_TESTS_OUT)/test-kills: private LDFLAGS += $(addprefix -Wl$(comma)--wrap=,mmap mremap send recv recvmsg \
	connect close poll pthread_sigmask)

# Members with another clock than the arbiter's.
$(GOVERNOR_TESTS_OUT)/test-clock: private LDFLAGS += -Wl,--wrap=clock_gettime

.PHONY: check-governor unit-tsan tsan-governor
check-governor: $(GOVERNOR_TESTS)
	tests/prove -v --exec '' $(GOVERNOR_TESTS)

# Races between a member's threads. The arbiter has one thread; test-kills sees writes by signals of its own. The
# sanitizer knows no fences: ours are between processes, which it does not see either. A member's child starts a thread
# of its own.
GOVERNOR_TSAN_TESTS := $(addprefix build/tsan/governor/test-,classes gate live markers objects vault waits)
unit-tsan: tsan-governor
tsan-governor:
	$(MAKE) GOVERNOR_OUT=build/tsan/governor GOVERNOR_TESTS_OUT=build/tsan/governor GOVERNOR_SANITIZE='-fsanitize=thread -Wno-tsan' \
		$(GOVERNOR_TSAN_TESTS)
	TSAN_OPTIONS=die_after_fork=0:halt_on_error=1 tests/prove -e '' $(GOVERNOR_TSAN_TESTS)

-include $(shell find $(GOVERNOR_OUT) -name '*.d' 2>/dev/null)

install-governor: install-arbiter
install-arbiter: $(GOVERNOR_OUT)/vgpu-arbiter $(GOVERNOR_OUT)/vgpu-vault $(GOVERNOR_MEMBER_SHARED)
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $(GOVERNOR_OUT)/vgpu-arbiter $(GOVERNOR_OUT)/vgpu-vault
	install -D -m 0644 -t $(DESTDIR)$(GOVERNOR_LIBRARIES) $(GOVERNOR_MEMBER_SHARED)
	$(call install_unit,$(GOVERNOR_SRC)/arbiter/vgpu-arbiter@.service,$(PREFIX)/lib/systemd/system)
	$(call install_unit,$(GOVERNOR_SRC)/vault/vgpu-vault.service,$(PREFIX)/lib/systemd/system)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(GOVERNOR_SRC)/arbiter/vgpu-arbiter.8 \
		$(GOVERNOR_SRC)/vault/vgpu-vault.8

-include $(wildcard $(GOVERNOR_SRC)/vulkan/vulkan.mk)
-include $(wildcard $(GOVERNOR_SRC)/cuda/cuda.mk)
