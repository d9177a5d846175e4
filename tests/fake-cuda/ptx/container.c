// SPDX-License-Identifier: MIT
/*
 * PTX in a fat binary: little endian, a header, then entries with a header and a payload each. A
 * payload is plain, a block of LZ4, or a frame of zstd, for which libzstd is loaded. Code of an
 * architecture (ELF) is passed over.
 */
#include "ptx.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FAT_MAGIC     0xba55ed50u
#define FAT_HEADER    16u
#define ENTRY_HEADER  64u
#define KIND_PTX      1u
#define FLAG_LZ4      0x2000u
#define FLAG_ZSTD     0x8000u
/* More text than this no module here has. */
#define MOST_TEXT (256u << 20)

static uint64_t read_number(const uint8_t *at, unsigned int bytes)
{
    uint64_t value = 0;

    memcpy(&value, at, bytes);
    return value;
}

struct in {
    const uint8_t *at, *end;
};

struct out {
    char *start, *at, *end;
};

/* What more than 15 says of a length: bytes until one is not 255. */
static size_t read_length(struct in *in, size_t length)
{
    uint8_t more = 255;

    while (length >= 15 && more == 255 && in->at < in->end && length < MOST_TEXT) {
        more = *in->at++;
        length += more;
    }
    return length;
}

static bool copy_literals(struct in *in, struct out *out, size_t length)
{
    if (length > (size_t)(in->end - in->at) || length > (size_t)(out->end - out->at))
        return false;
    memcpy(out->at, in->at, length);
    in->at += length;
    out->at += length;
    return true;
}

/* Of what was written before; it may overlap what it writes. */
static bool copy_match(struct out *out, size_t distance, size_t length)
{
    if (!distance || distance > (size_t)(out->at - out->start) ||
        length > (size_t)(out->end - out->at))
        return false;
    for (; length; length--, out->at++)
        *out->at = *(out->at - distance);
    return true;
}

static bool unpack_lz4(const uint8_t *from, size_t bytes, char *to, size_t room)
{
    struct in in = {from, from + bytes};
    struct out out = {to, to, to + room};

    while (in.at < in.end) {
        uint8_t token = *in.at++;
        size_t distance;

        if (!copy_literals(&in, &out, read_length(&in, token >> 4)))
            return false;
        if (in.at == in.end)
            break;
        if (in.end - in.at < 2)
            return false;
        distance = read_number(in.at, 2);
        in.at += 2;
        if (!copy_match(&out, distance, read_length(&in, token & 15) + 4))
            return false;
    }
    return true;
}

static bool unpack_zstd(const uint8_t *from, size_t bytes, char *to, size_t room)
{
    size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
    unsigned int (*is_error)(size_t) = NULL;
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return false;
    *(void **)&decompress = dlsym(library, "ZSTD_decompress");
    *(void **)&is_error = dlsym(library, "ZSTD_isError");
    return decompress && is_error && !is_error(decompress(to, room, from, bytes));
}

/* An entry, whose lengths fit in the container. */
struct entry {
    const uint8_t *payload;
    uint64_t bytes;
    uint64_t packed;
    uint64_t unpacked;
    uint64_t flags;
    unsigned int kind;
    unsigned int architecture;
    uint64_t whole;
};

static bool read_entry(const uint8_t *at, uint64_t left, struct entry *entry)
{
    uint64_t header;

    if (left < ENTRY_HEADER)
        return false;
    header = read_number(at + 4, 4);
    *entry = (struct entry){.bytes = read_number(at + 8, 8),
                            .packed = read_number(at + 16, 4),
                            .unpacked = read_number(at + 56, 8),
                            .flags = read_number(at + 40, 8),
                            .kind = (unsigned int)read_number(at, 2),
                            .architecture = (unsigned int)read_number(at + 28, 4)};
    if (header < ENTRY_HEADER || header > left || entry->bytes > left - header ||
        entry->packed > entry->bytes || entry->unpacked > MOST_TEXT)
        return false;
    entry->payload = at + header;
    entry->whole = header + entry->bytes;
    return true;
}

static char *unpack_entry(const struct entry *entry)
{
    bool is_packed = entry->flags & (FLAG_LZ4 | FLAG_ZSTD);
    uint64_t room = is_packed ? entry->unpacked : entry->bytes;
    char *text = calloc(1, room + 1);
    bool is_done = text != NULL;

    if (text && !is_packed)
        memcpy(text, entry->payload, entry->bytes);
    else if (text && (entry->flags & FLAG_LZ4))
        is_done = unpack_lz4(entry->payload, entry->packed, text, room);
    else if (text)
        is_done = unpack_zstd(entry->payload, entry->packed, text, room);
    if (is_done)
        return text;
    free(text);
    return NULL;
}

/* The header says how long the container is; the caller, how long the image is, does not. */
static char *unpack_container(const uint8_t *image, unsigned int architecture)
{
    const uint8_t *at = image + read_number(image + 6, 2);
    uint64_t left = read_number(image + 8, 8);
    struct entry best = {0}, entry;

    if (read_number(image + 6, 2) < FAT_HEADER)
        return NULL;
    while (read_entry(at, left, &entry)) {
        if (entry.kind == KIND_PTX && entry.architecture <= architecture &&
            (!best.payload || entry.architecture > best.architecture))
            best = entry;
        at += entry.whole;
        left -= entry.whole;
    }
    return best.payload ? unpack_entry(&best) : NULL;
}

/* Blanks and comments, then a directive. */
static bool is_text(const char *at)
{
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*') {
            at = strstr(at, "*/");
            if (!at)
                return false;
            at += 2;
        } else {
            return !strncmp(at, ".version", strlen(".version"));
        }
    }
}

char *ptx_unpack(const void *image, unsigned int architecture, bool *is_image)
{
    const uint8_t *bytes = image;
    uint64_t magic = 0;

    *is_image = true;
    /* Text may be shorter than a magic number. */
    for (unsigned int i = 0; i < 4 && (!i || bytes[i - 1]); i++)
        magic |= (uint64_t)bytes[i] << (8 * i);
    if (magic == WRAPPER_MAGIC) {
        bytes = (const uint8_t *)(uintptr_t)read_number(bytes + 8, 8);
        magic = bytes ? read_number(bytes, 4) : 0;
    }
    if (magic == FAT_MAGIC)
        return unpack_container(bytes, architecture);
    if (bytes && is_text((const char *)bytes))
        return strdup((const char *)bytes);
    *is_image = bytes && !memcmp(bytes, "\177ELF", 4);
    return NULL;
}
