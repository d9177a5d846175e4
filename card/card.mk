# SPDX-License-Identifier: MIT
# vgpu-card measures what a GPU can do, on the host (vgpu-card.1). It runs the benchmark's own programs. Included by the
# top Makefile, after tests/bench/bench.mk.

CARD_SRC := card
CARD_OUT := build/card
CARD_OBJECTS := $(patsubst %.c,build/%.o,$(wildcard $(CARD_SRC)/*.c))
CARD_PKGS := gio-unix-2.0 json-glib-1.0 vulkan
CARD_PKG_CFLAGS = $(call once,CARD_PKG_CFLAGS,pkg-config --cflags $(CARD_PKGS))
CARD_PKG_LIBS = $(call once,CARD_PKG_LIBS,pkg-config --libs $(CARD_PKGS))
CARD_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -g $(HARDEN_CFLAGS) -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -DVGPU_VERSION='"$(VERSION)"' $(CPPFLAGS) $(CFLAGS) $(CARD_PKG_CFLAGS)
# The programs that it runs.
CARD_TOOLS := $(BENCH_OUT)/vk-bench $(LOAD_OUT)/governor-load $(GUEST_OUT)/vk-compute

# Everything except main(), under the sanitizers.
CARD_TESTS_SRC := tests/unit/card
CARD_TESTS_OUT := build/unit/card
CARD_TESTS := $(patsubst $(CARD_TESTS_SRC)/%.c,$(CARD_TESTS_OUT)/%,$(wildcard $(CARD_TESTS_SRC)/test-*.c))
CARD_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_TESTS += $(CARD_TESTS)

.PHONY: card-programs install-card card
card-programs: $(CARD_OUT)/vgpu-card $(CARD_TOOLS)

build/$(CARD_SRC)/%.o: $(CARD_SRC)/%.c
	@mkdir -p $(@D)
	$(CC) $(CARD_CFLAGS) -MMD -MP -c -o $@ $<

$(CARD_OUT)/vgpu-card: $(CARD_OBJECTS)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(CARD_PKG_LIBS) -lm

$(CARD_TESTS_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CARD_CFLAGS) -O1 $(CARD_SANITIZE) -I$(CARD_SRC) -MMD -MP -c -o $@ $<

$(CARD_TESTS): $(CARD_TESTS_OUT)/%: $(CARD_TESTS_OUT)/obj/$(CARD_TESTS_SRC)/%.o \
		$(patsubst %.c,$(CARD_TESTS_OUT)/obj/%.o,$(filter-out $(CARD_SRC)/main.c,$(wildcard $(CARD_SRC)/*.c)))
	$(CC) $(CARD_SANITIZE) -o $@ $^ $(CARD_PKG_LIBS) -lm

# On this machine, with the programs built here: on a GPU host, and not in the rig. CARD: more options.
card: card-programs engine governor host-agent
	$(CARD_OUT)/vgpu-card --build build --json build/card.json --page build/card.md $(CARD)

install-card: card-programs
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $(CARD_OUT)/vgpu-card
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/lib/mdev-vgpu $(CARD_TOOLS)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man1 $(CARD_SRC)/vgpu-card.1

-include $(CARD_OBJECTS:.o=.d) $(shell find $(CARD_TESTS_OUT) -name '*.d' 2>/dev/null)
