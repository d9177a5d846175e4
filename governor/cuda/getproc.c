// SPDX-License-Identifier: MIT
/*
 * cuGetProcAddress. Only the driver knows which form of a function a version of CUDA means. It is
 * asked with the caller's arguments. If it returns the address of a function that we wrap, the
 * caller gets our function for the same form.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fronts.h"
#include "real.h"
#include "slices.h"

struct address {
    void *real;
    unsigned int entry;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct address *addresses;
static unsigned int addresses_count;

static int by_address(const void *a, const void *b)
{
    const struct address *left = a, *right = b;

    return left->real < right->real ? -1 : left->real > right->real;
}

/* Our function, or a jump to what stands in front of the driver; NULL: neither. */
static void *ours_of(unsigned int entry)
{
    return entry_points[entry].kind == ENTRY_WRAP ? entry_wrappers[entry] : fronts_stub(entry);
}

static void note_address(void *real, unsigned int entry)
{
    if (real)
        addresses[addresses_count++] = (struct address){.real = real, .entry = entry};
}

/* Among the first @count, which are sorted. */
static bool is_noted(const void *real, unsigned int count)
{
    struct address key = {.real = (void *)real};

    return bsearch(&key, addresses, count, sizeof(*addresses), by_address) != NULL;
}

/* One function can have several names. @base: one of this base; NULL: of any. */
static bool has_listed_name(const void *real, const char *base)
{
    for (unsigned int i = 0; i < entry_points_count; i++) {
        if ((!base || !strcmp(entry_points[i].base, base)) &&
            real_find(entry_points[i].name) == real)
            return true;
    }
    return false;
}

static bool is_exported(const void *real)
{
    Dl_info info;

    return dladdr(real, &info) && info.dli_sname && real_find(info.dli_sname) == real;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);

    return length > end && !strcmp(name + length - end, suffix);
}

static bool is_per_thread(unsigned int entry)
{
    return has_suffix(entry_points[entry].name, "_ptsz") ||
           has_suffix(entry_points[entry].name, "_ptds");
}

/*
 * What the driver returns for this entry's base name, version and kind of streams. It may be a
 * function that the driver does not export.
 */
static void *asked_for(unsigned int entry)
{
    const struct entry_point *of = &entry_points[entry];
    cuuint64_t flags = is_per_thread(entry) ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                            : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    void *real = NULL;

    return DRIVER(cuGetProcAddress, of->base, &real, of->since, flags) == CUDA_SUCCESS ? real
                                                                                       : NULL;
}

/*
 * One function of the driver can stand for several entries; @base selects one. If the driver does
 * not export it by a name of @base, it is what its other name says: a driver may give out
 * cuGraphInstantiateWithFlags as cuGraphInstantiate. NULL: it is the driver's to give out.
 */
static const struct address *find_address(const void *real, const char *base)
{
    struct address key = {.real = (void *)real};
    struct address *first =
        bsearch(&key, addresses, addresses_count, sizeof(*addresses), by_address);

    if (!first)
        return NULL;
    while (first > addresses && first[-1].real == real)
        first--;
    for (struct address *at = first; at < addresses + addresses_count && at->real == real; at++) {
        if (!strcmp(entry_points[at->entry].base, base))
            return at;
    }
    return is_exported(real) && !has_listed_name(real, base) ? first : NULL;
}

static void sort_addresses(void)
{
    qsort(addresses, addresses_count, sizeof(*addresses), by_address);
}

/*
 * Only functions that are ours, or have something in front, matter. Exported addresses are certain.
 * The driver's answers for a version are added only if they are not exported: else they are another
 * form, which may be a later one.
 */
static void build_addresses(void)
{
    unsigned int exported;

    addresses = calloc(2 * (size_t)entry_points_count, sizeof(*addresses));
    if (!addresses)
        return;
    for (unsigned int i = 0; i < entry_points_count; i++) {
        if (ours_of(i))
            note_address(real_find(entry_points[i].name), i);
    }
    sort_addresses();
    exported = addresses_count;
    for (unsigned int i = 0; i < entry_points_count; i++) {
        void *real = ours_of(i) ? asked_for(i) : NULL;

        if (real && !is_noted(real, exported) && !is_exported(real))
            note_address(real, i);
    }
    sort_addresses();
}

