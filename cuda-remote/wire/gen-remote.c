// SPDX-License-Identifier: MIT
/*
 * gen-remote TABLE TYPES OBJECTS STRUCTURES CALLS
 * [--numbers|--signatures|--client|--entries|--invoke FILE]...
 *
 * Reads the table of the driver's entry points and calls.def, and writes:
 *   numbers     C: the number of each call
 *   signatures  C: the table of signature.h
 *   client      C: the functions of the guest's library that only send what they are given
 *   entries     C: all functions of that library, for cuGetProcAddress
 *   invoke      C: calls of the driver with arguments that came in words
 * An entry without a row in calls.def is an error, so is a row that does not fit its signature.
 */
#include "entry_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS_MAX    64
#define NUMBERS_MAX    2048
#define KEPT_ARGUMENTS 6u /* of guest/kept.h */

struct call {
    const struct entry *entry;
    const struct mode *mode;
    char *roles;
};

static char *objects[OBJECTS_MAX], *holders[OBJECTS_MAX];
static bool is_coded[OBJECTS_MAX]; /* what a holder holds is known */
static unsigned int objects_count, holders_count;
static struct call calls[NUMBERS_MAX];
static unsigned int calls_end; /* the largest number, and 1 */

/* Those that are sent as their signature says; @function sends what it is given, NULL: by hand. */
static const struct mode {
    const char *name, *constant, *function;
    bool is_sent;
} modes[] = {
    {"local", "LOCAL", NULL, false},
    {"post", "POST", "remote_call", true},
    {"sync", "SYNC", "remote_call", true},
    {"keep", "KEEP", "remote_keep", true},
    {"here", "HERE", "remote_keep_here", true},
    {"turn", "TURN", "remote_turn", true},
    {"alter", "ALTER", "remote_alter", true},
    {"client", "CLIENT", NULL, true},
    {"hand", "HAND", NULL, false},
    {"refuse", "REFUSE", NULL, false},
};

static bool is_mode(const struct call *call, const char *mode)
{
    return call->entry && !strcmp(call->mode->name, mode);
}

static const struct mode *find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (!strcmp(modes[i].name, name))
            return &modes[i];
    return NULL;
}

static const struct entry *find_entry(const char *name)
{
    for (unsigned int i = 0; i < entries_count; i++)
        if (!strcmp(entries[i].name, name))
            return &entries[i];
    table_fail("calls.def has %s, which the table of entry points lacks", name);
}

static void read_objects(const char *path)
{
    FILE *file = open_file(path, "r");
    char line[512];

    while (fgets(line, sizeof(line), file)) {
        char *at = line + 2;

        if (objects_count == OBJECTS_MAX || holders_count == OBJECTS_MAX)
            table_fail("more than %d types of objects, or of what holds them", OBJECTS_MAX);
        if (!strncmp(line, "O(", 2))
            objects[objects_count++] = table_field(&at, ',');
        else if (!strncmp(line, "H(", 2))
            holders[holders_count++] = table_field(&at, ')');
    }
    fclose(file);
}

static unsigned int find_holder(const char *type)
{
    unsigned int i = 0;

    while (i < holders_count && strcmp(holders[i], type))
        i++;
    return i;
}

static void read_structures(const char *path)
{
    FILE *file = open_file(path, "r");
    char line[512];

    while (fgets(line, sizeof(line), file)) {
        char *at = strchr(line, '('), *type;
        unsigned int holder;

        bool is_kept = !strncmp(line, "KEPT(", 5);

        if (!at || (strncmp(line, "OBJECT_AT(", 10) && strncmp(line, "WRITTEN_AT(", 11) &&
                    strncmp(line, "ADDRESS_AT(", 11) && !is_kept))
            continue;
        at++;
        type = table_field(&at, is_kept ? ')' : ',');
        holder = find_holder(type);
        if (holder == holders_count)
            table_fail("structures.def has %s, which objects.def lacks", type);
        is_coded[holder] = true;
        free(type);
    }
    fclose(file);
}

