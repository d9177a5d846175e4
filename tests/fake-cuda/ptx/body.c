// SPDX-License-Identifier: MIT
/* The body of a function: declarations, labels, instructions. */
#include "inside.h"

#include <stdlib.h>

/* A label, or a list of them for brx.idx; its place is known at the end. */
struct label {
    struct token name;
    uint32_t at;
};

struct body {
    struct parser *parser;
    struct label *labels;
    uint32_t count, room;
    unsigned int depth;
};

static void add_label(struct body *body, const struct token *name)
{
    if (body->count == body->room) {
        uint32_t room = body->room ? 2 * body->room : 32;
        struct label *more = realloc(body->labels, room * sizeof(*more));

        if (!more) {
            parser_fail(body->parser, "no memory", NULL, 0);
            return;
        }
        body->labels = more;
        body->room = room;
    }
    body->labels[body->count++] = (struct label){*name, body->parser->length};
}

static int compare_labels(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    size_t length = x->name.length < y->name.length ? x->name.length : y->name.length;
    int order = memcmp(x->name.text, y->name.text, length);

    if (order)
        return order;
    return (x->name.length > y->name.length) - (x->name.length < y->name.length);
}

static bool find_label(const struct body *body, const char *name, size_t length, uint32_t *at)
{
    const struct label key = {.name = {.text = name, .length = length}};
    const struct label *found =
        body->count ? bsearch(&key, body->labels, body->count, sizeof(key), compare_labels) : NULL;

    if (found)
        *at = found->at;
    return found != NULL;
}

static struct instruction *add_instruction(struct parser *parser)
{
    if (parser->length == parser->room) {
        uint32_t room = parser->room ? 2 * parser->room : 256;
        struct instruction *more = realloc(parser->code, room * sizeof(*more));

        if (!more) {
            parser_fail(parser, "no memory", NULL, 0);
            return NULL;
        }
        parser->code = more;
        parser->room = room;
    }
    parser->code[parser->length] = (struct instruction){0};
    return &parser->code[parser->length++];
}

static void read_guard(struct parser *parser, struct instruction *made)
{
    struct operand guard;

    made->guard_is_negated = parser_accept(parser, '!');
    operand_read(parser, &guard, T_PRED);
    if (!parser->has_failed && guard.kind != OPERAND_REGISTER)
        parser_fail(parser, "a guard is a predicate", NULL, 0);
    made->has_guard = true;
    made->guard = (uint32_t)guard.value;
}

static void read_instruction(struct parser *parser)
{
    struct instruction made = {.line = parser->token.line};
    struct instruction *added;

    if (parser_accept(parser, '@'))
        read_guard(parser, &made);
    if (parser->has_failed)
        return;
    instruction_read(parser, &made);
    added = parser->has_failed ? NULL : add_instruction(parser);
    if (added)
        *added = made;
}

/* NAME: .branchtargets A, B; the names are kept as a list of symbols until the end. */
static void read_targets(struct parser *parser, const struct token *name)
{
    struct symbol *symbol = parser_add(
        parser,
        &(struct symbol){.kind = SYMBOL_TARGETS, .name = name->text, .length = name->length});
    uint32_t at = parser->symbol_count, count = 0;

    symbol->at = parser->function->target_lists++;
    do {
        struct token label = parser->token;

        if (label.kind != TOKEN_WORD) {
            parser_fail(parser, "expected a label", NULL, 0);
            return;
        }
        parser_add(parser, &(struct symbol){
                               .kind = SYMBOL_LABEL, .name = label.text, .length = label.length});
        count++;
        parser_next(parser);
    } while (parser_accept(parser, ','));
    if (!parser->has_failed)
        parser->symbols[at - 1].count = count;
    parser_expect(parser, ';');
}

static void skip_to_semicolon(struct parser *parser)
{
    while (!parser_is(parser, ';') && parser->token.kind != TOKEN_END)
        parser_next(parser);
    parser_expect(parser, ';');
}

/* What a label stands before, if it is no instruction. */
static void read_labelled(struct body *body, const struct token *name)
{
    struct parser *parser = body->parser;

    if (parser_accept_dot(parser, "branchtargets")) {
        read_targets(parser, name);
    } else if (parser_accept_dot(parser, "callprototype") ||
               parser_accept_dot(parser, "calltargets")) {
        parser_add(
            parser,
            &(struct symbol){.kind = SYMBOL_PROTOTYPE, .name = name->text, .length = name->length});
        skip_to_semicolon(parser);
    } else {
        add_label(body, name);
    }
}

