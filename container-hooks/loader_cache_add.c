/* SPDX-License-Identifier: MIT */
/*
 * Programs that ask "ldconfig -p" for a library's path (Triton, so torch.compile and vLLM) see what
 * is in the loader's cache, and no links that were made since. The cache is rewritten here, in
 * glibc's format 1.1: a header, entries sorted by name from the last to the first, texts, and since
 * glibc 2.33 extensions. The texts and extensions stay as they are, behind more entries.
 */
#include "container-hooks/loader_cache.h"

#include <string.h>

#include "container-hooks/in_root.h"

#define MAGIC "glibc-ld.so.cache1.1"
/* A 64-bit library of this machine, for glibc. */
#if defined(__aarch64__)
#define FLAGS 0x0a03
#else
#define FLAGS 0x0303
#endif
#define EXTENSION_MAGIC 0xEAA42174u
/* A section that is a list of texts' offsets. */
#define EXTENSION_HWCAPS 1u
#define SECTIONS_MAX     64u

/* Numbers are in the machine's order; offsets are from the header's beginning. */
typedef struct {
    char magic[sizeof(MAGIC) - 1];
    guint32 count;
    guint32 texts_size;
    guint8 flags;
    guint8 unused[3];
    guint32 extension;
    guint32 unused_either[3];
} Header;

typedef struct {
    gint32 flags;
    guint32 key;
    guint32 value;
    guint32 unused;
    guint64 hwcap;
} Entry;

typedef struct {
    guint32 magic;
    guint32 count;
} Extension;

typedef struct {
    guint32 tag;
    guint32 flags;
    guint32 offset;
    guint32 size;
} Section;

G_STATIC_ASSERT(sizeof(Header) == 48 && sizeof(Entry) == 24 && sizeof(Section) == 16);

/**
 * Cache - an image's, and what is added
 * @before: bytes of the file before the header: another format, of older glibc
 * @bytes: from the header on, in memory that is aligned
 * @header, @entries: in @bytes
 * @end: behind the last text: all offsets of texts are less
 */
typedef struct {
    gsize before;
    guint8 *bytes;
    gsize size;
    const Header *header;
    const Entry *entries;
    gsize end;
} Cache;

static const char *text_at(const Cache *cache, guint32 offset)
{
    return (const char *)cache->bytes + offset;
}

/* Older glibc has another format before this one. FALSE: it is none that is known here. */
static gboolean cache_parse(Cache *cache, GBytes *file)
{
    gsize size = 0;
    const char *bytes = g_bytes_get_data(file, &size);
    const char *begin = memmem(bytes, size, MAGIC, strlen(MAGIC));
    const guint8 *last;

    if (!begin || size - (gsize)(begin - bytes) < sizeof(Header))
        return FALSE;
    cache->before = (gsize)(begin - bytes);
    cache->size = size - cache->before;
    cache->bytes = g_memdup2(begin, cache->size);
    cache->header = (const Header *)cache->bytes;
    cache->entries = (const Entry *)(cache->bytes + sizeof(Header));
    last = memrchr(cache->bytes, 0, cache->size);
    cache->end = last ? (gsize)(last - cache->bytes) + 1 : 0;
    if (cache->header->count > (cache->size - sizeof(Header)) / sizeof(Entry))
        return FALSE;
    for (guint i = 0; i < cache->header->count; i++)
        if (cache->entries[i].key >= cache->end || cache->entries[i].value >= cache->end)
            return FALSE;
    return TRUE;
}

static guint64 take_number(const char **at)
{
    char *end;
    guint64 number = g_ascii_strtoull(*at, &end, 10);

    *at = end;
    return number;
}

