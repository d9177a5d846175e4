// SPDX-License-Identifier: MIT
/*
 * gen-stubs TABLE TYPES [--result TYPE] [--abi HEADER]
 * [--names|--stubs|--header|--entries|--prototypes|--moves|--closes|--calls|--outputs FILE]...
 *
 * Reads and checks a table in the form of entry_points.def, and writes, when the door is built:
 *   stubs       assembly: a jump for each name that passes, the slots, and what fills a slot
 *   header      C: indices, types of the functions that are wrapped
 *   entries     C: the table itself
 *   prototypes  C: types of all functions that have a signature, for tests
 *   moves       C: a line for each function that time/move.c makes
 *   closes      C: the same for time/sync.c
 *   calls       C: a line for each entry with its arguments, for tests
 *   outputs     C: a line for each argument that a call writes, for the fake driver
 * Each --names FILE has names, one a line, first word; one that the table lacks is an error.
 */
#include "entry_table.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void check_names(const char *path)
{
    FILE *file = open_file(path, "r");
    char line[256];
    unsigned int lacking = 0;

    while (fgets(line, sizeof(line), file)) {
        unsigned int i = 0;

        line[strcspn(line, " \n")] = 0;
        while (i < entries_count && strcmp(entries[i].name, line))
            i++;
        if (i < entries_count || !*line)
            continue;
        fprintf(stderr, "gen-stubs: %s has %s, which the table lacks: say there what it is\n", path,
                line);
        lacking++;
    }
    fclose(file);
    if (lacking)
        exit(1);
}

static const char stubs_head[] =
    "/* Made by gen-stubs. */\n"
    "\t.text\n"
    "#if defined(__x86_64__)\n"
    "\t.macro jump_stub name, number\n"
    "\t.globl \\name\n\t.type \\name, %function\n\t.p2align 4\n"
    "\\name:\n\tendbr64\n\tjmp *entry_slots+8*\\number(%rip)\n\t.size \\name, .-\\name\n"
    "\t.endm\n"
    "\t.macro lazy_stub number\n"
    "lazy_\\number:\n\tendbr64\n\tpushq $\\number\n\tjmp lazy_resolve\n"
    "\t.endm\n"
    "\t.type lazy_resolve, %function\n"
    "lazy_resolve:\n"
    "\tpushq %rbp\n\tmovq %rsp, %rbp\n\tandq $-16, %rsp\n\tsubq $192, %rsp\n"
    "\tmovq %rdi, (%rsp)\n\tmovq %rsi, 8(%rsp)\n\tmovq %rdx, 16(%rsp)\n\tmovq %rcx, 24(%rsp)\n"
    "\tmovq %r8, 32(%rsp)\n\tmovq %r9, 40(%rsp)\n\tmovq %rax, 48(%rsp)\n\tmovq %r10, 56(%rsp)\n"
    "\tmovups %xmm0, 64(%rsp)\n\tmovups %xmm1, 80(%rsp)\n\tmovups %xmm2, 96(%rsp)\n"
    "\tmovups %xmm3, 112(%rsp)\n\tmovups %xmm4, 128(%rsp)\n\tmovups %xmm5, 144(%rsp)\n"
    "\tmovups %xmm6, 160(%rsp)\n\tmovups %xmm7, 176(%rsp)\n"
    "\tmovl 8(%rbp), %edi\n\tcall real_resolve\n\tmovq %rax, %r11\n"
    "\tmovq (%rsp), %rdi\n\tmovq 8(%rsp), %rsi\n\tmovq 16(%rsp), %rdx\n\tmovq 24(%rsp), %rcx\n"
    "\tmovq 32(%rsp), %r8\n\tmovq 40(%rsp), %r9\n\tmovq 48(%rsp), %rax\n\tmovq 56(%rsp), %r10\n"
    "\tmovups 64(%rsp), %xmm0\n\tmovups 80(%rsp), %xmm1\n\tmovups 96(%rsp), %xmm2\n"
    "\tmovups 112(%rsp), %xmm3\n\tmovups 128(%rsp), %xmm4\n\tmovups 144(%rsp), %xmm5\n"
    "\tmovups 160(%rsp), %xmm6\n\tmovups 176(%rsp), %xmm7\n"
    "\tmovq %rbp, %rsp\n\tpopq %rbp\n\taddq $8, %rsp\n\tjmp *%r11\n"
    "\t.size lazy_resolve, .-lazy_resolve\n"
    "#elif defined(__aarch64__)\n"
    "\t.macro jump_stub name, number\n"
    "\t.globl \\name\n\t.type \\name, %function\n\t.p2align 4\n"
    "\\name:\n\thint #34\n\tadrp x16, entry_slots+8*\\number\n"
    "\tldr x16, [x16, #:lo12:entry_slots+8*\\number]\n\tbr x16\n\t.size \\name, .-\\name\n"
    "\t.endm\n"
    "\t.macro lazy_stub number\n"
    "lazy_\\number:\n\thint #34\n\tmov w17, #\\number\n\tb lazy_resolve\n"
    "\t.endm\n"
    "\t.type lazy_resolve, %function\n"
    "lazy_resolve:\n"
    "\tstp x29, x30, [sp, #-208]!\n\tmov x29, sp\n"
    "\tstp x0, x1, [sp, #16]\n\tstp x2, x3, [sp, #32]\n\tstp x4, x5, [sp, #48]\n"
    "\tstp x6, x7, [sp, #64]\n\tstr x8, [sp, #200]\n"
    "\tstp q0, q1, [sp, #80]\n\tstp q2, q3, [sp, #112]\n\tstp d4, d5, [sp, #144]\n"
    "\tstp d6, d7, [sp, #160]\n"
    "\tmov w0, w17\n\tbl real_resolve\n\tmov x16, x0\n"
    "\tldp x0, x1, [sp, #16]\n\tldp x2, x3, [sp, #32]\n\tldp x4, x5, [sp, #48]\n"
    "\tldp x6, x7, [sp, #64]\n\tldr x8, [sp, #200]\n"
    "\tldp q0, q1, [sp, #80]\n\tldp q2, q3, [sp, #112]\n\tldp d4, d5, [sp, #144]\n"
    "\tldp d6, d7, [sp, #160]\n"
    "\tldp x29, x30, [sp], #208\n\tbr x16\n"
    "\t.size lazy_resolve, .-lazy_resolve\n"
    "#else\n#error \"stubs for this processor are not written\"\n#endif\n";