static void parse_call(char *line)
{
    unsigned int number = (unsigned int)strtoul(line + 2, &line, 10);
    struct call *call = &calls[number];
    char *name, *mode;

    if (!number || number >= NUMBERS_MAX)
        table_fail("%u is no number of a call", number);
    line++;
    name = table_field(&line, ',');
    if (call->entry)
        table_fail("%s and %s have the number %u", call->entry->name, name, number);
    call->entry = find_entry(name);
    mode = table_field(&line, ',');
    call->mode = find_mode(mode);
    if (!call->mode)
        table_fail("%s has the unknown mode %s", name, mode);
    line = strchr(line, '"') + 1;
    call->roles = table_field(&line, '"');
    if (number >= calls_end)
        calls_end = number + 1;
    free(name);
    free(mode);
}

static void read_calls(const char *path)
{
    FILE *file = open_file(path, "r");
    char line[2048];
    unsigned int lacking = 0;

    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, "R(", 2))
            parse_call(line);
    fclose(file);
    for (unsigned int i = 0; i < entries_count; i++) {
        unsigned int n = 0;

        while (n < calls_end && calls[n].entry != &entries[i])
            n++;
        if (n < calls_end || is_kind(&entries[i], "leave"))
            continue;
        fprintf(stderr, "gen-remote: calls.def lacks %s: say how it is carried out\n",
                entries[i].name);
        lacking++;
    }
    if (lacking)
        exit(1);
}

static bool is_sent(const struct call *call)
{
    return call->entry && call->mode->is_sent;
}

static bool is_refused(const struct call *call)
{
    return is_mode(call, "refuse");
}

static const char *type_without_const(const struct argument *argument)
{
    return strncmp(argument->type, "const ", 6) ? argument->type : argument->type + 6;
}

static const char *object_of(const struct argument *argument)
{
    for (unsigned int i = 0; i < objects_count; i++)
        if (!strcmp(objects[i], type_without_const(argument)))
            return objects[i];
    return NULL;
}

static int index_of(const struct entry *entry, const char *name, size_t length)
{
    for (unsigned int i = 0; i < entry->count; i++)
        if (strlen(entry->arguments[i].name) == length &&
            !strncmp(entry->arguments[i].name, name, length))
            return (int)i;
    table_fail("%s has no argument %.*s", entry->name, (int)length, name);
}

/* What is behind "NAME=" in the roles; NULL: nothing. */
static const char *role_of(const struct call *call, const struct argument *argument)
{
    size_t length = strlen(argument->name);

    for (const char *at = call->roles; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, argument->name, length) && at[length] == '=')
            return at + length + 1;
    return NULL;
}

/* Of roles with a + between them it is one. */
static bool has_role(const struct call *call, const struct argument *argument, const char *role)
{
    const char *is = role_of(call, argument);

    while (is && strncmp(is, role, strlen(role))) {
        is += strcspn(is, "+ ");
        is = *is == '+' ? is + 1 : NULL;
    }
    return is != NULL;
}

/* NUMBER, ARGUMENT or ARGUMENT*FACTOR, up to @end. */
static void write_extent(FILE *file, const struct call *call, const char *from, const char *end)
{
    const char *star = memchr(from, '*', (size_t)(end - from));
    const char *name_end = star ? star : end;

    if (isdigit((unsigned char)*from))
        fprintf(file, ".count = -1, .fixed = %lu", strtoul(from, NULL, 10));
    else
        fprintf(file, ".count = %d, .bytes = %lu",
                index_of(call->entry, from, (size_t)(name_end - from)),
                star ? strtoul(star + 1, NULL, 10) : 1);
}

