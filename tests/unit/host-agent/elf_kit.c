/* SPDX-License-Identifier: MIT */
#include "tests/unit/host-agent/elf_kit.h"

#include <elf.h>
#include <string.h>

#include "tests/unit/file_tree.h"

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

enum { SECTION_NONE, SECTION_STRINGS, SECTION_SYMBOLS, SECTION_DYNAMIC, SECTION_COUNT };

/* Returns where it is in @to. */
static guint64 append(GByteArray *to, const void *bytes, gsize size)
{
    static const guint8 zeros[8];
    guint64 at;

    g_byte_array_append(to, zeros, (8 - to->len % 8) % 8);
    at = to->len;
    g_byte_array_append(to, bytes, (guint)size);
    return at;
}

static guint32 add_string(GByteArray *strings, const char *text)
{
    guint32 at = strings->len;

    g_byte_array_append(strings, (const guint8 *)text, (guint)strlen(text) + 1);
    return at;
}

static GArray *make_symbols(const char *functions, GByteArray *strings)
{
    GArray *symbols = g_array_new(FALSE, TRUE, sizeof(Elf64_Sym));
    g_auto(GStrv) names = g_strsplit(functions, " ", -1);

    g_array_set_size(symbols, 1);
    for (guint i = 0; names[i]; i++) {
        gboolean undefined = names[i][0] == '-';
        Elf64_Sym symbol = {
            .st_name = add_string(strings, names[i] + undefined),
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
            .st_shndx = undefined ? SHN_UNDEF : SECTION_SYMBOLS,
        };

        g_array_append_val(symbols, symbol);
    }
    return symbols;
}

GByteArray *elf_kit_bytes(const char *soname, const char *functions)
{
    Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = MACHINE,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTION_COUNT,
    };
    g_autoptr(GByteArray) strings = g_byte_array_new();
    guint32 name = add_string(strings, "") + add_string(strings, soname ? soname : "");
    g_autoptr(GArray) symbols = make_symbols(functions, strings);
    Elf64_Dyn dynamic[] = {{.d_tag = soname ? DT_SONAME : DT_DEBUG, .d_un.d_val = name}, {0}};
    Elf64_Shdr sections[SECTION_COUNT] = {
        [SECTION_STRINGS] = {.sh_type = SHT_STRTAB, .sh_size = strings->len},
        [SECTION_SYMBOLS] = {.sh_type = SHT_DYNSYM,
                             .sh_size = symbols->len * sizeof(Elf64_Sym),
                             .sh_link = SECTION_STRINGS},
        [SECTION_DYNAMIC] = {.sh_type = SHT_DYNAMIC,
                             .sh_size = sizeof(dynamic),
                             .sh_link = SECTION_STRINGS},
    };
    GByteArray *bytes = g_byte_array_new();

    append(bytes, &header, sizeof(header));
    sections[SECTION_STRINGS].sh_offset = append(bytes, strings->data, strings->len);
    sections[SECTION_SYMBOLS].sh_offset =
        append(bytes, symbols->data, symbols->len * sizeof(Elf64_Sym));
    sections[SECTION_DYNAMIC].sh_offset = append(bytes, dynamic, sizeof(dynamic));
    header.e_shoff = append(bytes, sections, sizeof(sections));
    memcpy(bytes->data, &header, sizeof(header));
    return bytes;
}

void elf_kit_write(HostRoot *root, const char *path, const char *soname, const char *functions)
{
    g_autoptr(GByteArray) bytes = elf_kit_bytes(soname, functions);
    g_autofree char *full = root_path(root, path, NULL);

    file_tree_write(root, path, "");
    g_assert_true(g_file_set_contents(full, (const char *)bytes->data, (gssize)bytes->len, NULL));
}
