/* SPDX-License-Identifier: MIT */
/* Domains' XML as libvirt hands it to the hook, and the requests that come of it. */
#include <stdint.h>
#include <stdlib.h>

#include "host-agent/model/request.h"
#include "lib/domain.h"

static void check_request(const DomainRequest *request)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) parsed = request_parse(request->dict, &error);

    if (!g_uuid_string_is_valid(request->uuid) || !parsed != !!error)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Domain) domain = domain_parse((const char *)data, size, &error);

    if (!domain != !!error || (error && !*error->message))
        abort();
    if (!domain)
        return 0;
    if (domain->free_ports > domain->ports)
        abort();
    for (guint i = 0; domain->mdevs[i]; i++)
        if (!g_uuid_string_is_valid(domain->mdevs[i]))
            abort();
    for (guint i = 0; i < domain->requests->len; i++)
        check_request(g_ptr_array_index(domain->requests, i));
    return 0;
}