static void write_stubs(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs(stubs_head, file);
    for (unsigned int i = 0; i < entries_count; i++) {
        if (is_kind(&entries[i], "pass") || is_kind(&entries[i], "used"))
            fprintf(file, "\tjump_stub %s, %u\n", entries[i].name, i);
    }
    for (unsigned int i = 0; i < entries_count; i++)
        fprintf(file, "\tlazy_stub %u\n", i);
    fputs("\t.data\n\t.p2align 3\n\t.globl entry_slots\n\t.hidden entry_slots\n\t.hidden "
          "real_resolve\n"
          "\t.type entry_slots, %object\nentry_slots:\n",
          file);
    for (unsigned int i = 0; i < entries_count; i++)
        fprintf(file, "#if defined(__x86_64__) || defined(__aarch64__)\n\t.quad lazy_%u\n#endif\n",
                i);
    fputs("\t.size entry_slots, .-entry_slots\n\t.section .note.GNU-stack, \"\", %progbits\n",
          file);
    fclose(file);
}

static void write_prototype(FILE *file, const struct entry *entry)
{
    for (unsigned int i = 0; i < entry->count; i++) {
        const struct argument *argument = &entry->arguments[i];

        fprintf(file, "%s%s %.*s%s", i ? ", " : "", argument->type, (int)argument->stars, "**",
                argument->name);
    }
    if (!entry->count)
        fputs("void", file);
}

