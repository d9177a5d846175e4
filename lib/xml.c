/* SPDX-License-Identifier: MIT */
#include "lib/xml.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>

/* What entities do can't begin: reading ends where a document type does. */
static void refuse_document_type(void *data, const xmlChar *name, const xmlChar *external,
                                 const xmlChar *system)
{
    xmlParserCtxt *context = data;

    (void)name;
    (void)external;
    (void)system;
    *(gboolean *)context->_private = TRUE;
    xmlStopParser(context);
}

static char *why_not(const xmlParserCtxt *context, gboolean has_type)
{
    g_autofree char *message = NULL;

    if (has_type)
        return g_strdup("it has a document type (<!DOCTYPE>), which no domain has");
    if (!context->lastError.message)
        return g_strdup("it is empty");
    message = g_strdelimit(g_strstrip(g_strdup(context->lastError.message)), "\n", ' ');
    return g_strdup_printf("%s in line %d", message, context->lastError.line);
}

xmlDoc *xml_parse(const char *text, gsize length, char **why)
{
    xmlParserCtxt *context = xmlNewParserCtxt();
    gboolean has_type = FALSE;
    xmlDoc *doc;

    if (!context) {
        *why = g_strdup("there is no memory to read it");
        return NULL;
    }
    context->_private = &has_type;
    context->sax->internalSubset = refuse_document_type;
    doc = xmlCtxtReadMemory(context, text, (int)length, "domain.xml", NULL,
                            XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (!doc || has_type) {
        *why = why_not(context, has_type);
        g_clear_pointer(&doc, xmlFreeDoc);
    }
    xmlFreeParserCtxt(context);
    return doc;
}

gboolean xml_is(const xmlNode *node, const char *name, const char *space)
{
    const char *own = node->ns ? (const char *)node->ns->href : NULL;

    return node->type == XML_ELEMENT_NODE && g_str_equal((const char *)node->name, name) &&
           g_strcmp0(own, space) == 0;
}

static xmlNode *first_of(xmlNode *node, const char *name)
{
    while (node && !xml_is(node, name, NULL))
        node = node->next;
    return node;
}

xmlNode *xml_child(const xmlNode *node, const char *name)
{
    return node ? first_of(node->children, name) : NULL;
}

xmlNode *xml_next(const xmlNode *node, const char *name)
{
    return first_of(node->next, name);
}

char *xml_attribute(xmlNode *node, const char *name)
{
    xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
    char *copy = g_strdup((const char *)value);

    xmlFree(value);
    return copy;
}

gboolean xml_attribute_is(xmlNode *node, const char *name, const char *value)
{
    g_autofree char *found = xml_attribute(node, name);

    return g_strcmp0(found, value) == 0;
}
