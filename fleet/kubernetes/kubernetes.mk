# SPDX-License-Identifier: MIT
# vgpu-kubelet: build/kubernetes/. Built where its libraries are installed, which in the rig is
# tests/kubernetes/enter. Included by the top Makefile.
#
#	make kubernetes		vgpu-kubelet
#	make check-kubernetes	its tests, with a fake kubelet, API and vgpud (root); at most 2 minutes

KUBE_SRC := fleet/kubernetes
KUBE_OUT := build/kubernetes
KUBE_TESTS := tests/kubernetes
# Generated code is in the folder of its own.
KUBE_WARN := -std=c11 -D_GNU_SOURCE -g -Wall -Wextra $(WERROR) -I. -I$(KUBE_OUT)/proto -DVGPU_VERSION='"$(VERSION)"'
KUBE_PKGS := gio-unix-2.0 json-glib-1.0 libcurl libnghttp2 libprotobuf-c
KUBE_PKG_CFLAGS = $(call once,KUBE_PKG_CFLAGS,pkg-config --cflags $(KUBE_PKGS))
KUBE_PKG_LIBS = $(call once,KUBE_PKG_LIBS,pkg-config --libs $(KUBE_PKGS))
KUBE_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

KUBE_PROTO := $(patsubst $(KUBE_SRC)/proto/%.proto,$(KUBE_OUT)/proto/%.pb-c.c,$(wildcard $(KUBE_SRC)/proto/*.proto))
# The messages for the fake kubelet, and for what asks a container runtime.
KUBE_PYTHON := $(patsubst %.proto,$(KUBE_OUT)/python/%_pb2.py,$(notdir $(wildcard $(KUBE_SRC)/proto/*.proto $(KUBE_TESTS)/*.proto)))
KUBE_SOURCES := $(wildcard $(KUBE_SRC)/*.c $(KUBE_SRC)/*/*.c) fleet/guard_sockets.c
# Of lib/, under the sanitizers.
KUBE_LIB := $(addprefix $(LIB_SRC)/,conf.c host_root.c json.c refuse.c)

# Unit tests and fuzzers. They are not in UNIT_TESTS, which are built where these libraries are not.
KUBE_UNIT := $(patsubst tests/%.c,build/%,$(wildcard tests/unit/kubernetes/test-*.c))
KUBE_FUZZ_SOURCES := $(wildcard tests/fuzz/kubernetes/*.c)
KUBE_FUZZ := $(patsubst tests/fuzz/kubernetes/%.c,build/fuzz/%,$(KUBE_FUZZ_SOURCES))

# Of `make all`: not every host that builds the rest has these libraries, and the programs that write code for them,
# which come apart from the headers.
KUBE_TOOLS := $(shell command -v protoc; command -v protoc-gen-c)
KUBE_HEADERS := $(wildcard /usr/include/nghttp2/nghttp2.h /usr/include/protobuf-c/protobuf-c.h)
KUBE_ALL := $(if $(filter 4,$(words $(KUBE_TOOLS) $(KUBE_HEADERS))),kubernetes)

.SECONDARY: $(KUBE_PROTO)
.PHONY: kubernetes kubernetes-tests check-kubernetes
kubernetes: $(KUBE_OUT)/vgpu-kubelet

check-kubernetes:
	$(KUBE_TESTS)/check

# Generated code is compiled without our warnings.
$(KUBE_OUT)/proto/%.pb-c.c $(KUBE_OUT)/proto/%.pb-c.h &: $(KUBE_SRC)/proto/%.proto
	@mkdir -p $(@D)
	protoc --c_out=$(@D) -I$(<D) $<

$(KUBE_OUT)/obj/proto/%.o: $(KUBE_OUT)/proto/%.pb-c.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g $(HARDEN_CFLAGS) $(CPPFLAGS) $(CFLAGS) -I$(KUBE_OUT)/proto -c -o $@ $<

$(KUBE_OUT)/obj/%.o: %.c | $(KUBE_PROTO)
	@mkdir -p $(@D)
	$(CC) -O2 $(HARDEN_CFLAGS) $(KUBE_WARN) $(CPPFLAGS) $(CFLAGS) $(KUBE_PKG_CFLAGS) -MMD -MP -c -o $@ $<

$(KUBE_OUT)/vgpu-kubelet: $(KUBE_SOURCES:%.c=$(KUBE_OUT)/obj/%.o) $(KUBE_PROTO:$(KUBE_OUT)/%.pb-c.c=$(KUBE_OUT)/obj/%.o) $(LIB)
	$(CC) $(CFLAGS) $(HARDEN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(KUBE_PKG_LIBS)

# The same under the sanitizers, for its tests.
$(KUBE_OUT)/asan/proto/%.o: $(KUBE_OUT)/proto/%.pb-c.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O1 -g $(KUBE_SANITIZE) -I$(KUBE_OUT)/proto -c -o $@ $<

$(KUBE_OUT)/asan/%.o: %.c | $(KUBE_PROTO)
	@mkdir -p $(@D)
	$(CC) -O1 $(KUBE_SANITIZE) $(KUBE_WARN) $(KUBE_PKG_CFLAGS) -MMD -MP -c -o $@ $<

KUBE_ASAN := $(KUBE_PROTO:$(KUBE_OUT)/%.pb-c.c=$(KUBE_OUT)/asan/%.o) $(KUBE_LIB:%.c=$(KUBE_OUT)/asan/%.o) \
	$(patsubst %.c,$(KUBE_OUT)/asan/%.o,$(filter-out $(KUBE_SRC)/main.c,$(KUBE_SOURCES)))

$(KUBE_OUT)/python/%_pb2.py: $(KUBE_SRC)/proto/%.proto
	@mkdir -p $(@D)
	protoc --python_out=$(@D) -I$(<D) $<

$(KUBE_OUT)/python/%_pb2.py: $(KUBE_TESTS)/%.proto
	@mkdir -p $(@D)
	protoc --python_out=$(@D) -I$(<D) $<

kubernetes-tests: kubernetes build/host-agent/vgpud build/host-agent/vgpu-meter $(KUBE_OUT)/asan/vgpu-kubelet $(KUBE_UNIT) $(KUBE_FUZZ) $(KUBE_PYTHON)

$(KUBE_OUT)/asan/vgpu-kubelet: $(KUBE_OUT)/asan/$(KUBE_SRC)/main.o $(KUBE_ASAN)
	$(CC) $(KUBE_SANITIZE) -o $@ $^ $(KUBE_PKG_LIBS)

$(KUBE_UNIT): build/%: $(KUBE_OUT)/asan/tests/%.o $(KUBE_ASAN)
	@mkdir -p $(@D)
	$(CC) $(KUBE_SANITIZE) -o $@ $^ $(KUBE_PKG_LIBS)

$(patsubst %.c,build/fuzz/obj/kubernetes/%.o,$(KUBE_SOURCES) $(KUBE_FUZZ_SOURCES)): | $(KUBE_PROTO)

-include $(shell find $(KUBE_OUT) -name '*.d' 2>/dev/null)

# For tests/system/68-dra.t: vgpu-kubelet as it is installed, and the fake kubelet and API.
KUBE_IN_L1 := $(KUBE_OUT)/in-l1
.PHONY: kubernetes-in-l1
kubernetes-in-l1: $(KUBE_PYTHON)
	rm -rf $(KUBE_IN_L1)
	$(MAKE) --no-print-directory install-kubernetes DESTDIR=$(KUBE_IN_L1)
	install -D -m 0755 -t $(KUBE_IN_L1)/opt/kubernetes/$(KUBE_TESTS) $(addprefix $(KUBE_TESTS)/,cri node)
	install -D -m 0644 -t $(KUBE_IN_L1)/opt/kubernetes/$(KUBE_TESTS)/lib $(wildcard $(KUBE_TESTS)/lib/*.py)
	install -D -m 0644 -t $(KUBE_IN_L1)/opt/kubernetes/$(KUBE_OUT)/python $(KUBE_PYTHON)

# By itself, because only the nodes of a cluster need it.
.PHONY: install-kubernetes
install-kubernetes: kubernetes
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/sbin $(KUBE_OUT)/vgpu-kubelet
	$(call install_unit,$(KUBE_SRC)/conf/vgpu-kubelet.service,$(PREFIX)/lib/systemd/system)
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/man/man8 $(KUBE_SRC)/conf/vgpu-kubelet.8
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/doc/vgpu-kubelet/examples $(KUBE_SRC)/conf/kubernetes.conf.example \
		$(wildcard $(KUBE_SRC)/conf/*.yaml)
