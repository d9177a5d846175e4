/* SPDX-License-Identifier: MIT */
/*
 * Reading XML that strangers wrote, with libxml2.
 */
#ifndef LIB_XML_H
#define LIB_XML_H

#include <glib.h>
#include <libxml/tree.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)

/* NULL where it is not well-formed or has a document type; @why: a sentence's end, to be freed. */
xmlDoc *xml_parse(const char *text, gsize length, char **why);

/* Whether the element has that name in that namespace; @space: NULL: in none. */
gboolean xml_is(const xmlNode *node, const char *name, const char *space);

/* The first child element, and the next one; both for elements of that name in no namespace. NULL:
 * there is none. */
xmlNode *xml_child(const xmlNode *node, const char *name);
xmlNode *xml_next(const xmlNode *node, const char *name);

/* To be freed by g_free(); NULL: it has none. */
char *xml_attribute(xmlNode *node, const char *name);

/* The attribute is there and has that value. */
gboolean xml_attribute_is(xmlNode *node, const char *name, const char *value);

#endif
