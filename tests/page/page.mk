# SPDX-License-Identifier: MIT
# build/page/page-host: vgpud as the page's tests have it (page_host.c). page.t builds and runs all in the rig's tree.

PAGE_TESTS := tests/page
PAGE_HOST := build/page/page-host

$(PAGE_HOST): $(PAGE_TESTS)/page_host.c $(AGENT_TEST_LIB)
	@mkdir -p $(@D)
	$(CC) -O1 $(AGENT_SANITIZE) $(AGENT_CFLAGS) $(AGENT_PKG_CFLAGS) \
		-DPAGE_TESTS='"$(CURDIR)/$(PAGE_TESTS)"' -DAGENT_TEST_BIN='"$(CURDIR)/$(AGENT_TESTS)/bin"' \
		-Wl,-rpath,'$$ORIGIN/../host-agent' -o $@ $< $(AGENT_TEST_LIB) $(LDFLAGS) $(AGENT_TEST_PKG_LIBS)
