/* SPDX-License-Identifier: MIT */
/* XML, and the vGPUs of a libvirt domain in it. */
#ifndef LIB_DOMAIN_H
#define LIB_DOMAIN_H

#include <glib.h>
#include <gio/gio.h>
#include <libxml/tree.h>

/* Reading untrusted XML, with libxml2. */

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)

/*
 * NULL if it is not well-formed or has a document type; @why: the end of a sentence, to be freed.
 */
xmlDoc *xml_parse(const char *text, gsize length, char **why);

/* Whether the element has that name in that namespace; @space: NULL: in none. */
gboolean xml_is(const xmlNode *node, const char *name, const char *space);

/*
 * The first child element, and the next one; both for elements of that name in no namespace. NULL:
 * none.
 */
xmlNode *xml_child(const xmlNode *node, const char *name);

/*
 * What a libvirt domain's XML says of vGPUs and GPUs, for the hook and vgpuctl. The XML is
 * untrusted: a document type (and so every entity) is refused, nothing is fetched.
 *
 *   <metadata>
 *     <vgpu:requests xmlns:vgpu='urn:org.mdev_vgpu:domain:1'>
 *       <vgpu:request uuid='…' type='half' vram='2G' tenant='red'/>
 *     </vgpu:requests>
 *   </metadata>
 *
 * libvirt keeps one element of a namespace in <metadata>, so several requests need the element
 * around them; a single <vgpu:request> may stand alone.
 */

#define DOMAIN_NAMESPACE "urn:org.mdev_vgpu:domain:1"

/* Limit of an XML in bytes; libvirt's have some thousand. */
#define DOMAIN_XML_MAX (16 * 1024 * 1024)

#define DOMAIN_ERROR domain_error_quark()
GQuark domain_error_quark(void);

typedef enum {
    DOMAIN_ERROR_XML,     /* the XML is not well-formed, or not a domain's */
    DOMAIN_ERROR_REQUEST, /* a request for a vGPU is wrong */
} DomainError;

/**
 * DomainRequest - a request for a vGPU
 * @uuid: in lower case
 * @dict: the request in CreateSlices' form (a{sv}), Uuids included
 */
typedef struct {
    char *uuid;
    GVariant *dict;
} DomainRequest;

/**
 * DomainPci - a PCI device of the host that is assigned to the domain as a whole
 * @address: as "0000:01:00.0"
 * @managed: libvirt may detach it from its driver
 */
typedef struct {
    char *address;
    gboolean managed;
} DomainPci;

/**
 * Domain
 * @mdevs: UUIDs of mediated devices, in lower case, ours or not
 * @requests: of DomainRequest
 * @pci: of DomainPci
 * @memory_in_file: QEMU maps its memory, shared, from files in libvirt's memory_backing_dir
 * @pcie: it has PCI Express, where a hot-plugged device needs a port
 * @ports: root ports that a PCI Express device can be plugged into
 * @free_ports: the empty ones of them
 */
typedef struct {
    GStrv mdevs;
    GPtrArray *requests;
    GPtrArray *pci;
    gboolean memory_in_file;
    gboolean pcie;
    guint ports;
    guint free_ports;
} Domain;

/* @xml: @length bytes. DOMAIN_ERROR. */
Domain *domain_parse(const char *xml, gsize length, GError **error);

void domain_free(Domain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Domain, domain_free)

/* The request for @uuid; NULL: none. */
const DomainRequest *domain_request(const Domain *domain, const char *uuid);

/*
 * Sets the element's attributes from a request for CreateSlices, of a{sv}. DOMAIN_ERROR_REQUEST: it
 * has a key without an attribute; then nothing is set.
 */
gboolean request_to_xml(GVariant *dict, xmlNode *node, GError **error);

#endif
