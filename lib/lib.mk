# SPDX-License-Identifier: MIT
# Shared by registrar, callout, hooks, vgpud and vgpuctl: build/lib/lib.a. The top Makefile includes it before the
# fragments that link it. A program links only the objects that it uses, so the registrar needs only GLib.

LIB_SRC := lib
LIB_OUT := build/lib
LIB := $(LIB_OUT)/lib.a
LIB_SOURCES := $(wildcard $(LIB_SRC)/*.c)
# Files that change the host through the driver; unit tests replace them.
LIB_CALL := $(LIB_SRC)/control_call.c
LIB_CFLAGS := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra $(WERROR) -I. -Imdev-driver/uapi
LIB_PKGS := gio-unix-2.0 libpci json-glib-1.0 libxml-2.0
LIB_PKG_CFLAGS = $(call once,LIB_PKG_CFLAGS,pkg-config --cflags $(LIB_PKGS))

$(LIB_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O2 $(HARDEN_CFLAGS) $(LIB_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(LIB_PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(LIB): $(LIB_SOURCES:%.c=$(LIB_OUT)/obj/%.o)
	rm -f $@
	$(AR) rcs $@ $^

-include $(LIB_SOURCES:%.c=$(LIB_OUT)/obj/%.d)
