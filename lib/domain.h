/* SPDX-License-Identifier: MIT */
/*
 * What a libvirt domain's XML says of vGPUs and GPUs: the hook reads it, and vgpuctl. The XML is a
 * stranger's: a document type (and so every entity) is refused, nothing is fetched.
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
#ifndef LIB_DOMAIN_H
#define LIB_DOMAIN_H

#include <gio/gio.h>
#include <libxml/tree.h>

#define DOMAIN_NAMESPACE "urn:org.mdev_vgpu:domain:1"

/* What an XML may have in bytes; libvirt's have some thousand. */
#define DOMAIN_XML_MAX (16 * 1024 * 1024)

#define DOMAIN_ERROR domain_error_quark()
GQuark domain_error_quark(void);

typedef enum {
    DOMAIN_ERROR_XML,     /* it is not well-formed, or no domain's */
    DOMAIN_ERROR_REQUEST, /* a request for a vGPU is wrong */
} DomainError;

/**
 * DomainRequest - a vGPU that is to be made
 * @uuid: in small letters
 * @dict: the request as CreateVgpus has it (a{sv}), Uuids included
 */
typedef struct {
    char *uuid;
    GVariant *dict;
} DomainRequest;

/**
 * DomainPci - a PCI device of the host that the domain has whole
 * @address: as "0000:01:00.0"
 * @managed: libvirt may take it from its driver
 */
typedef struct {
    char *address;
    gboolean managed;
} DomainPci;

/**
 * Domain
 * @mdevs: UUIDs of mediated devices, in small letters, whoever's
 * @requests: of DomainRequest
 * @pci: of DomainPci
 * @pcie: it has PCI Express, where a device that is plugged in needs a port
 * @ports: root ports that a PCI Express device can be plugged into
 * @free_ports: those of them that have none
 */
typedef struct {
    GStrv mdevs;
    GPtrArray *requests;
    GPtrArray *pci;
    gboolean pcie;
    guint ports;
    guint free_ports;
} Domain;

/* @xml: @length bytes. DOMAIN_ERROR. */
Domain *domain_parse(const char *xml, gsize length, GError **error);

void domain_free(Domain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Domain, domain_free)

/* The request for @uuid; NULL: there is none. */
const DomainRequest *domain_request(const Domain *domain, const char *uuid);

/*
 * <vgpu:request …/> in a domain's metadata: its attributes are the options of "vgpuctl vgpu
 * create".
 */
/* DOMAIN_ERROR_REQUEST names the attribute, what it is, and what it may be. */
DomainRequest *request_of_xml(xmlNode *node, GError **error);

/* Sets the element's attributes to what a request for CreateVgpus, of a{sv}, says.
 * DOMAIN_ERROR_REQUEST: it has a key for which there is no attribute; nothing is set then. */
gboolean request_to_xml(GVariant *dict, xmlNode *node, GError **error);

/* For a GPtrArray of them. */
void domain_request_free(void *request);

#endif
