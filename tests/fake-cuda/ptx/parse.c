// SPDX-License-Identifier: MIT
/* A module: its directives, functions and variables. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>

const struct type_of types[T_COUNT] = {
    [T_NONE] = {"", 8, false, false},        [T_PRED] = {"pred", 1, false, false},
    [T_B8] = {"b8", 1, false, false},        [T_B16] = {"b16", 2, false, false},
    [T_B32] = {"b32", 4, false, false},      [T_B64] = {"b64", 8, false, false},
    [T_B128] = {"b128", 16, false, false},   [T_U8] = {"u8", 1, false, false},
    [T_U16] = {"u16", 2, false, false},      [T_U32] = {"u32", 4, false, false},
    [T_U64] = {"u64", 8, false, false},      [T_S8] = {"s8", 1, true, false},
    [T_S16] = {"s16", 2, true, false},       [T_S32] = {"s32", 4, true, false},
    [T_S64] = {"s64", 8, true, false},       [T_F16] = {"f16", 2, false, true},
    [T_BF16] = {"bf16", 2, false, true},     [T_F16X2] = {"f16x2", 4, false, true},
    [T_BF16X2] = {"bf16x2", 4, false, true}, [T_F32] = {"f32", 4, false, true},
    [T_F64] = {"f64", 8, false, true},       [T_F32X2] = {"f32x2", 8, false, true},
};

enum type type_by_name(const char *word, size_t length)
{
    for (int i = T_NONE + 1; i < T_COUNT; i++)
        if (strlen(types[i].name) == length && !memcmp(types[i].name, word, length))
            return (enum type)i;
    return T_NONE;
}

uint64_t round_up(uint64_t value, uint64_t align)
{
    return align > 1 ? (value + align - 1) / align * align : value;
}

void parser_fail(struct parser *parser, const char *reason, const char *text, size_t length)
{
    if (!parser->has_failed) {
        parser->error->line = parser->token.line ? parser->token.line : parser->lexer.line;
        snprintf(parser->error->reason, sizeof(parser->error->reason), "%s%s%.*s", reason,
                 length ? ": " : "", length < 60 ? (int)length : 60, length ? text : "");
    }
    parser->has_failed = true;
    parser->token = (struct token){.kind = TOKEN_END};
}

void parser_next(struct parser *parser)
{
    if (!parser->has_failed && !lexer_next(&parser->lexer, &parser->token))
        parser_fail(parser, "no token of PTX", parser->lexer.at, 0);
}

bool parser_is(const struct parser *parser, char sign)
{
    return parser->token.kind == TOKEN_SIGN && parser->token.sign == sign;
}

bool parser_accept(struct parser *parser, char sign)
{
    bool is = parser_is(parser, sign);

    if (is)
        parser_next(parser);
    return is;
}

void parser_expect(struct parser *parser, char sign)
{
    if (!parser_accept(parser, sign))
        parser_fail(parser, "expected", &sign, 1);
}

bool token_is(const struct token *token, const char *text)
{
    return token->length == strlen(text) && !memcmp(token->text, text, token->length);
}

bool parser_is_dot(const struct parser *parser, const char *word)
{
    return parser->token.kind == TOKEN_DOT && token_is(&parser->token, word);
}

bool parser_accept_dot(struct parser *parser, const char *word)
{
    bool is = parser_is_dot(parser, word);

    if (is)
        parser_next(parser);
    return is;
}

bool parser_is_word(const struct parser *parser, const char *word)
{
    return parser->token.kind == TOKEN_WORD && token_is(&parser->token, word);
}

enum type parser_type(const struct parser *parser)
{
    return parser->token.kind == TOKEN_DOT ? type_by_name(parser->token.text, parser->token.length)
                                           : T_NONE;
}

int64_t parser_integer(struct parser *parser)
{
    bool is_negative = parser_accept(parser, '-');
    uint64_t value = parser->token.integer;

    if (parser->token.kind != TOKEN_INTEGER) {
        parser_fail(parser, "expected an integer", NULL, 0);
        return 0;
    }
    parser_next(parser);
    return (int64_t)(is_negative ? 0 - value : value);
}

struct symbol *parser_add(struct parser *parser, const struct symbol *symbol)
{
    if (parser->symbol_count == parser->symbol_room) {
        uint32_t room = parser->symbol_room ? 2 * parser->symbol_room : 64;
        struct symbol *more = realloc(parser->symbols, room * sizeof(*more));

        if (!more) {
            parser_fail(parser, "no memory", NULL, 0);
            return parser->symbols;
        }
        parser->symbols = more;
        parser->symbol_room = room;
    }
    parser->symbols[parser->symbol_count] = *symbol;
    return &parser->symbols[parser->symbol_count++];
}

/* %r12 of .reg .b32 %r<20>: @number is 12. */
static bool is_numbered(const struct symbol *symbol, const char *name, size_t length,
                        uint32_t *number)
{
    uint64_t value = 0;

    if (length <= symbol->length || length > symbol->length + 9 ||
        memcmp(symbol->name, name, symbol->length) != 0)
        return false;
    for (size_t i = symbol->length; i < length; i++) {
        if (name[i] < '0' || name[i] > '9')
            return false;
        value = 10 * value + (uint64_t)(name[i] - '0');
    }
    *number = (uint32_t)value;
    return value < symbol->count;
}

