// SPDX-License-Identifier: MIT
/* Declarations: of variables with their values, of registers, of parameters. */
#include "inside.h"

#include <stdlib.h>

static const struct {
    const char *word;
    enum ptx_space space;
} spaces[] = {
    {"param", SPACE_PARAM}, {"global", SPACE_GLOBAL}, {"shared", SPACE_SHARED},
    {"local", SPACE_LOCAL}, {"const", SPACE_CONST},   {"tex", SPACE_GLOBAL},
    {"reg", SPACE_GENERIC},
};

static void read_space(struct parser *parser, struct declaration *declaration)
{
    for (unsigned int i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (parser_accept_dot(parser, spaces[i].word)) {
            declaration->space = spaces[i].space;
            declaration->is_register = declaration->space == SPACE_GENERIC;
            return;
        }
    parser_fail(parser, "expected a state space", parser->token.text, parser->token.length);
}

/* Textures, samplers and surfaces are handles. */
static bool accept_handle(struct parser *parser)
{
    return parser_accept_dot(parser, "texref") || parser_accept_dot(parser, "samplerref") ||
           parser_accept_dot(parser, "surfref");
}

static uint32_t read_align(struct parser *parser)
{
    int64_t align = parser_integer(parser);

    if (align < 1 || align > 4096 || (align & (align - 1)))
        parser_fail(parser, "no alignment", NULL, 0);
    return (uint32_t)align;
}

/* What is said of it between its space and its name. */
static void read_words(struct parser *parser, struct declaration *declaration)
{
    bool is_pointer = false;

    while (parser->token.kind == TOKEN_DOT) {
        enum type type = parser_type(parser);

        if (type != T_NONE) {
            declaration->type = type;
            parser_next(parser);
        } else if (parser_accept_dot(parser, "align")) {
            uint32_t align = read_align(parser);

            /* What a pointer points to has that one. */
            declaration->align = is_pointer ? declaration->align : align;
        } else if (parser_is_dot(parser, "v2") || parser_is_dot(parser, "v4")) {
            declaration->width = parser_is_dot(parser, "v2") ? 2 : 4;
            parser_next(parser);
        } else if (parser_accept_dot(parser, "ptr")) {
            is_pointer = true;
        } else if (accept_handle(parser)) {
            declaration->type = T_U64;
        } else if (parser_accept_dot(parser, "attribute")) {
            while (!parser_accept(parser, ')') && parser->token.kind != TOKEN_END)
                parser_next(parser);
        } else {
            parser_next(parser);
        }
    }
}

static void read_dimensions(struct parser *parser, struct declaration *declaration)
{
    while (parser_accept(parser, '[')) {
        int64_t count = 0;

        if (parser_is(parser, ']'))
            declaration->is_unsized = true;
        else
            count = parser_integer(parser);
        parser_expect(parser, ']');
        if (count < 0 || (uint64_t)count > MOST_VARIABLE ||
            declaration->bytes * (uint64_t)count > MOST_VARIABLE) {
            parser_fail(parser, "an array is too large", NULL, 0);
            return;
        }
        declaration->bytes *= (uint64_t)count;
    }
}

struct values {
    struct parser *parser;
    struct declaration *of;
    struct ptx_value *last;
    uint64_t at;
    unsigned int depth;
};

static struct ptx_value *add_value(struct values *values)
{
    struct ptx_value *value = module_get(values->parser->module, sizeof(*value));
    uint8_t bytes = types[values->of->type].bytes;

    if (!value || bytes > 8 ||
        (!values->of->is_unsized && values->at + bytes > values->of->bytes)) {
        parser_fail(values->parser, "there are more values than the variable has room for", NULL,
                    0);
        return NULL;
    }
    value->at = values->at;
    value->bytes = bytes;
    values->at += bytes;
    if (values->last)
        values->last->next = value;
    else
        values->of->values = value;
    values->last = value;
    return value;
}

/* generic(name)+8, mask(…) of a name, or a name. */
static void read_symbol_value(struct values *values, struct ptx_value *value)
{
    struct parser *parser = values->parser;
    bool is_generic = parser_is_word(parser, "generic");

    if (is_generic) {
        parser_next(parser);
        parser_expect(parser, '(');
    }
    if (parser->token.kind != TOKEN_WORD) {
        parser_fail(parser, "expected a value", NULL, 0);
        return;
    }
    value->symbol = module_copy(parser->module, parser->token.text, parser->token.length);
    parser_next(parser);
    if (is_generic)
        parser_expect(parser, ')');
    if (parser_accept(parser, '+'))
        value->value = (uint64_t)parser_integer(parser);
}

/* As the variable's type has it. */
static uint64_t float_value(const struct token *token, enum type type, bool is_negative)
{
    double value =
        token->kind == TOKEN_SINGLE ? (double)float_of(token->integer) : double_of(token->integer);

    value = is_negative ? -value : value;
    return type == T_F32 ? bits_of_float((float)value) : bits_of_double(value);
}

static void read_value(struct values *values)
{
    struct parser *parser = values->parser;
    struct ptx_value *value = add_value(values);
    bool is_negative;

    if (!value)
        return;
    if (parser->token.kind == TOKEN_WORD) {
        read_symbol_value(values, value);
        return;
    }
    is_negative = parser_accept(parser, '-');
    if (parser->token.kind == TOKEN_INTEGER) {
        value->value = (uint64_t)parser_integer(parser);
        if (is_negative)
            value->value = 0 - value->value;
    } else if (parser->token.kind == TOKEN_FLOAT || parser->token.kind == TOKEN_SINGLE) {
        value->value = float_value(&parser->token, values->of->type, is_negative);
        parser_next(parser);
    } else {
        parser_fail(parser, "expected a value", NULL, 0);
    }
}

static void read_values(struct values *values)
{
    struct parser *parser = values->parser;

    if (!parser_accept(parser, '{')) {
        read_value(values);
        return;
    }
    if (++values->depth > 8)
        parser_fail(parser, "too many dimensions", NULL, 0);
    while (!parser_is(parser, '}') && parser->token.kind != TOKEN_END) {
        read_values(values);
        if (!parser_accept(parser, ','))
            break;
    }
    parser_expect(parser, '}');
    values->depth--;
}

void declare_read(struct parser *parser, struct declaration *declaration)
{
    *declaration = (struct declaration){.width = 1};
    read_space(parser, declaration);
    read_words(parser, declaration);
    if (declaration->type == T_NONE || parser->token.kind != TOKEN_WORD) {
        parser_fail(parser, "expected a type and a name", parser->token.text, parser->token.length);
        return;
    }
    declaration->bytes = (uint64_t)types[declaration->type].bytes * declaration->width;
    if (declaration->align < declaration->bytes && declaration->bytes <= 16)
        declaration->align = (uint32_t)declaration->bytes;
    declaration->name = parser->token.text;
    declaration->length = parser->token.length;
    parser_next(parser);
    read_dimensions(parser, declaration);
    if (parser_accept(parser, '=')) {
        struct values values = {.parser = parser, .of = declaration};

        read_values(&values);
        if (declaration->is_unsized)
            declaration->bytes = values.at;
    }
}

uint32_t frame_take(struct parser *parser, uint64_t bytes, uint32_t align)
{
    uint64_t at = round_up(parser->function->frame_bytes, align > 8 ? align : 8);

    if (at + bytes > MOST_LOCAL) {
        parser_fail(parser, "too much local memory", NULL, 0);
        return 0;
    }
    parser->function->frame_bytes = (uint32_t)(at + bytes);
    return (uint32_t)at;
}

uint32_t register_take(struct parser *parser, uint64_t count)
{
    uint32_t at = parser->function->registers;

    if (count > MOST_REGISTERS || at + count > MOST_REGISTERS) {
        parser_fail(parser, "too many registers", NULL, 0);
        return 0;
    }
    parser->function->registers += (uint32_t)count;
    return at;
}

/* Those outside of kernels have their place in each; a kernel's own follow them. */
static uint32_t take_shared(struct parser *parser, uint64_t bytes, uint32_t align)
{
    struct ptx_function *function = parser->function;
    uint32_t *used =
        function && function->is_kernel ? &function->shared_bytes : &parser->module->shared_bytes;
    uint64_t at = round_up(*used, align);

    if (at + bytes > MOST_SHARED) {
        parser_fail(parser, "too much shared memory", NULL, 0);
        return 0;
    }
    *used = (uint32_t)(at + bytes);
    return (uint32_t)at;
}

static void add_shared(struct parser *parser, const struct declaration *is, bool is_extern)
{
    bool is_dynamic = is_extern && (is->is_unsized || !is->bytes);
    struct symbol symbol = {.kind = is_dynamic ? SYMBOL_DYNAMIC : SYMBOL_SHARED,
                            .name = is->name,
                            .length = is->length};

    if (!is_dynamic)
        symbol.at = take_shared(parser, is->bytes, is->align);
    parser_add(parser, &symbol);
}

static struct ptx_variable *find_variable(struct parser *parser, const char *name)
{
    struct ptx_variable *variable = parser->module->variables;

    /* A function's own may have a name again. */
    while (variable && (parser->function || strcmp(variable->name, name) != 0))
        variable = variable->next;
    return variable;
}

static struct ptx_variable *make_variable(struct parser *parser, const char *name)
{
    struct ptx_module *module = parser->module;
    struct ptx_variable *variable = find_variable(parser, name);

    if (variable)
        return variable;
    variable = module_get(module, sizeof(*variable));
    if (!variable)
        return NULL;
    variable->name = name;
    variable->is_extern = true;
    if (module->last_variable)
        module->last_variable->next = variable;
    else
        module->variables = variable;
    module->last_variable = variable;
    return variable;
}

/* In the card's memory. What is declared may be defined later. */
static void add_variable(struct parser *parser, const struct declaration *is, bool is_extern)
{
    char *name = module_copy(parser->module, is->name, is->length);
    struct ptx_variable *variable = name ? make_variable(parser, name) : NULL;

    if (!variable) {
        parser_fail(parser, "no memory", NULL, 0);
        return;
    }
    if (variable->is_extern) {
        variable->space = is->space;
        variable->bytes = is->bytes;
        variable->align = is->align;
        variable->values = is->values;
        variable->is_extern = is_extern;
    }
    parser_add(parser, &(struct symbol){.kind = SYMBOL_VARIABLE,
                                        .name = name,
                                        .length = is->length,
                                        .variable = variable});
}

void declare_variable(struct parser *parser, bool is_extern)
{
    struct declaration declaration;

    declare_read(parser, &declaration);
    if (!parser->has_failed && declaration.space == SPACE_SHARED)
        add_shared(parser, &declaration, is_extern);
    else if (!parser->has_failed &&
             (declaration.space == SPACE_GLOBAL || declaration.space == SPACE_CONST))
        add_variable(parser, &declaration, is_extern);
    else
        parser_fail(parser, "no variable of a module", declaration.name, declaration.length);
    parser_expect(parser, ';');
}

static void add_registers(struct parser *parser, enum type type, uint32_t width)
{
    struct token name = parser->token;
    struct symbol symbol = {.name = name.text, .length = name.length, .type = type};
    int64_t count = 1;

    if (name.kind != TOKEN_WORD || width != 1) {
        parser_fail(parser, "expected the name of a register", NULL, 0);
        return;
    }
    parser_next(parser);
    symbol.kind = SYMBOL_REGISTER;
    if (parser_accept(parser, '<')) {
        count = parser_integer(parser);
        symbol.kind = SYMBOL_REGISTERS;
        parser_expect(parser, '>');
    }
    if (count < 0 || count > MOST_REGISTERS)
        parser_fail(parser, "too many registers", NULL, 0);
    else
        symbol.at = register_take(parser, (uint64_t)count);
    symbol.count = (uint32_t)count;
    parser_add(parser, &symbol);
}

void declare_registers(struct parser *parser)
{
    struct declaration words = {.width = 1};

    read_space(parser, &words);
    read_words(parser, &words);
    do
        add_registers(parser, words.type, words.width);
    while (!parser->has_failed && parser_accept(parser, ','));
    parser_expect(parser, ';');
}

/* .local and .param variables of a function. */
void declare_in_frame(struct parser *parser)
{
    struct declaration declaration;
    struct symbol symbol = {.kind = SYMBOL_FRAME};

    declare_read(parser, &declaration);
    if (declaration.bytes > MOST_LOCAL)
        parser_fail(parser, "too much local memory", NULL, 0);
    if (parser->has_failed)
        return;
    symbol.name = declaration.name;
    symbol.length = declaration.length;
    symbol.bytes = (uint32_t)declaration.bytes;
    symbol.at = frame_take(parser, declaration.bytes, declaration.align);
    parser_add(parser, &symbol);
    parser_expect(parser, ';');
}
