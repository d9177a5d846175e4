# SPDX-License-Identifier: MIT
# 65-sandbox-inside.t runs this in the engine's place: it is linked with the engine's own sandbox code.

SANDBOX_PROBE := build/system/sandbox-probe
SANDBOX_PROBE_SRCS := $(wildcard tests/system/sandbox/*.c)

.PHONY: sandbox-probe
sandbox-probe: $(SANDBOX_PROBE)

$(SANDBOX_PROBE): $(SANDBOX_PROBE_SRCS) tests/system/sandbox/attempts.h \
		build/engine/sandbox.o build/engine/gpu.o build/engine/device.o \
		build/engine/device_v1.o
	@mkdir -p $(@D)
	$(CC) $(ENGINE_WARN) $(ENGINE_CFLAGS) $(ENGINE_CPPFLAGS) $(ENGINE_LDFLAGS) -o $@ \
		$(filter %.c %.o,$^) $(ENGINE_LIBS)
