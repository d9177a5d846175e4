// SPDX-License-Identifier: MIT
/*
 * gen-fronts TABLE TYPES AWAY [--fronts|--list FILE]...
 *
 * Checks that away.def says of each entry point what it does while memory is displaced, and writes:
 *   fronts  C: a line for each entry that the driver does not answer
 *           WAITS|BEGINS|ENDS|DROPS(NAME, (TYPES), (PARAMETERS), ARGUMENTS); OWN(NAME);
 *           STUB(NAME): one of them that has no function of ours in front of it
 *   list    C: AWAY(NAME, AWAY, WORDS) for each entry, for tests; WORDS as in calls.inc
 */
#include "entry_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 256

struct line {
    char *name, *away;
    bool used;
};

static struct line classes[LINES_MAX], exceptions[LINES_MAX];
static unsigned int classes_count, exceptions_count;

static const char *const ways[] = {"waits", "driver", "begins", "ends", "drops", "own", NULL};

static void read_line(struct line *lines, unsigned int *count, char *text)
{
    struct line *line = &lines[*count];
    unsigned int i = 0;

    if (*count == LINES_MAX)
        table_fail("away.def has more than %d lines of a kind", LINES_MAX);
    text += 2;
    line->name = table_field(&text, ',');
    line->away = table_field(&text, ')');
    while (ways[i] && strcmp(ways[i], line->away))
        i++;
    if (!ways[i])
        table_fail("%s is said to be %s, which is unknown", line->name, line->away);
    for (i = 0; i < *count; i++)
        if (!strcmp(lines[i].name, line->name))
            table_fail("%s is there twice in away.def", line->name);
    ++*count;
}

static void read_away(const char *path)
{
    FILE *file = open_file(path, "r");
    char text[256];

    while (fgets(text, sizeof(text), file)) {
        if (!strncmp(text, "A(", 2))
            read_line(classes, &classes_count, text);
        else if (!strncmp(text, "X(", 2))
            read_line(exceptions, &exceptions_count, text);
    }
    fclose(file);
}

static struct line *find_line(struct line *lines, unsigned int count, const char *name)
{
    for (unsigned int i = 0; i < count; i++) {
        if (strcmp(lines[i].name, name))
            continue;
        lines[i].used = true;
        return &lines[i];
    }
    return NULL;
}

static const char *away_of(const struct entry *entry)
{
    const struct line *class = find_line(classes, classes_count, entry->class);
    const struct line *exception = find_line(exceptions, exceptions_count, entry->name);

    if (!class)
        table_fail("away.def lacks the class %s of %s", entry->class, entry->name);
    if (exception && !strcmp(exception->away, class->away))
        table_fail("%s is as its class: it needs no line of its own in away.def", entry->name);
    return exception ? exception->away : class->away;
}

static bool is_away(const struct entry *entry, const char *away)
{
    return !strcmp(away_of(entry), away);
}

static bool has_front(const struct entry *entry)
{
    return !is_away(entry, "driver");
}

static void check_entry(const struct entry *entry)
{
    bool streams = is_away(entry, "begins") || is_away(entry, "ends") || is_away(entry, "drops");

    if (!has_front(entry))
        return;
    if (is_kind(entry, "leave"))
        table_fail("%s is left to the driver and cannot be kept waiting", entry->name);
    if (!has_signature(entry))
        table_fail("%s cannot be kept waiting: its arguments are not known", entry->name);
    if (streams && (!entry->count || strcmp(entry->arguments[0].type, "CUstream")))
        table_fail("%s begins or ends a capture, and its first argument is no stream", entry->name);
}

static void check_used(const struct line *lines, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        if (!lines[i].used)
            table_fail("away.def has %s, which the table lacks", lines[i].name);
}

static void check_all(void)
{
    for (unsigned int i = 0; i < entries_count; i++)
        check_entry(&entries[i]);
    check_used(classes, classes_count);
    check_used(exceptions, exceptions_count);
}

static bool is_floating(const struct argument *argument)
{
    return !argument->stars &&
           (!strcmp(argument->type, "float") || !strcmp(argument->type, "double"));
}

/* Passed on as registers and the stack have it: the table's types are not all declared. */
static void write_type(FILE *file, const struct argument *argument)
{
    if (argument->stars)
        fputs("void *", file);
    else if (is_floating(argument))
        fprintf(file, "%s ", argument->type);
    else if (argument->bytes <= 8)
        fputs("unsigned long ", file);
    else
        fprintf(file, "struct bytes_%u ", argument->bytes);
}

static void write_front(FILE *file, const struct entry *entry)
{
    for (const char *at = away_of(entry); *at; at++)
        fputc(toupper((unsigned char)*at), file);
    fprintf(file, "(%s, (", entry->name);
    for (unsigned int i = 0; i < entry->count; i++) {
        fputs(i ? ", " : "", file);
        write_type(file, &entry->arguments[i]);
    }
    fputs("), (", file);
    for (unsigned int i = 0; i < entry->count; i++) {
        fputs(i ? ", " : "", file);
        write_type(file, &entry->arguments[i]);
        fprintf(file, "a%u", i);
    }
    fputs(")", file);
    for (unsigned int i = 0; i < entry->count; i++)
        fprintf(file, ", a%u", i);
    fputs(")\n", file);
}

static void write_fronts(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs("/* Made by gen-fronts. */\n", file);
    for (unsigned int i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];

        if (is_away(entry, "own"))
            fprintf(file, "OWN(%s)\n", entry->name);
        else if (has_front(entry))
            write_front(file, entry);
        if (has_front(entry) && !is_wrapped(entry))
            fprintf(file, "STUB(%s)\n", entry->name);
    }
    fclose(file);
}

static void write_list(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs("/* Made by gen-fronts. */\n", file);
    for (unsigned int i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];

        fprintf(file, "AWAY(%s, %s, \"", entry->name, away_of(entry));
        for (unsigned int a = 0; a < entry->count; a++)
            fputc(entry->arguments[a].stars           ? 'p'
                  : is_floating(&entry->arguments[a]) ? 'f'
                  : entry->arguments[a].bytes > 16    ? 'b'
                                                      : 'v',
                  file);
        fputs("\")\n", file);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        table_fail("usage: gen-fronts TABLE TYPES AWAY [--fronts|--list FILE]...");
    entry_table_read(argv[1], argv[2]);
    read_away(argv[3]);
    check_all();
    for (int i = 4; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--fronts"))
            write_fronts(argv[i + 1]);
        else if (!strcmp(argv[i], "--list"))
            write_list(argv[i + 1]);
        else
            table_fail("%s is not known", argv[i]);
    }
    return 0;
}