/* The form of @base for programs of CUDA @version; entry_points_count: none. */
static unsigned int entry_for(const char *base, int version, bool per_thread)
{
    unsigned int best = entry_points_count;

    for (unsigned int i = 0; i < entry_points_count; i++) {
        const struct entry_point *entry = &entry_points[i];

        if (strcmp(entry->base, base) || entry->since > version)
            continue;
        if (is_per_thread(i) && !per_thread)
            continue;
        if (best == entry_points_count || entry->since > entry_points[best].since ||
            (entry->since == entry_points[best].since && is_per_thread(i)))
            best = i;
    }
    return best;
}

static bool is_known(const char *base)
{
    for (unsigned int i = 0; i < entry_points_count; i++) {
        if (!strcmp(entry_points[i].base, base))
            return true;
    }
    return false;
}

static bool contains_after(const char *text, const char *begin, const char *then)
{
    return !strncmp(text, begin, strlen(begin)) && strstr(text + strlen(begin), then);
}

/*
 * True for a function of a later CUDA that would take memory past the door. If it is refused,
 * runtimes use the older call.
 */
static bool takes_memory(const char *symbol)
{
    return contains_after(symbol, "cuMem", "Alloc") || contains_after(symbol, "cuMem", "Create") ||
           contains_after(symbol, "cu", "Import") || contains_after(symbol, "cuArray", "Create");
}

/* Forms of @base take memory, or hand out functions that do. */
static bool is_ours_to_see(const char *base)
{
    for (unsigned int i = 0; i < entry_points_count; i++) {
        uint8_t class = entry_points[i].class;

        if (!strcmp(entry_points[i].base, base) &&
            (class == CLASS_ALLOC || class == CLASS_IMPORT || class == CLASS_GETPROC))
            return true;
    }
    return false;
}

/* A form that the driver returns but does not export is what its version means. */
static void *guess_form(const char *symbol, void *real, int version, cuuint64_t flags)
{
    unsigned int entry =
        entry_for(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);

    if (entry == entry_points_count || !ours_of(entry))
        return real;
    if (!real_find(entry_points[entry].name))
        fronts_set_driver(entry, real);
    return ours_of(entry);
}

/* What the caller gets in place of the driver's @real; NULL: it is refused. */
static void *replace_address(const char *symbol, void *real, int version, cuuint64_t flags)
{
    const struct address *address;

    pthread_once(&once, build_addresses);
    address = addresses ? find_address(real, symbol) : NULL;
    if (address)
        return ours_of(address->entry);
    if (has_listed_name(real, symbol))
        return real;
    if (!is_known(symbol))
        return takes_memory(symbol) && slices_any() ? NULL : real;
    if (!is_exported(real))
        return guess_form(symbol, real, version, flags);
    /* By no name of the table: it has arguments that none of the table's forms has. */
    return !has_listed_name(real, NULL) && is_ours_to_see(symbol) && slices_any() ? NULL : real;
}

/* What is refused is as a name that the driver does not know. */
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    CUresult result = DRIVER(cuGetProcAddress_v2, symbol, pfn, cudaVersion, flags, symbolStatus);

    if (result != CUDA_SUCCESS || real_depth || !symbol || !pfn || !*pfn)
        return result;
    *pfn = replace_address(symbol, *pfn, cudaVersion, flags);
    if (!*pfn && symbolStatus)
        *symbolStatus = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    void *before = pfn ? *pfn : NULL, *found;
    CUresult result = DRIVER(cuGetProcAddress, symbol, pfn, cudaVersion, flags);

    if (result != CUDA_SUCCESS || real_depth || !symbol || !pfn || !*pfn)
        return result;
    found = replace_address(symbol, *pfn, cudaVersion, flags);
    *pfn = found ? found : before;
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