/* dev[BYTES] or dev[BYTES,ROWS,PITCH] */
static void write_device(FILE *file, const struct call *call, const char *role)
{
    const char *from = role + 4, *end = strchr(from, ']'), *comma, *second;

    if (!end)
        table_fail("%s: a role dev has no ]", call->entry->name);
    comma = memchr(from, ',', (size_t)(end - from));
    write_extent(file, call, from, comma ? comma : end);
    if (!comma) {
        fputs(", .rows = -1, .pitch = -1", file);
        return;
    }
    second = memchr(comma + 1, ',', (size_t)(end - comma - 1));
    if (!second)
        table_fail("%s: a role dev has rows and no pitch", call->entry->name);
    fprintf(file, ", .rows = %d, .pitch = %d",
            index_of(call->entry, comma + 1, (size_t)(second - comma - 1)),
            index_of(call->entry, second + 1, (size_t)(end - second - 1)));
}

static void write_count(FILE *file, const struct call *call, const struct argument *argument)
{
    const char *count = argument->count ? argument->count : "1";
    const char *name = count + (*count == '*');
    size_t length = strcspn(name, "-");

    if (isdigit((unsigned char)*count)) {
        fprintf(file, ".count = -1, .fixed = %s", count);
        return;
    }
    fprintf(file, ".count = %d, .is_indirect = %d, .minus = %lu",
            index_of(call->entry, name, length), *count == '*',
            name[length] ? strtoul(name + length + 1, NULL, 10) : 0);
}

/* NONE, or the structure that it points to, which holds objects or addresses. */
static const char *structure_of(const struct argument *argument)
{
    unsigned int holder =
        argument->stars == 1 ? find_holder(type_without_const(argument)) : holders_count;

    return holder < holders_count ? holders[holder] : "NONE";
}

static void write_pointer(FILE *file, const struct call *call, const struct argument *argument)
{
    static const char *const kinds[][2] = {
        {"in", "IN"}, {"out", "OUT"}, {"io", "IO"}, {"str", "TEXT"}};
    const char *object = argument->stars == 1 ? object_of(argument) : NULL;
    unsigned int i = 0;

    while (i < 4 && strcmp(kinds[i][0], argument->direction))
        i++;
    if (i == 4 || argument->stars > 2)
        table_fail("%s: %s is a pointer whose size does not follow, and has no role",
                   call->entry->name, argument->name);
    fprintf(file,
            "ARGUMENT_%s, .object = OBJECT_%s, .structure = STRUCTURE_%s, .is_shareable = %d, "
            ".is_optional = %d, .is_told = %d, .bytes = %u, ",
            kinds[i][1], object ? object : "NONE", structure_of(argument),
            has_role(call, argument, "host"), has_role(call, argument, "opt"),
            has_role(call, argument, "told"), argument->bytes);
    write_count(file, call, argument);
}

static void check_structure(const struct call *call, const struct argument *argument)
{
    unsigned int holder = find_holder(type_without_const(argument));

    if (holder < holders_count && !is_coded[holder])
        table_fail("%s: %s holds objects or addresses, which do not go as they are",
                   call->entry->name, argument->name);
}

static void write_argument(FILE *file, const struct call *call, const struct argument *argument)
{
    const char *object = object_of(argument);

    check_structure(call, argument);
    fputs("{.kind = ", file);
    if (has_role(call, argument, "none"))
        fputs("ARGUMENT_NULL", file);
    else if (has_role(call, argument, "dev["))
        fputs("ARGUMENT_DEVICE, ", file), write_device(file, call, role_of(call, argument));
    else if (has_role(call, argument, "raw"))
        fputs("ARGUMENT_VALUE", file);
    else if (argument->stars)
        write_pointer(file, call, argument);
    else if (object)
        fprintf(file, "ARGUMENT_OBJECT, .object = OBJECT_%s, .ends = %d", object,
                has_role(call, argument, "end"));
    else if (argument->bytes > 8)
        fprintf(file, "ARGUMENT_STRUCT, .count = -1, .fixed = 1, .bytes = %u", argument->bytes);
    else
        fputs("ARGUMENT_VALUE", file);
    fputs("},", file);
}

