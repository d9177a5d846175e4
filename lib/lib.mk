# SPDX-License-Identifier: MIT
# What registrar, callout, hooks, vgpud and vgpuctl share: build/lib/lib.a. Included by the top Makefile, before those that link it.
# A program takes of it what it needs, so the registrar needs GLib alone.

LIB_SRC := lib
LIB_OUT := build/lib
LIB := $(LIB_OUT)/lib.a
LIB_SOURCES := $(wildcard $(LIB_SRC)/*.c)
# What changes the host by the driver; unit tests have their own.
LIB_CALL := $(LIB_SRC)/control_call.c
LIB_CFLAGS := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra -Werror -I. -Imdev-driver/uapi
LIB_PKGS := gio-unix-2.0 libpci json-glib-1.0 libxml-2.0
LIB_PKG_CFLAGS = $(call once,LIB_PKG_CFLAGS,pkg-config --cflags $(LIB_PKGS))

$(LIB_OUT)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -O2 $(HARDEN_CFLAGS) $(LIB_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(LIB_PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(LIB): $(LIB_SOURCES:%.c=$(LIB_OUT)/obj/%.o)
	rm -f $@
	$(AR) rcs $@ $^

-include $(LIB_SOURCES:%.c=$(LIB_OUT)/obj/%.d)