/* A word is a label if a colon follows it. */
static bool read_label(struct body *body)
{
    struct parser *parser = body->parser;
    struct lexer before = parser->lexer;
    struct token name = parser->token;

    parser_next(parser);
    if (parser_accept(parser, ':')) {
        read_labelled(body, &name);
        return true;
    }
    if (!parser->has_failed) {
        parser->lexer = before;
        parser->token = name;
    }
    return false;
}

static void read_dotted(struct parser *parser)
{
    if (parser_is_dot(parser, "reg"))
        declare_registers(parser);
    else if (parser_is_dot(parser, "local") || parser_is_dot(parser, "param"))
        declare_in_frame(parser);
    else if (parser_is_dot(parser, "loc") || parser_is_dot(parser, "file")) {
        unsigned int line = parser->token.line;

        while (parser->token.kind != TOKEN_END && parser->token.line == line)
            parser_next(parser);
    } else if (parser_is_dot(parser, "pragma")) {
        skip_to_semicolon(parser);
    } else {
        declare_variable(parser, parser_accept_dot(parser, "extern"));
    }
}

static void read_statements(struct body *body);

/* Names that it declares end with it; lists of targets stay. */
static void read_scope(struct body *body)
{
    struct parser *parser = body->parser;
    uint32_t symbols = parser->symbol_count;
    uint32_t lists = parser->function->target_lists;

    if (++body->depth > 64)
        parser_fail(parser, "too many braces", NULL, 0);
    read_statements(body);
    body->depth--;
    parser_expect(parser, '}');
    if (lists == parser->function->target_lists && !parser->has_failed)
        parser->symbol_count = symbols;
}

static void read_statements(struct body *body)
{
    struct parser *parser = body->parser;

    while (!parser_is(parser, '}') && parser->token.kind != TOKEN_END) {
        if (parser_accept(parser, '{'))
            read_scope(body);
        else if (parser_accept(parser, ';'))
            continue;
        else if (parser->token.kind == TOKEN_DOT)
            read_dotted(parser);
        else if (parser_is(parser, '@') || (parser->token.kind == TOKEN_WORD && !read_label(body)))
            read_instruction(parser);
        else if (parser->token.kind != TOKEN_WORD && parser->token.kind != TOKEN_DOT &&
                 !parser_is(parser, '}') && !parser_is(parser, '{') && !parser_is(parser, '@') &&
                 !parser_is(parser, ';'))
            parser_fail(parser, "expected an instruction", NULL, 0);
    }
}

/* bra has the name of its label in @name until here. */
static void join_labels(struct body *body)
{
    struct parser *parser = body->parser;

    for (uint32_t i = 0; i < parser->length && !parser->has_failed; i++) {
        struct instruction *at = &parser->code[i];

        if (at->run == run_bra && !find_label(body, at->name, at->target, &at->target))
            parser_fail(parser, "there is no label", at->name, at->target);
    }
}

static void join_targets(struct body *body)
{
    struct parser *parser = body->parser;
    struct ptx_function *function = parser->function;

    function->targets =
        module_get(parser->module, (function->target_lists + 1) * sizeof(*function->targets));
    for (uint32_t i = parser->own_symbols; function->targets && i < parser->symbol_count; i++) {
        const struct symbol *symbol = &parser->symbols[i];
        uint32_t *list;

        if (symbol->kind != SYMBOL_TARGETS || symbol->count >= parser->symbol_count - i)
            continue;
        list = module_get(parser->module, (symbol->count + 1) * sizeof(*list));
        for (uint32_t k = 0; list && k < symbol->count; k++)
            if (!find_label(body, symbol[k + 1].name, symbol[k + 1].length, &list[k]))
                parser_fail(parser, "there is no label", symbol[k + 1].name, symbol[k + 1].length);
        function->targets[symbol->at] = (struct targets){list, list ? symbol->count : 0};
    }
}

/* It ends with a return, whatever it says. */
static void end_body(struct parser *parser)
{
    struct ptx_function *function = parser->function;
    struct instruction *end = add_instruction(parser);

    if (!end)
        return;
    end->run = run_ret;
    function->code = module_get(parser->module, parser->length * sizeof(*function->code));
    if (!function->code) {
        parser_fail(parser, "no memory", NULL, 0);
        return;
    }
    memcpy(function->code, parser->code, parser->length * sizeof(*function->code));
    function->length = parser->length;
    function->is_defined = true;
}

void body_read(struct parser *parser)
{
    struct body body = {.parser = parser};

    parser->length = 0;
    parser_expect(parser, '{');
    read_statements(&body);
    parser_expect(parser, '}');
    if (body.count)
        qsort(body.labels, body.count, sizeof(*body.labels), compare_labels);
    join_labels(&body);
    if (!parser->has_failed)
        join_targets(&body);
    if (!parser->has_failed)
        end_body(parser);
    free(body.labels);
}
