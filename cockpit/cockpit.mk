# SPDX-License-Identifier: MIT
# make cockpit: build/cockpit/, the page of Cockpit, by node from what cockpit/package-lock.json names. npm fetches that once,
# into cockpit/node_modules. It is not part of `make`: a host without Cockpit needs neither. make check-page-types: the types.

PAGE_SRC := cockpit
PAGE_OUT := build/cockpit
# npm writes it last.
PAGE_PACKAGES := $(PAGE_SRC)/node_modules/.package-lock.json

.PHONY: cockpit check-page-types install-cockpit
$(PAGE_PACKAGES): $(PAGE_SRC)/package-lock.json
	@command -v npm >/dev/null || { echo "make cockpit: npm is not installed, and the page is built from npm's packages" >&2; exit 1; }
	cd $(PAGE_SRC) && npm ci --ignore-scripts --prefer-offline --no-audit --no-fund
	@touch $@

$(PAGE_OUT)/index.js: $(PAGE_SRC)/build.mjs $(wildcard $(PAGE_SRC)/src/* $(PAGE_SRC)/src/*/*) $(PAGE_PACKAGES)
	node $(PAGE_SRC)/build.mjs $(PAGE_OUT)

cockpit: $(PAGE_OUT)/index.js

check-page-types: $(PAGE_PACKAGES)
	$(PAGE_SRC)/node_modules/.bin/tsc -p $(PAGE_SRC)

install-cockpit: cockpit
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/cockpit/mdev-vgpu $(PAGE_OUT)/*
	install -D -m 0644 -t $(DESTDIR)$(PREFIX)/share/metainfo $(PAGE_SRC)/org.mdev_vgpu.cockpit.metainfo.xml
