/* SPDX-License-Identifier: MIT */
#include "lib/nvidia_driver.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/host_root.h"

/* What a shared library says of itself: its name, and the functions that others can call. */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

/**
 * ElfFile
 * @map: the whole file, of which nothing is believed before it was checked
 * @sections: in @map, aligned
 */
struct ElfFile {
    GMappedFile *map;
    const guint8 *bytes;
    gsize size;
    const Elf64_Shdr *sections;
    guint section_count;
};

/* In the file, whole, and aligned for what is read there. */
static const void *file_part(const ElfFile *file, guint64 offset, guint64 size)
{
    if (offset > file->size || size > file->size - offset || offset % 8)
        return NULL;
    return file->bytes + offset;
}

static gboolean read_header(ElfFile *file)
{
    const Elf64_Ehdr *header = file_part(file, 0, sizeof(*header));

    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_type != ET_DYN || header->e_machine != MACHINE ||
        header->e_shentsize != sizeof(Elf64_Shdr))
        return FALSE;
    file->section_count = header->e_shnum;
    file->sections =
        file_part(file, header->e_shoff, (guint64)header->e_shnum * sizeof(*file->sections));
    return file->sections != NULL;
}

static GMappedFile *map_file(HostRoot *root, const char *path, GError **error)
{
    int fd = root_open(root, path, O_RDONLY, 0);
    int code = errno;
    GMappedFile *map;

    if (fd < 0) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(code), "%s can't be read: %s",
                    path, g_strerror(code));
        return NULL;
    }
    map = g_mapped_file_new_from_fd(fd, FALSE, error);
    close(fd);
    return map;
}

ElfFile *elf_file_open(HostRoot *root, const char *path, GError **error)
{
    g_autoptr(GMappedFile) map = map_file(root, path, error);
    g_autoptr(ElfFile) file = NULL;

    if (!map)
        return NULL;
    file = g_new0(ElfFile, 1);
    file->map = g_steal_pointer(&map);
    file->bytes = (const guint8 *)g_mapped_file_get_contents(file->map);
    file->size = g_mapped_file_get_length(file->map);
    if (read_header(file))
        return g_steal_pointer(&file);
    g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                "%s is not a shared library for 64-bit programs of this machine", path);
    return NULL;
}

void elf_file_free(ElfFile *file)
{
    g_mapped_file_unref(file->map);
    g_free(file);
}

static const Elf64_Shdr *section_of(const ElfFile *file, guint32 type)
{
    for (guint i = 0; i < file->section_count; i++)
        if (file->sections[i].sh_type == type)
            return &file->sections[i];
    return NULL;
}

/* Text at @offset in the strings of @section; NULL: it does not end in there. */
static const char *text_at(const ElfFile *file, const Elf64_Shdr *section, guint64 offset)
{
    const Elf64_Shdr *strings;

    if (section->sh_link >= file->section_count)
        return NULL;
    strings = &file->sections[section->sh_link];
    if (strings->sh_offset > file->size || strings->sh_size > file->size - strings->sh_offset ||
        offset >= strings->sh_size ||
        !memchr(file->bytes + strings->sh_offset + offset, 0, strings->sh_size - offset))
        return NULL;
    return (const char *)file->bytes + strings->sh_offset + offset;
}

const char *elf_file_soname(const ElfFile *file)
{
    const Elf64_Shdr *section = section_of(file, SHT_DYNAMIC);
    const Elf64_Dyn *entries =
        section ? file_part(file, section->sh_offset, section->sh_size) : NULL;

    for (gsize i = 0; entries && i < section->sh_size / sizeof(*entries); i++)
        if (entries[i].d_tag == DT_SONAME)
            return text_at(file, section, entries[i].d_un.d_val);
    return NULL;
}

