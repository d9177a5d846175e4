/* SPDX-License-Identifier: MIT */
/*
 * <vgpu:request …/> in a domain's metadata: its attributes are the options of "vgpuctl vgpu
 * create".
 */
#ifndef QEMU_HOOKS_REQUEST_XML_H
#define QEMU_HOOKS_REQUEST_XML_H

#include <libxml/tree.h>

#include "lib/domain.h"

/* DOMAIN_ERROR_REQUEST names the attribute, what it is, and what it may be. */
DomainRequest *request_of_xml(xmlNode *node, GError **error);

/* Sets the element's attributes to what a request for CreateVgpus, of a{sv}, says.
 * DOMAIN_ERROR_REQUEST: it has a key for which there is no attribute; nothing is set then. */
gboolean request_to_xml(GVariant *dict, xmlNode *node, GError **error);

/* For a GPtrArray of them. */
void domain_request_free(void *request);

#endif