/* The innermost of that name. A numbered register is found as the first of them, with its number.
 */
const struct symbol *parser_find(const struct parser *parser, const char *name, size_t length)
{
    static _Thread_local struct symbol one;
    uint32_t number;

    for (uint32_t i = parser->symbol_count; i-- > 0;) {
        const struct symbol *symbol = &parser->symbols[i];

        if (symbol->kind == SYMBOL_REGISTERS) {
            if (!is_numbered(symbol, name, length, &number))
                continue;
            one = *symbol;
            one.kind = SYMBOL_REGISTER;
            one.at += number;
            return &one;
        }
        if (symbol->length == length && !memcmp(symbol->name, name, length))
            return symbol;
    }
    return NULL;
}

/* .file, .loc: to the end of the line. */
static void skip_line(struct parser *parser)
{
    unsigned int line = parser->token.line;

    while (parser->token.kind != TOKEN_END && parser->token.line == line)
        parser_next(parser);
}

static void skip_braces(struct parser *parser)
{
    unsigned int depth = 0;

    do {
        depth += parser_is(parser, '{');
        depth -= parser_is(parser, '}');
        parser_next(parser);
    } while (depth && parser->token.kind != TOKEN_END);
}

static void skip_section(struct parser *parser)
{
    while (!parser_is(parser, '{') && parser->token.kind != TOKEN_END)
        parser_next(parser);
    skip_braces(parser);
}

static void skip_statement(struct parser *parser)
{
    while (!parser_is(parser, ';') && parser->token.kind != TOKEN_END)
        parser_next(parser);
    parser_accept(parser, ';');
}

/* Where one is given, a kernel's parameters have their place in what a launch is given. */
static void place_parameter(struct parser *parser, const struct declaration *is,
                            struct formal *formal)
{
    struct ptx_function *function = parser->function;
    uint64_t at = round_up(function->parameter_bytes, is->align);

    if (at + is->bytes > MOST_PARAMETERS) {
        parser_fail(parser, "too many bytes of parameters", NULL, 0);
        return;
    }
    *formal = (struct formal){.at = (uint32_t)at, .bytes = (uint32_t)is->bytes};
    function->parameter_bytes = (uint32_t)(at + is->bytes);
    parser_add(parser, &(struct symbol){.kind = SYMBOL_PARAM,
                                        .name = is->name,
                                        .length = is->length,
                                        .at = formal->at,
                                        .bytes = formal->bytes,
                                        .type = is->type});
}

static void place_formal(struct parser *parser, const struct declaration *is, struct formal *formal)
{
    struct symbol symbol = {.name = is->name, .length = is->length, .type = is->type};

    formal->is_register = is->is_register;
    formal->bytes = (uint32_t)is->bytes;
    if (is->is_register) {
        symbol.kind = SYMBOL_REGISTER;
        symbol.at = formal->at = register_take(parser, 1);
    } else {
        symbol.kind = SYMBOL_FRAME;
        symbol.at = formal->at = frame_take(parser, is->bytes, is->align);
    }
    symbol.bytes = formal->bytes;
    parser_add(parser, &symbol);
}

static void read_formals(struct parser *parser, struct formals *formals, bool is_kernel)
{
    struct formal list[MOST_OPERANDS * 8] = {0};
    uint32_t count = 0;

    while (!parser_is(parser, ')') && parser->token.kind != TOKEN_END) {
        struct declaration declaration;

        declare_read(parser, &declaration);
        if (parser->has_failed || declaration.bytes > MOST_PARAMETERS ||
            count == sizeof(list) / sizeof(list[0])) {
            parser_fail(parser, "a parameter is too large, or there are too many", NULL, 0);
            return;
        }
        if (is_kernel)
            place_parameter(parser, &declaration, &list[count]);
        else
            place_formal(parser, &declaration, &list[count]);
        count++;
        if (!parser_accept(parser, ','))
            break;
    }
    parser_expect(parser, ')');
    formals->list = module_get(parser->module, (count + 1) * sizeof(list[0]));
    formals->count = count;
    if (formals->list)
        memcpy(formals->list, list, count * sizeof(list[0]));
}