static gboolean is_export(const Elf64_Sym *symbol)
{
    guint binding = ELF64_ST_BIND(symbol->st_info);

    return symbol->st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

GHashTable *elf_file_exports(const ElfFile *file)
{
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    const Elf64_Shdr *section = section_of(file, SHT_DYNSYM);
    const Elf64_Sym *symbols =
        section ? file_part(file, section->sh_offset, section->sh_size) : NULL;

    for (gsize i = 0; symbols && i < section->sh_size / sizeof(*symbols); i++) {
        const char *name =
            is_export(&symbols[i]) ? text_at(file, section, symbols[i].st_name) : NULL;

        if (name && *name)
            g_hash_table_add(names, (char *)name);
    }
    return names;
}

#if defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

/*
 * Of Debian and Ubuntu, of other distributions, and of hosts that get the driver with its image.
 * The first folder with a library counts.
 */
static const char *const folders[] = {
    "/usr/lib/" MULTIARCH,     "/usr/lib/" MULTIARCH "/nvidia/current", "/usr/lib64", "/usr/lib",
    "/usr/local/nvidia/lib64",
};

static void library_free(void *data)
{
    NvidiaLibrary *library = data;

    g_free(library->path);
    g_free(library->soname);
    g_free(library);
}

void nvidia_driver_free(NvidiaDriver *driver)
{
    g_free(driver->version);
    g_ptr_array_unref(driver->libraries);
    g_free(driver);
}

const NvidiaLibrary *nvidia_driver_library(const NvidiaDriver *driver, const char *soname)
{
    for (guint i = 0; i < driver->libraries->len; i++) {
        const NvidiaLibrary *library = g_ptr_array_index(driver->libraries, i);

        if (g_str_equal(library->soname, soname))
            return library;
    }
    return NULL;
}

/* A name is all that others need it by: one with a path in it is not a library's. */
static char *soname_of(HostRoot *root, const char *path)
{
    g_autoptr(ElfFile) elf = elf_file_open(root, path, NULL);
    const char *soname = elf ? elf_file_soname(elf) : NULL;

    return soname && g_str_has_prefix(soname, "lib") && !strchr(soname, '/') ? g_strdup(soname)
                                                                             : NULL;
}

static void look_at(HostRoot *root, const char *folder, const char *name, NvidiaDriver *driver)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *soname = soname_of(root, path);
    NvidiaLibrary *library;

    if (!soname || nvidia_driver_library(driver, soname))
        return;
    library = g_new0(NvidiaLibrary, 1);
    library->path = g_steal_pointer(&path);
    library->soname = g_steal_pointer(&soname);
    g_ptr_array_add(driver->libraries, library);
}

/* EGL's platforms have versions of their own. Links to them are not what is looked for. */
static gboolean is_platform(HostRoot *root, const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);

    return g_str_has_prefix(name, NVIDIA_EGL_PLATFORM) && strstr(name, ".so.") &&
           !root_is(root, path, G_FILE_TEST_IS_SYMLINK);
}

static void look_in(HostRoot *root, const char *folder, NvidiaDriver *driver)
{
    g_autofree char *end = g_strconcat(".so.", driver->version, NULL);
    g_auto(GStrv) names = sysfs_list(root, folder);

    for (guint i = 0; names[i]; i++)
        if ((g_str_has_prefix(names[i], "lib") && g_str_has_suffix(names[i], end)) ||
            is_platform(root, folder, names[i]))
            look_at(root, folder, names[i], driver);
}

static int by_soname(const void *a, const void *b)
{
    return strcmp((*(const NvidiaLibrary *const *)a)->soname,
                  (*(const NvidiaLibrary *const *)b)->soname);
}

NvidiaDriver *nvidia_driver_find(HostRoot *root)
{
    g_autofree char *version = sysfs_read(root, "/sys/module/nvidia", "version");
    g_autoptr(NvidiaDriver) driver = NULL;

    if (!version || !*version)
        return NULL;
    driver = g_new0(NvidiaDriver, 1);
    driver->version = g_steal_pointer(&version);
    driver->libraries = g_ptr_array_new_with_free_func(library_free);
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++)
        look_in(root, folders[i], driver);
    if (!nvidia_driver_library(driver, NVIDIA_CUDA) || !nvidia_driver_library(driver, NVIDIA_ML))
        return NULL;
    g_ptr_array_sort(driver->libraries, by_soname);
    return g_steal_pointer(&driver);
}
