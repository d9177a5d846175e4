/* SPDX-License-Identifier: MIT */
/* What is read from a libvirt domain's XML, and what is not followed. */
#include <string.h>

#include "lib/domain.h"

#define UUID  "c0ffee00-0000-4000-8000-000000000001"
#define UUID2 "C0FFEE00-0000-4000-8000-00000000000A"
#define NS    "xmlns:v='" DOMAIN_NAMESPACE "'"

static Domain *parse_xml(const char *xml)
{
    g_autoptr(GError) error = NULL;
    Domain *domain = domain_parse(xml, strlen(xml), &error);

    g_assert_no_error(error);
    return domain;
}

static void assert_refused(const char *xml, gsize length, const char *why)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(domain_parse(xml, length, &error));
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, why));
}

static void test_hostdevs(void)
{
    g_autoptr(Domain) domain = parse_xml(
        "<domain><devices>"
        "<hostdev mode='subsystem' type='mdev'><source><address uuid='" UUID2
        "'/></source></hostdev>"
        "<hostdev mode='subsystem' type='mdev'><source><address uuid='" UUID
        "'/></source></hostdev>"
        "<hostdev mode='capabilities' type='mdev'><source><address uuid='" UUID
        "'/></source></hostdev>"
        "<hostdev mode='subsystem' type='pci' managed='yes'><source>"
        "<address domain='0x0001' bus='0xa2' slot='0x1f' function='0x7'/></source></hostdev>"
        "<hostdev mode='subsystem' type='pci'><source><address bus='2' "
        "slot='0'/></source></hostdev>"
        "</devices></domain>");
    const DomainPci *first = g_ptr_array_index(domain->pci, 0);
    const DomainPci *second = g_ptr_array_index(domain->pci, 1);

    g_assert_cmpuint(g_strv_length(domain->mdevs), ==, 2);
    g_assert_cmpstr(domain->mdevs[0], ==, "c0ffee00-0000-4000-8000-00000000000a");
    g_assert_cmpuint(domain->pci->len, ==, 2);
    g_assert_cmpstr(first->address, ==, "0001:a2:1f.7");
    g_assert_true(first->managed);
    g_assert_cmpstr(second->address, ==, "0000:02:00.0");
    g_assert_false(second->managed);
}

static void test_request(void)
{
    g_autoptr(Domain) domain = parse_xml(
        "<domain><metadata><v:requests " NS "><v:request uuid='" UUID2
        "' type='half' vram='2G' window='256M'"
        " weight='7' cap='50' priority='0' class='burstable' tenant='red' gpu='10de:*,0000:01:00.0'"
        " numa-node='1' oversubscribe='0'/></v:requests></metadata></domain>");
    const DomainRequest *request = domain_request(domain, "c0ffee00-0000-4000-8000-00000000000a");
    g_autoptr(GVariant) expected = g_variant_ref_sink(g_variant_new_parsed(
        "{'Type': <'half'>, 'Vram': <uint64 2147483648>, 'Window': <uint64 268435456>,"
        " 'Weight': <uint32 7>, 'Cap': <uint32 50>, 'Priority': <uint32 0>, 'Class': <'burstable'>,"
        " 'Tenant': <'red'>, 'Gpus': <['10de:*', '0000:01:00.0']>, 'NumaNode': <1>,"
        " 'Oversubscribe': <uint64 0>, 'Uuids': <['c0ffee00-0000-4000-8000-00000000000a']>}"));
    GVariantIter iter;
    const char *key;
    GVariant *value;

    g_assert_nonnull(request);
    g_assert_null(domain_request(domain, UUID));
    g_assert_cmpuint(g_variant_n_children(request->dict), ==, g_variant_n_children(expected));
    g_variant_iter_init(&iter, expected);
    while (g_variant_iter_loop(&iter, "{&sv}", &key, &value)) {
        g_autoptr(GVariant) found = g_variant_lookup_value(request->dict, key, NULL);

        g_assert_nonnull(found);
        g_assert_true(g_variant_equal(found, value));
    }
}

static void test_ports(void)
{
    g_autoptr(Domain) domain =
        parse_xml("<domain><devices>"
                  "<controller type='pci' index='0' model='pcie-root'/>"
                  "<controller type='pci' index='1' model='pcie-root-port'><address type='pci' "
                  "bus='0x00'/></controller>"
                  "<controller type='pci' index='2' model='pcie-root-port'><address type='pci' "
                  "bus='0x00'/></controller>"
                  "<controller type='pci' index='3' model='pcie-to-pci-bridge'><address type='pci' "
                  "bus='0x02'/></controller>"
                  "<controller type='usb' index='4' model='pcie-root-port'/>"
                  "<controller type='pci' index='17' model='pcie-root-port'/>"
                  "<disk><address type='drive' bus='17'/></disk>"
                  "<interface><address type='pci' domain='0x0000' bus='0x01'/></interface>"
                  "</devices></domain>");

    g_assert_cmpuint(domain->ports, ==, 3);
    g_assert_cmpuint(domain->free_ports, ==, 1);
}