static void list_parameters(struct parser *parser, struct ptx_function *function)
{
    uint32_t count = function->arguments.count;

    function->parameters = module_get(parser->module, (count + 1) * sizeof(*function->parameters));
    for (uint32_t i = 0; function->parameters && i < count; i++)
        function->parameters[i] = (struct ptx_parameter){function->arguments.list[i].at,
                                                         function->arguments.list[i].bytes};
    function->parameter_count = count;
}

static struct ptx_function *declare_function(struct parser *parser, const struct token *name)
{
    struct ptx_module *module = parser->module;
    char *copy = module_copy(module, name->text, name->length);
    struct ptx_function *function = copy ? module_function(module, copy) : NULL;

    if (function || !copy)
        return function;
    function = module_get(module, sizeof(*function));
    if (!function)
        return NULL;
    function->name = copy;
    function->number = module->function_count++;
    if (module->last_function)
        module->last_function->next = function;
    else
        module->functions = function;
    module->last_function = function;
    return function;
}

/* .maxntid and what else may follow the parameters. */
static void skip_hints(struct parser *parser)
{
    while (!parser_is(parser, '{') && !parser_is(parser, ';') && parser->token.kind != TOKEN_END)
        parser_next(parser);
}

/* What it declares is forgotten after it, but what is the module's. */
static void end_function(struct parser *parser)
{
    parser->symbol_count = parser->own_symbols;
    parser->function = NULL;
}

/* The name is known after the results. A second definition, as of weak functions, is skipped. */
static void read_function(struct parser *parser, bool is_kernel)
{
    struct ptx_function read = {.is_kernel = is_kernel,
                                .shared_bytes = parser->module->shared_bytes};
    struct ptx_function *function;
    struct token name;

    parser->function = &read;
    parser->own_symbols = parser->symbol_count;
    if (!is_kernel && parser_accept(parser, '('))
        read_formals(parser, &read.results, false);
    name = parser->token;
    if (name.kind != TOKEN_WORD) {
        parser_fail(parser, "expected the name of a function", NULL, 0);
        return;
    }
    parser_next(parser);
    if (parser_accept(parser, '('))
        read_formals(parser, &read.arguments, is_kernel);
    skip_hints(parser);
    function = parser->has_failed ? NULL : declare_function(parser, &name);
    if (!function) {
        parser_fail(parser, "no memory", NULL, 0);
    } else if (function->is_defined) {
        if (parser_is(parser, '{'))
            skip_braces(parser);
    } else {
        read.name = function->name;
        read.number = function->number;
        read.next = function->next;
        *function = read;
        parser->function = function;
        if (is_kernel)
            list_parameters(parser, function);
        if (parser_is(parser, '{'))
            body_read(parser);
    }
    parser_accept(parser, ';');
    end_function(parser);
}

static bool is_linking(const struct parser *parser)
{
    static const char *const words[] = {"visible", "weak", "common", "extern"};

    for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (parser_is_dot(parser, words[i]))
            return true;
    return false;
}

static void read_directive(struct parser *parser)
{
    bool is_extern = false;

    while (is_linking(parser)) {
        is_extern |= parser_is_dot(parser, "extern");
        parser_next(parser);
    }
    if (parser_accept_dot(parser, "entry"))
        read_function(parser, true);
    else if (parser_accept_dot(parser, "func"))
        read_function(parser, false);
    else if (parser_is_dot(parser, "version") || parser_is_dot(parser, "target") ||
             parser_is_dot(parser, "address_size") || parser_is_dot(parser, "file") ||
             parser_is_dot(parser, "loc"))
        skip_line(parser);
    else if (parser_is_dot(parser, "section"))
        skip_section(parser);
    else if (parser_is_dot(parser, "pragma") || parser_is_dot(parser, "alias"))
        skip_statement(parser);
    else if (parser->token.kind == TOKEN_DOT)
        declare_variable(parser, is_extern);
    else
        parser_fail(parser, "expected a directive", parser->token.text, parser->token.length);
}

/* NVIDIA's refuses text without a version, too. */
static void read_module(struct parser *parser)
{
    parser_next(parser);
    if (!parser_is_dot(parser, "version"))
        parser_fail(parser, "it does not begin with .version", NULL, 0);
    while (parser->token.kind != TOKEN_END)
        read_directive(parser);
}

struct ptx_module *ptx_parse(const char *text, size_t bytes, struct ptx_error *error)
{
    struct parser parser = {.lexer = {text, text + bytes, 1},
                            .module = calloc(1, sizeof(struct ptx_module))};

    *error = (struct ptx_error){0};
    parser.error = error;
    if (!parser.module)
        return NULL;
    read_module(&parser);
    free(parser.symbols);
    free(parser.code);
    if (!parser.has_failed)
        return parser.module;
    ptx_free(parser.module);
    return NULL;
}
