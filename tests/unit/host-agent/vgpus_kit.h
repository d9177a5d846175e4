/* SPDX-License-Identifier: MIT */
/* A host with one shared GPU of two types, for vGPUs by vgpuctl, and looks at its files. */
#ifndef TESTS_UNIT_VGPUS_KIT_H
#define TESTS_UNIT_VGPUS_KIT_H

#include "tests/unit/host-agent/agent_on_bus.h"

#define UUID  "c0ffee00-0000-4000-8000-000000000001"
#define UUID2 "c0ffee00-0000-4000-8000-000000000002"
#define GPU   "/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0"

void vgpus_open(AgentOnBus *at);
gboolean vgpus_have(const AgentOnBus *at, const char *path);
/* All of the file, without space around it. */
void assert_text_of(const AgentOnBus *at, const char *path, const char *text);
/* Whether @text is a part of the file. */
void assert_text_in(const AgentOnBus *at, const char *path, const char *part, gboolean there);

#endif
