// SPDX-License-Identifier: MIT
#include "entry_table.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 256

struct type {
    char *name;
    unsigned int bytes;
};

struct entry entries[ENTRIES_MAX];
unsigned int entries_count;
static struct type types[TYPES_MAX];
static unsigned int types_count;

void table_fail(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (!file)
        table_fail("cannot open %s", path);
    return file;
}

char *table_copy(const char *from, size_t length)
{
    char *text = strndup(from, length);

    if (!text)
        table_fail("no memory");
    return text;
}

char *table_field(char **at, char end)
{
    char *from = *at + strspn(*at, " ");
    char *to = strchr(from, end);

    if (!to)
        table_fail("no '%c' in: %s", end, from);
    *at = to + 1;
    while (to > from && to[-1] == ' ')
        to--;
    return table_copy(from, (size_t)(to - from));
}

static unsigned int bytes_of(const char *type)
{
    for (unsigned int i = 0; i < types_count; i++) {
        if (!strcmp(types[i].name, type))
            return types[i].bytes;
    }
    table_fail("argument_types.def lacks %s", type);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* "const TYPE **name" */
static void parse_declaration(struct argument *argument, char *text)
{
    char *end = text + strlen(text), *name = end;
    const char *plain;

    while (name > text && is_word(name[-1]))
        name--;
    argument->name = table_copy(name, (size_t)(end - name));
    while (name > text && (name[-1] == '*' || name[-1] == ' ')) {
        argument->stars += name[-1] == '*';
        name--;
    }
    argument->type = table_copy(text, (size_t)(name - text));
    plain = strncmp(argument->type, "const ", 6) ? argument->type : argument->type + 6;
    if (argument->stars != 1 || strcmp(plain, "void"))
        argument->bytes = argument->stars > 1 ? 8 : bytes_of(plain);
    else
        argument->bytes = 1;
}

static const char *const directions[] = {"in", "out", "io", "str", "opaque", NULL};

static void parse_direction(const struct entry *entry, struct argument *argument, char *text)
{
    char *count = strchr(text, '[');

    if (count) {
        *count++ = 0;
        argument->count = table_copy(count, strcspn(count, "]"));
    }
    argument->direction = table_copy(text, strlen(text));
    for (unsigned int i = 0; directions[i]; i++) {
        if (!strcmp(directions[i], text))
            return;
    }
    table_fail("%s: %s has the unknown direction %s", entry->name, argument->name, text);
}

static void parse_argument(struct entry *entry, char *text)
{
    struct argument *argument = &entry->arguments[entry->count];
    char *direction = strchr(text, ':');

    if (entry->count++ == ARGUMENTS_MAX)
        table_fail("%s has more than %d arguments", entry->name, ARGUMENTS_MAX);
    if (direction)
        *direction++ = 0;
    parse_declaration(argument, text);
    if (direction)
        parse_direction(entry, argument, direction);
    if (!direction != !argument->stars)
        table_fail("%s: %s is a pointer without a direction, or none with one", entry->name,
                   argument->name);
}

static void check_count(const struct entry *entry, const struct argument *argument)
{
    const char *name = argument->count + (argument->count[0] == '*');
    size_t length = strcspn(name, "-");

    if (isdigit((unsigned char)*name))
        return;
    for (unsigned int i = 0; i < entry->count; i++) {
        if (strlen(entry->arguments[i].name) == length &&
            !strncmp(entry->arguments[i].name, name, length))
            return;
    }
    table_fail("%s: %s counts by %s, which is none of its arguments", entry->name, argument->name,
               argument->count);
}

bool has_signature(const struct entry *entry)
{
    return strcmp(entry->text, "local") && strcmp(entry->text, "unknown");
}

static void parse_arguments(struct entry *entry)
{
    char *text, *at, *next;

    if (!has_signature(entry))
        return;
    text = table_copy(entry->text, strlen(entry->text));
    for (at = text; *at; at = next) {
        next = strstr(at, ", ");
        if (next) {
            *next = 0;
            next += 2;
        } else {
            next = at + strlen(at);
        }
        parse_argument(entry, at);
    }
    free(text);
    for (unsigned int i = 0; i < entry->count; i++) {
        if (entry->arguments[i].count)
            check_count(entry, &entry->arguments[i]);
    }
}

bool is_kind(const struct entry *entry, const char *kind)
{
    return !strcmp(entry->kind, kind);
}

bool is_wrapped(const struct entry *entry)
{
    return is_kind(entry, "wrap") || is_kind(entry, "move") || is_kind(entry, "close");
}

static void check_kind(const struct entry *entry)
{
    static const char *const kinds[] = {"wrap", "move", "close", "pass", "used", "leave", NULL};
    unsigned int i = 0;

    while (kinds[i] && !is_kind(entry, kinds[i]))
        i++;
    if (!kinds[i])
        table_fail("%s is of the unknown kind %s", entry->name, entry->kind);
    if (is_kind(entry, "leave") != !strcmp(entry->class, "DEBUG"))
        table_fail("%s: what is for debuggers, and nothing else, is left to the driver",
                   entry->name);
}

static void parse_entry(char *line)
{
    struct entry *entry = &entries[entries_count];

    if (entries_count == ENTRIES_MAX)
        table_fail("more than %d entries", ENTRIES_MAX);
    line += 2;
    entry->name = table_field(&line, ',');
    entry->base = table_field(&line, ',');
    entry->since = table_field(&line, ',');
    entry->class = table_field(&line, ',');
    entry->kind = table_field(&line, ',');
    line = strchr(line, '"') + 1;
    entry->text = table_field(&line, '"');
    if (entries_count && strcmp(entries[entries_count - 1].name, entry->name) >= 0)
        table_fail("%s is there twice, or not in the order of names", entry->name);
    if (strncmp(entry->name, entry->base, strlen(entry->base)))
        table_fail("%s does not begin with its base %s", entry->name, entry->base);
    check_kind(entry);
    entries_count++;
    parse_arguments(entry);
    if ((is_wrapped(entry) || is_kind(entry, "used")) && !has_signature(entry))
        table_fail("%s is called by us and has no signature", entry->name);
}

static void parse_type(char *line)
{
    if (types_count == TYPES_MAX)
        table_fail("more than %d types", TYPES_MAX);
    line += 2;
    types[types_count].name = table_field(&line, ',');
    types[types_count++].bytes = (unsigned int)strtoul(line, NULL, 10);
}

static void read_table(const char *path, const char *begin, void (*parse)(char *line))
{
    FILE *file = open_file(path, "r");
    char line[2048];

    while (fgets(line, sizeof(line), file)) {
        if (!strncmp(line, begin, 2))
            parse(line);
    }
    fclose(file);
}

void entry_table_read(const char *table, const char *type_table)
{
    read_table(type_table, "T(", parse_type);
    read_table(table, "E(", parse_entry);
}