static void write_header(const char *path, const char *result, const char *abi)
{
    FILE *file = open_file(path, "w");

    fprintf(file, "/* Made by gen-stubs. */\n#include \"%s\"\n#define ENTRIES_COUNT %u\n", abi,
            entries_count);
    for (unsigned int i = 0; i < entries_count; i++)
        fprintf(file, "#define ENTRY_%s %u\n", entries[i].name, i);
    for (unsigned int i = 0; i < entries_count; i++) {
        if (!is_wrapped(&entries[i]) && !is_kind(&entries[i], "used"))
            continue;
        fprintf(file, "typedef %s %s_function(", result, entries[i].name);
        write_prototype(file, &entries[i]);
        fputs(");\n", file);
        if (is_wrapped(&entries[i]))
            fprintf(file, "__attribute__((visibility(\"default\"))) %s_function %s;\n",
                    entries[i].name, entries[i].name);
    }
    fclose(file);
}

/* For tests: of each that has a signature. */
static void write_prototypes(const char *path, const char *result)
{
    FILE *file = open_file(path, "w");

    for (unsigned int i = 0; i < entries_count; i++) {
        if (!has_signature(&entries[i]))
            continue;
        fprintf(file, "typedef %s %s_prototype(", result, entries[i].name);
        write_prototype(file, &entries[i]);
        fputs(");\n", file);
    }
    fclose(file);
}

static void write_entries(const char *path)
{
    FILE *file = open_file(path, "w");

    fprintf(file,
            "/* Made by gen-stubs. */\nconst unsigned int entry_points_count = %u;\n"
            "const struct entry_point entry_points[] = {\n",
            entries_count);
    for (unsigned int i = 0; i < entries_count; i++) {
        const char *kind = is_wrapped(&entries[i])         ? "WRAP"
                           : is_kind(&entries[i], "leave") ? "LEAVE"
                                                           : "PASS";

        fprintf(file, "    {\"%s\", \"%s\", %s, CLASS_%s, ENTRY_%s},\n", entries[i].name,
                entries[i].base, entries[i].since, entries[i].class, kind);
    }
    fputs("};\nvoid *const entry_wrappers[] = {\n", file);
    for (unsigned int i = 0; i < entries_count; i++)
        fprintf(file, is_wrapped(&entries[i]) ? "    (void *)%s,\n" : "    NULL,\n",
                entries[i].name);
    fputs("};\n", file);
    fclose(file);
}

static const char *find_argument(const struct entry *entry, const char *name)
{
    for (unsigned int i = 0; i < entry->count; i++)
        if (!strcmp(entry->arguments[i].name, name))
            return name;
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);

    return length >= of_end && !strcmp(text + length - of_end, end);
}

/* What of the GPU moves the memory, if the arguments do not say it. */
static const char *mover_of(const struct entry *entry)
{
    static const char *const inside[] = {"DtoD", "AtoA", "AtoD", "DtoA", NULL};

    if (!strcmp(entry->class, "SET"))
        return "MOVE_FILL";
    if (!strcmp(entry->class, "MANAGED"))
        return "MOVE_PAGES";
    for (unsigned int i = 0; inside[i]; i++)
        if (strstr(entry->name, inside[i]))
            return "MOVE_INSIDE";
    return "MOVE_HOST";
}

/* Of a copy between any two addresses, of which only the driver knows where they are. False: it is
 * none. */
static bool write_generic_mover(FILE *file, const struct entry *entry)
{
    static const char *const pairs[][2] = {{"dst", "src"}, {"dstDevice", "srcDevice"}};
    const char *bytes =
        find_argument(entry, "ByteCount") ? "ByteCount" : find_argument(entry, "size");

    if (find_argument(entry, "dsts") && find_argument(entry, "srcs")) {
        fputs("places_are_inside_all(dsts, srcs, sizes, count) ? MOVE_INSIDE : MOVE_HOST", file);
        return true;
    }
    for (unsigned int i = 0; bytes && i < 2; i++) {
        if (!find_argument(entry, pairs[i][0]) || !find_argument(entry, pairs[i][1]) ||
            strcmp(mover_of(entry), "MOVE_HOST"))
            continue;
        fprintf(file, "places_are_inside(%s, %s, %s) ? MOVE_INSIDE : MOVE_HOST", pairs[i][0],
                pairs[i][1], bytes);
        return true;
    }
    return false;
}