/* An answer is kept by what was asked: a few numbers and objects. */
static void check_kept(const struct call *call)
{
    if (call->entry->count > KEPT_ARGUMENTS)
        table_fail("%s: an answer to so many arguments is not kept", call->entry->name);
    for (unsigned int i = 0; i < call->entry->count; i++) {
        const struct argument *argument = &call->entry->arguments[i];

        if (argument->stars ? strcmp(argument->direction, "out") != 0 : argument->bytes > 8)
            table_fail("%s: an answer to what %s points to is not kept", call->entry->name,
                       argument->name);
    }
}

static void write_signatures(FILE *file)
{
    fprintf(file,
            "const unsigned int signatures_count = %u;\nconst struct signature signatures[] = {\n",
            calls_end);
    for (unsigned int n = 0; n < calls_end; n++) {
        const struct call *call = &calls[n];

        if (!call->entry)
            continue;
        if (is_mode(call, "keep") || is_mode(call, "here"))
            check_kept(call);
        fprintf(file, "[%u] = {\"%s\", CALL_%s, ", n, call->entry->name, call->mode->constant);
        if (is_sent(call)) {
            fprintf(file, "%u, {", call->entry->count);
            for (unsigned int i = 0; i < call->entry->count; i++)
                write_argument(file, call, &call->entry->arguments[i]);
            fputs("}", file);
        } else {
            fputs("0, {}", file);
        }
        fputs("},\n", file);
    }
    fputs("};\n", file);
}

/* How the argument is passed, whatever its type is called. */
static const char *passed_as(const struct argument *argument)
{
    if (argument->stars)
        return "const void *";
    if (!strcmp(argument->type, "float") || !strcmp(argument->type, "double"))
        return argument->type;
    switch (argument->bytes) {
    case 1:
        return "uint8_t ";
    case 2:
        return "uint16_t ";
    case 4:
        return "uint32_t ";
    case 8:
        return "uint64_t ";
    case 64:
        return "struct bytes_64 ";
    }
    table_fail("%s has %u bytes, and it is not known how that is passed", argument->type,
               argument->bytes);
}

static void write_parameters(FILE *file, const struct entry *entry, bool are_named)
{
    for (unsigned int i = 0; i < entry->count; i++) {
        fprintf(file, "%s%s", i ? ", " : "", passed_as(&entry->arguments[i]));
        if (are_named)
            fprintf(file, " a%u", i);
    }
    if (!entry->count)
        fputs("void", file);
}

static void write_word(FILE *file, const struct argument *argument, unsigned int at)
{
    const char *as = passed_as(argument);

    if (*as == 'f' || *as == 'd')
        fprintf(file, "word_of_%s(a%u)", as, at);
    else if (*as == 's')
        fprintf(file, "(uintptr_t)&a%u", at);
    else
        fprintf(file, argument->stars ? "(uintptr_t)a%u" : "a%u", at);
}

/* Those of which all is in the signature, and those that are refused. */
static void write_client(FILE *file)
{
    for (unsigned int n = 0; n < calls_end; n++) {
        const struct call *call = &calls[n];
        const struct entry *entry = call->entry;

        if (!entry || (!is_refused(call) && !call->mode->function))
            continue;
        if (is_refused(call)) {
            fprintf(file,
                    "EXPORT unsigned int %s(void);\nunsigned int %s(void) { return "
                    "remote_refuse(\"%s\", \"%s\"); }\n",
                    entry->name, entry->name, entry->name, call->roles);
            continue;
        }
        fprintf(file, "EXPORT unsigned int %s(", entry->name);
        write_parameters(file, entry, false);
        fprintf(file, ");\nunsigned int %s(", entry->name);
        write_parameters(file, entry, true);
        fputs(")\n{\n    const uint64_t words[SIGNATURE_ARGUMENTS] = {", file);
        for (unsigned int i = 0; i < entry->count; i++) {
            fputs(i ? ", " : "", file);
            write_word(file, &entry->arguments[i], i);
        }
        fprintf(file, "};\n    return %s(%u, words);\n}\n", call->mode->function, n);
    }
}

