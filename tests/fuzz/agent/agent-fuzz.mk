# SPDX-License-Identifier: MIT
# Fuzzing of what vgpud reads from files and from the bus: part of `make fuzz`.

AGENT_FUZZ_SRC := tests/fuzz/agent
AGENT_FUZZ := $(patsubst $(AGENT_FUZZ_SRC)/%.c,build/fuzz/%,$(wildcard $(AGENT_FUZZ_SRC)/*.c))
AGENT_FUZZ_PARTS := $(wildcard $(AGENT_SRC)/ledger/*.c) $(addprefix $(AGENT_SRC)/,dbus/agent_error.c \
	inventory/definition.c inventory/sysfs.c modes/timetable.c vgpud/vgpud_conf.c) $(addprefix mdev-driver/registrar/,conf.c units.c gpus.c types.c) \
	$(DOMAIN_XML)

.PHONY: fuzz-agent
fuzz-build: $(AGENT_FUZZ)
fuzz: fuzz-agent
fuzz-agent: $(AGENT_FUZZ)
	prove -v -e sh tests/fuzz/run.sh :: $(or $(SECONDS),20) $(AGENT_FUZZ)

$(AGENT_FUZZ): build/fuzz/%: $(AGENT_FUZZ_SRC)/%.c $(AGENT_FUZZ_PARTS) $(wildcard $(AGENT_SRC)/*/*.h qemu-hooks/*.h)
	@mkdir -p $(@D)
	$(or $(FUZZ_CC),clang) -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		$(AGENT_CFLAGS) $(shell pkg-config --cflags gio-2.0 json-glib-1.0 libxml-2.0) -o $@ $< $(AGENT_FUZZ_PARTS) \
		$(shell pkg-config --libs gio-2.0 json-glib-1.0 libxml-2.0)