/* glibc's order: numbers in names by their value, and after all other characters. */
static int compare_names(const char *a, const char *b)
{
    while (*a) {
        if (g_ascii_isdigit(*a) && g_ascii_isdigit(*b)) {
            guint64 of_a = take_number(&a), of_b = take_number(&b);

            if (of_a != of_b)
                return of_a < of_b ? -1 : 1;
        } else if (g_ascii_isdigit(*a) || g_ascii_isdigit(*b)) {
            return g_ascii_isdigit(*a) ? 1 : -1;
        } else if (*a != *b) {
            return *a - *b;
        } else {
            a++;
            b++;
        }
    }
    return *a - *b;
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

static int from_last_name(const void *a, const void *b)
{
    return compare_names(name_of(*(const char *const *)b), name_of(*(const char *const *)a));
}

static gboolean cache_has(const Cache *cache, const char *path)
{
    for (guint i = 0; i < cache->header->count; i++)
        if (cache->entries[i].flags == FLAGS &&
            g_str_equal(text_at(cache, cache->entries[i].value), path))
            return TRUE;
    return FALSE;
}

/* Those that @cache lacks, in its order. */
static GPtrArray *missing_paths(const Cache *cache, const GPtrArray *paths)
{
    GPtrArray *missing = g_ptr_array_new();

    for (guint i = 0; i < paths->len; i++)
        if (!cache_has(cache, g_ptr_array_index(paths, i)))
            g_ptr_array_add(missing, g_ptr_array_index(paths, i));
    g_ptr_array_sort(missing, from_last_name);
    return missing;
}

/* A place in @cache of that many bytes, by its offset in the file. FALSE: there is none. */
static gboolean find_place(const Cache *cache, guint32 offset, gsize size, gsize *at)
{
    if (offset < cache->before)
        return FALSE;
    *at = offset - cache->before;
    return *at <= cache->size && size <= cache->size - *at;
}

/*
 * The extensions name places by their offsets in the file, which loses what is before the header,
 * and gets @more bytes of entries. FALSE: they are damaged.
 */
static gboolean move_extensions(const Cache *cache, guint32 more)
{
    const guint32 shift = more - (guint32)cache->before;
    Extension *extension;
    Section *sections;
    gsize at;

    if (!cache->header->extension)
        return TRUE;
    if (!find_place(cache, cache->header->extension, sizeof(*extension), &at) ||
        at % sizeof(guint32))
        return FALSE;
    extension = (Extension *)(cache->bytes + at);
    sections = (Section *)(extension + 1);
    if (extension->magic != EXTENSION_MAGIC || extension->count > SECTIONS_MAX ||
        !find_place(cache, cache->header->extension,
                    sizeof(*extension) + extension->count * sizeof(*sections), &at))
        return FALSE;
    for (guint i = 0; i < extension->count; i++) {
        Section *section = &sections[i];
        gboolean is_list = section->tag == EXTENSION_HWCAPS;

        if (!find_place(cache, section->offset, section->size, &at) ||
            (is_list && at % sizeof(guint32)))
            return FALSE;
        for (guint k = 0; is_list && k < section->size / sizeof(guint32); k++)
            ((guint32 *)(cache->bytes + at))[k] += more;
        section->offset += shift;
    }
    return TRUE;
}

/* To be freed; NULL: the cache is damaged. */
static GByteArray *cache_with(Cache *cache, const GPtrArray *missing)
{
    const guint32 shift = missing->len * (guint32)sizeof(Entry);
    const gsize old_end = sizeof(Header) + cache->header->count * sizeof(Entry);
    /* Behind a 0: extensions end without one, and whoever reads the cache as texts needs it. */
    guint32 text = (guint32)cache->size + shift + 1;
    GByteArray *made = g_byte_array_new();
    Header header = *cache->header;
    guint next = 0;

    if (!move_extensions(cache, shift)) {
        g_byte_array_unref(made);
        return NULL;
    }
    header.count += missing->len;
    if (header.extension)
        header.extension += shift - (guint32)cache->before;
    g_byte_array_append(made, (const guint8 *)&header, sizeof(header));
    for (guint i = 0; i <= cache->header->count; i++) {
        Entry entry = {0};

        for (; next < missing->len; next++) {
            const char *path = g_ptr_array_index(missing, next);
            const Entry added = {
                .flags = FLAGS, .key = text + (guint32)(name_of(path) - path), .value = text};

            if (i < cache->header->count &&
                compare_names(name_of(path), text_at(cache, cache->entries[i].key)) < 0)
                break;
            g_byte_array_append(made, (const guint8 *)&added, sizeof(added));
            text += (guint32)strlen(path) + 1;
        }
        if (i == cache->header->count)
            break;
        entry = cache->entries[i];
        entry.key += shift;
        entry.value += shift;
        g_byte_array_append(made, (const guint8 *)&entry, sizeof(entry));
    }
    g_byte_array_append(made, cache->bytes + old_end, (guint)(cache->size - old_end));
    g_byte_array_append(made, (const guint8 *)"", 1);
    for (guint i = 0; i < missing->len; i++)
        g_byte_array_append(made, g_ptr_array_index(missing, i),
                            (guint)strlen(g_ptr_array_index(missing, i)) + 1);
    return made;
}

gboolean loader_cache_add(int root, const GPtrArray *paths, GError **error)
{
    g_autoptr(GBytes) file = loader_cache_read(root);
    g_autoptr(GPtrArray) missing = NULL;
    g_autoptr(GByteArray) made = NULL;
    Cache cache = {0};
    gboolean done = TRUE;

    if (file && cache_parse(&cache, file)) {
        missing = missing_paths(&cache, paths);
        made = missing->len ? cache_with(&cache, missing) : NULL;
        done = !made || in_root_write(root, "etc", "ld.so.cache", made->data, made->len, error);
    }
    g_free(cache.bytes);
    return done;
}