/* Entities, and what they would fetch: reading ends before there are any. */
static void test_entities(void)
{
    static const char *const texts[] = {
        "<!DOCTYPE domain><domain/>",
        "<!DOCTYPE domain SYSTEM 'file:///etc/passwd'><domain/>",
        "<!DOCTYPE domain [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><domain>&x;</domain>",
        "<!DOCTYPE domain [<!ENTITY % p SYSTEM 'http://127.0.0.1:1/x'>%p;]><domain/>",
        "<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'><!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;'>"
        "<!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;'><!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;'>]>"
        "<domain name='&f;'>&f;&f;&f;&f;</domain>",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "document type");
    assert_refused("<domain>&x;</domain>", strlen("<domain>&x;</domain>"), "not defined");
}

/* Not a file of the host, which an XInclude would name. */
static void test_includes(void)
{
    g_autoptr(Domain) domain =
        parse_xml("<domain xmlns:xi='http://www.w3.org/2001/XInclude'><metadata>"
                  "<xi:include href='file:///etc/passwd' parse='text'/></metadata></domain>");

    g_assert_cmpuint(domain->requests->len, ==, 0);
}

static void test_large(void)
{
    g_autoptr(GString) deep = g_string_new("<domain>");
    g_autofree char *huge = g_strnfill(DOMAIN_XML_MAX + 1, ' ');
    g_autoptr(GString) wide = g_string_new("<domain><devices>");
    g_autoptr(Domain) domain = NULL;

    for (guint i = 0; i < 100000; i++)
        g_string_append(deep, "<a>");
    assert_refused(deep->str, deep->len, "can't be read");
    assert_refused(huge, DOMAIN_XML_MAX + 1, "16 MiB");
    for (guint i = 0; i < 20000; i++)
        g_string_append(wide, "<disk type='file'><address type='pci' bus='0x00'/></disk>");
    g_string_append(wide, "</devices></domain>");
    domain = parse_xml(wide->str);
    g_assert_cmpuint(domain->ports, ==, 0);
}

static void test_broken(void)
{
    assert_refused("", 0, "Document is empty");
    assert_refused("\0\0\0", 3, "can't be read");
    assert_refused("<domain>\xff\xfe</domain>", strlen("<domain>\xff\xfe</domain>"),
                   "can't be read");
    assert_refused("<domain></domian>", strlen("<domain></domian>"), "in line 1");
    assert_refused("<domain/><domain/>", strlen("<domain/><domain/>"), "in line 1");
}

/* What is written is all of it, or nothing. */
static void test_written(void)
{
    g_autoptr(GVariant) good = g_variant_ref_sink(g_variant_new_parsed(
        "{'Type': <'half'>, 'Engines': <'compute'>, 'Uuids': <['" UUID "']>, 'DryRun': <true>}"));
    g_autoptr(GVariant) bad =
        g_variant_ref_sink(g_variant_new_parsed("{'Type': <'half'>, 'Autostart': <true>}"));
    xmlNode *node = xmlNewNode(NULL, (const xmlChar *)"request");
    g_autoptr(GError) error = NULL;

    g_assert_false(request_to_xml(bad, node, &error));
    g_assert_error(error, DOMAIN_ERROR, DOMAIN_ERROR_REQUEST);
    g_assert_nonnull(strstr(error->message, "Autostart can't be written"));
    g_assert_null(node->properties);
    g_assert_true(request_to_xml(good, node, NULL));
    g_assert_nonnull(xmlHasProp(node, (const xmlChar *)"engines"));
    g_assert_null(xmlHasProp(node, (const xmlChar *)"uuid"));
    xmlFreeNode(node);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain-xml/hostdevs", test_hostdevs);
    g_test_add_func("/domain-xml/request", test_request);
    g_test_add_func("/domain-xml/ports", test_ports);
    g_test_add_func("/domain-xml/entities", test_entities);
    g_test_add_func("/domain-xml/includes", test_includes);
    g_test_add_func("/domain-xml/large", test_large);
    g_test_add_func("/domain-xml/broken", test_broken);
    g_test_add_func("/domain-xml/written", test_written);
    return g_test_run();
}