/* BYTES: an expression of the arguments. */
static void write_bytes(FILE *file, const struct entry *entry)
{
    if (find_argument(entry, "opList"))
        fputs("bytes_of_operations(opList, numOps)", file);
    else if (find_argument(entry, "paramsArray"))
        fputs("bytes_unpacked(paramsArray, count)", file);
    else if (find_argument(entry, "sizes"))
        fputs("bytes_of_sizes(sizes, count)", file);
    else if (find_argument(entry, "Width"))
        fprintf(file, "(uint64_t)Width * Height * sizeof(%s)", entry->arguments[2].name);
    else if (find_argument(entry, "N"))
        fprintf(file, "(uint64_t)N * sizeof(%s)", entry->arguments[1].name);
    else if (find_argument(entry, "ByteCount") || find_argument(entry, "size") ||
             find_argument(entry, "count"))
        fputs(find_argument(entry, "ByteCount") ? "ByteCount"
              : find_argument(entry, "size")    ? "size"
                                                : "count",
              file);
    else
        table_fail("%s moves memory, and its arguments do not say how much", entry->name);
}

/* MOVER, BYTES */
static void write_size(FILE *file, const struct entry *entry)
{
    const char *structure = find_argument(entry, "op") ? "op" : find_argument(entry, "pCopy");

    if (structure) {
        fprintf(file, "MOVER_OF(%1$s), BYTES_OF(%1$s)", structure);
        return;
    }
    if (find_argument(entry, "opList"))
        fputs("mover_of_operations(opList, numOps)", file);
    else if (!write_generic_mover(file, entry))
        fputs(mover_of(entry), file);
    fputs(", ", file);
    write_bytes(file, entry);
}

static const char *stream_of(const struct entry *entry)
{
    return find_argument(entry, "hStream")  ? "hStream"
           : find_argument(entry, "stream") ? "stream"
                                            : "NULL";
}

/* From here to there, and the caller waits: TO, FROM and BYTES are all of its arguments. */
static bool is_linear(const struct entry *entry)
{
    return entry->count == 3 && find_argument(entry, "ByteCount") &&
           !strcmp(mover_of(entry), "MOVE_HOST");
}

static bool is_of_own_default(const struct entry *entry)
{
    return ends_with(entry->name, "_ptds") || ends_with(entry->name, "_ptsz");
}

static void write_arguments(FILE *file, const struct entry *entry)
{
    for (unsigned int i = 0; i < entry->count; i++)
        fprintf(file, ", %s", entry->arguments[i].name);
    fputs(")\n", file);
}

/*
 * MOVE(NAME, OWN_DEFAULT, IS_ASYNC, STREAM, MOVER, BYTES, (PARAMETERS), ARGUMENTS)
 * LINEAR(NAME, OWN_DEFAULT, MOVER, (PARAMETERS), TO, FROM, BYTES)
 */
static void write_moves(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs("/* Made by gen-stubs. */\n", file);
    for (unsigned int i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];
        bool own = is_of_own_default(entry);

        if (!is_kind(entry, "move"))
            continue;
        if (is_linear(entry)) {
            fprintf(file, "LINEAR(%s, %s, ", entry->name, own ? "true" : "false");
            fputs(write_generic_mover(file, entry) ? ", (" : "MOVE_HOST, (", file);
        } else {
            fprintf(file, "MOVE(%s, %s, %s, %s, ", entry->name, own ? "true" : "false",
                    strstr(entry->name, "Async") ? "true" : "false", stream_of(entry));
            write_size(file, entry);
            fputs(", (", file);
        }
        write_prototype(file, entry);
        fputs(")", file);
        write_arguments(file, entry);
    }
    fclose(file);
}

/* CLOSES|LEAVES(NAME, OWN_DEFAULT, STREAM, (PARAMETERS), ARGUMENTS); LEAVES: of a capture. */
static void write_closes(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs("/* Made by gen-stubs. */\n", file);
    for (unsigned int i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];

        if (!is_kind(entry, "close"))
            continue;
        fprintf(file, "%s(%s, %s, %s, (", strcmp(entry->class, "CAPTURE") ? "CLOSES" : "LEAVES",
                entry->name, is_of_own_default(entry) ? "true" : "false", stream_of(entry));
        write_prototype(file, entry);
        fputs(")", file);
        write_arguments(file, entry);
    }
    fclose(file);
}