static void write_entries(FILE *file)
{
    for (unsigned int n = 0; n < calls_end; n++)
        if (calls[n].entry)
            fprintf(file, "E(%u, %s, %s, %s)\n", n, calls[n].entry->name, calls[n].entry->base,
                    calls[n].entry->since);
}

static void write_numbers(FILE *file)
{
    fputs("enum call_number {\n", file);
    for (unsigned int n = 0; n < calls_end; n++)
        if (calls[n].entry)
            fprintf(file, "    CALL_%s = %u,\n", calls[n].entry->name, n);
    fprintf(file, "    CALL_NUMBERS = %u,\n};\n", calls_end);
}

static void write_value(FILE *file, const struct argument *argument, unsigned int at)
{
    const char *as = passed_as(argument);

    if (*as == 'f' || *as == 'd')
        fprintf(file, "%s_of_word(words[%u])", as, at);
    else if (*as == 's')
        fprintf(file, "*(const struct bytes_64 *)(uintptr_t)words[%u]", at);
    else if (argument->stars)
        fprintf(file, "(const void *)(uintptr_t)words[%u]", at);
    else
        fprintf(file, "(%.*s)words[%u]", (int)strcspn(as, " "), as, at);
}

/* INVOKE_N functions, and a table of them. */
static void write_invoke(FILE *file)
{
    for (unsigned int n = 0; n < calls_end; n++) {
        if (!is_sent(&calls[n]))
            continue;
        fprintf(file,
                "static unsigned int invoke_%s(void *function, const uint64_t *words)\n{\n"
                "    (void)words;\n    return ((unsigned int (*)(",
                calls[n].entry->name);
        write_parameters(file, calls[n].entry, false);
        fputs("))function)(", file);
        for (unsigned int i = 0; i < calls[n].entry->count; i++) {
            fputs(i ? ", " : "", file);
            write_value(file, &calls[n].entry->arguments[i], i);
        }
        fputs(");\n}\n", file);
    }
    fputs("static unsigned int (*const invokes[])(void *, const uint64_t *) = {\n", file);
    for (unsigned int n = 0; n < calls_end; n++)
        if (is_sent(&calls[n]))
            fprintf(file, "    [%u] = invoke_%s,\n", n, calls[n].entry->name);
    fprintf(file, "    [%u] = NULL,\n};\n", calls_end);
}

static const struct {
    const char *option;
    void (*write)(FILE *file);
} outputs[] = {
    {"--numbers", write_numbers}, {"--signatures", write_signatures}, {"--client", write_client},
    {"--entries", write_entries}, {"--invoke", write_invoke},
};

static void write_output(const char *option, const char *path)
{
    for (unsigned int i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
        FILE *file;

        if (strcmp(outputs[i].option, option))
            continue;
        file = open_file(path, "w");
        fputs("/* Made by gen-remote. */\n", file);
        outputs[i].write(file);
        if (fclose(file))
            table_fail("cannot write %s", path);
        return;
    }
    table_fail("%s is not known", option);
}

int main(int argc, char **argv)
{
    if (argc < 6)
        table_fail("usage: gen-remote TABLE TYPES OBJECTS STRUCTURES CALLS "
                   "[--numbers|--signatures|--client|--entries|--invoke FILE]...");
    entry_table_read(argv[1], argv[2]);
    read_objects(argv[3]);
    read_structures(argv[4]);
    read_calls(argv[5]);
    for (int i = 6; i + 1 < argc; i += 2)
        write_output(argv[i], argv[i + 1]);
    return 0;
}
