# SPDX-License-Identifier: MIT
# vgpu-registrar: build/registrar/vgpu-registrar, its unit tests, its installation. Included by the
# top Makefile, which sets VERSION and PREFIX.

REGISTRAR_SRC := mdev-driver/registrar
REGISTRAR_OUT := build/registrar
REGISTRAR_TESTS_SRC := tests/unit/registrar
REGISTRAR_SOURCES := $(REGISTRAR_SRC)/commands.c
# Its objects of lib/, for its tests, which are built with the sanitizers.
REGISTRAR_LIB := $(addprefix $(LIB_SRC)/,$(addsuffix .c,cards conf types gpu_identity gpu_name gpus pci nvidia_readings mdev host_root control))
REGISTRAR_GLIB_CFLAGS = $(call once,REGISTRAR_GLIB_CFLAGS,pkg-config --cflags glib-2.0)
REGISTRAR_GLIB_LIBS = $(call once,REGISTRAR_GLIB_LIBS,pkg-config --libs glib-2.0)
REGISTRAR_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

REGISTRAR_TESTS := $(patsubst tests/%.c,build/%,$(wildcard $(REGISTRAR_TESTS_SRC)/test-*.c))
REGISTRAR_TESTS_COMMON := $(patsubst %.c,build/unit/registrar/obj/%.o,$(REGISTRAR_SOURCES) $(REGISTRAR_LIB) \
	$(filter-out $(REGISTRAR_TESTS_SRC)/test-%,$(wildcard $(REGISTRAR_TESTS_SRC)/*.c)) tests/unit/file_tree.c)
UNIT_TESTS += $(REGISTRAR_TESTS)

.PHONY: registrar check-registrar install-registrar
registrar: $(REGISTRAR_OUT)/vgpu-registrar

check-registrar: $(REGISTRAR_TESTS)
	tests/prove -v --exec '' $^

$(REGISTRAR_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O2 $(LIB_CFLAGS) $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(REGISTRAR_GLIB_CFLAGS) -DVGPU_VERSION='"$(VERSION)"' \
		-MMD -MP -c -o $@ $<

$(REGISTRAR_OUT)/vgpu-registrar: $(patsubst %.c,$(REGISTRAR_OUT)/obj/%.o,$(REGISTRAR_SOURCES) $(REGISTRAR_SRC)/main.c) $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $^ $(REGISTRAR_GLIB_LIBS)

# The tests replace control_call() and are built with the sanitizers throughout.
build/unit/registrar/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O2 $(LIB_CFLAGS) $(REGISTRAR_GLIB_CFLAGS) $(REGISTRAR_SANITIZE) -MMD -MP -c -o $@ $<

$(REGISTRAR_TESTS): build/unit/registrar/%: build/unit/registrar/obj/$(REGISTRAR_TESTS_SRC)/%.o $(REGISTRAR_TESTS_COMMON)
	$(CC) $(REGISTRAR_SANITIZE) -o $@ $^ $(LDFLAGS) $(REGISTRAR_GLIB_LIBS)

-include $(wildcard $(REGISTRAR_OUT)/obj/$(REGISTRAR_SRC)/*.d)
-include $(REGISTRAR_TESTS_COMMON:.o=.d) $(REGISTRAR_TESTS:build/unit/registrar/%=build/unit/registrar/obj/$(REGISTRAR_TESTS_SRC)/%.d)

install-registrar: $(REGISTRAR_OUT)/vgpu-registrar
	install -d -m 0755 $(DESTDIR)/etc/vgpu/types.d
	install -D -m 0755 $< $(DESTDIR)$(PREFIX)/sbin/vgpu-registrar
	$(call install_unit,$(REGISTRAR_SRC)/vgpu-registrar.service $(REGISTRAR_SRC)/vgpu-registrar@.service,\
		$(PREFIX)/lib/systemd/system)
	$(call install_unit,$(REGISTRAR_SRC)/70-vgpu-registrar.rules,$(PREFIX)/lib/udev/rules.d)
	install -D -m 0644 $(REGISTRAR_SRC)/modules-load.conf \
		$(DESTDIR)$(PREFIX)/lib/modules-load.d/mdev-vgpu.conf
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/vgpu/types.d mdev-driver/types.d/*.conf
	install -D -m 0644 $(REGISTRAR_SRC)/gpus.conf.example \
		$(DESTDIR)$(PREFIX)/share/doc/mdev-vgpu/gpus.conf.example
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(REGISTRAR_SRC)/vgpu-registrar.8
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(REGISTRAR_SRC)/vgpu-types.conf.5
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man7 $(REGISTRAR_SRC)/vgpu-attributes.7