static bool is_written(const struct entry *entry, const struct argument *argument)
{
    return argument->direction && !strcmp(argument->direction, "out") && !is_kind(entry, "move") &&
           argument->bytes;
}

/*
 * O(NAME, ARGUMENT, BYTES, COUNTED_BY, COUNT, COUNT_BYTES): what a call writes, an element of
 * BYTES. COUNTED_BY: 'n': COUNT is their number; 'v': COUNT is the argument with it; 'p': with a
 * pointer to it.
 */
static void write_output(FILE *file, const struct entry *entry, unsigned int at)
{
    const struct argument *argument = &entry->arguments[at];
    const char *count = argument->count ? argument->count : "1";
    bool is_pointer = *count == '*';

    if (isdigit((unsigned char)*count)) {
        fprintf(file, "O(%s, %u, %u, 'n', %s, 0)\n", entry->name, at, argument->bytes, count);
        return;
    }
    for (unsigned int i = 0; i < entry->count; i++)
        if (!strcmp(entry->arguments[i].name, count + is_pointer))
            fprintf(file, "O(%s, %u, %u, '%c', %u, %u)\n", entry->name, at, argument->bytes,
                    is_pointer ? 'p' : 'v', i, entry->arguments[i].bytes);
}

static void write_outputs(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs("/* Made by gen-stubs. */\n", file);
    for (unsigned int i = 0; i < entries_count; i++)
        for (unsigned int a = 0; a < entries[i].count; a++)
            if (is_written(&entries[i], &entries[i].arguments[a]))
                write_output(file, &entries[i], a);
    fclose(file);
}

/* C(NAME, BASE, SINCE, CLASS, KIND, WORDS): WORDS: a letter for each argument: v: a value of a
 * register, b: one of its own memory, f: a floating one, p: a pointer. */
static void write_calls(const char *path)
{
    FILE *file = open_file(path, "w");

    fputs("/* Made by gen-stubs. */\n", file);
    for (unsigned int i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];

        fprintf(file, "C(%s, %s, %s, CLASS_%s, %s, \"", entry->name, entry->base, entry->since,
                entry->class, is_wrapped(entry) ? "wrap" : entry->kind);
        for (unsigned int a = 0; a < entry->count; a++) {
            const struct argument *argument = &entry->arguments[a];
            bool floating = !strcmp(argument->type, "float") || !strcmp(argument->type, "double");

            fputc(argument->stars ? 'p' : floating ? 'f' : argument->bytes > 16 ? 'b' : 'v', file);
        }
        fputs("\")\n", file);
    }
    fclose(file);
}

int main(int argc, char **argv)
{
    const char *result = "CUresult", *abi = "cuda_abi.h";

    if (argc < 3)
        table_fail(
            "usage: gen-stubs TABLE TYPES [--result TYPE] "
            "[--names|--stubs|--header|--entries|--prototypes|--moves|--closes|--calls|--outputs "
            "FILE]...");
    entry_table_read(argv[1], argv[2]);
    for (int i = 3; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--result"))
            result = argv[i + 1];
        else if (!strcmp(argv[i], "--abi"))
            abi = argv[i + 1];
        else if (!strcmp(argv[i], "--names"))
            check_names(argv[i + 1]);
        else if (!strcmp(argv[i], "--stubs"))
            write_stubs(argv[i + 1]);
        else if (!strcmp(argv[i], "--header"))
            write_header(argv[i + 1], result, abi);
        else if (!strcmp(argv[i], "--entries"))
            write_entries(argv[i + 1]);
        else if (!strcmp(argv[i], "--prototypes"))
            write_prototypes(argv[i + 1], result);
        else if (!strcmp(argv[i], "--moves"))
            write_moves(argv[i + 1]);
        else if (!strcmp(argv[i], "--closes"))
            write_closes(argv[i + 1]);
        else if (!strcmp(argv[i], "--calls"))
            write_calls(argv[i + 1]);
        else if (!strcmp(argv[i], "--outputs"))
            write_outputs(argv[i + 1]);
        else
            table_fail("%s is not known", argv[i]);
    }
    return 0;
}
