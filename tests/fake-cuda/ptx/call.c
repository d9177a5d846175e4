// SPDX-License-Identifier: MIT
/* Calls: how they are written, and how a function is entered and left. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>

static void read_formal(struct parser *parser, struct formal *formal, struct operand *value)
{
    const struct symbol *symbol =
        parser->token.kind == TOKEN_WORD
            ? parser_find(parser, parser->token.text, parser->token.length)
            : NULL;

    if (symbol && symbol->kind == SYMBOL_FRAME) {
        *formal = (struct formal){.at = symbol->at, .bytes = symbol->bytes};
        parser_next(parser);
        return;
    }
    operand_read(parser, value, symbol ? symbol->type : T_B64);
    *formal = (struct formal){.is_register = true, .at = (uint32_t)value->value};
    if (value->kind == OPERAND_SINK)
        formal->at = register_take(parser, 1);
}

/* (a, b): of @values what is no variable of the frame. */
static void read_list(struct parser *parser, struct formals *formals, struct operand **values)
{
    struct formal list[MOST_OPERANDS] = {0};
    struct operand operands[MOST_OPERANDS] = {0};
    uint32_t count = 0;

    while (!parser_is(parser, ')') && parser->token.kind != TOKEN_END) {
        if (count == MOST_OPERANDS) {
            parser_fail(parser, "too many arguments", NULL, 0);
            return;
        }
        read_formal(parser, &list[count], &operands[count]);
        count++;
        if (!parser_accept(parser, ','))
            break;
    }
    parser_expect(parser, ')');
    formals->list = module_get(parser->module, (count + 1) * sizeof(list[0]));
    *values = module_get(parser->module, (count + 1) * sizeof(operands[0]));
    if (!formals->list || !*values) {
        parser_fail(parser, "no memory", NULL, 0);
        return;
    }
    formals->count = count;
    memcpy(formals->list, list, count * sizeof(list[0]));
    memcpy(*values, operands, count * sizeof(operands[0]));
}

static void read_callee(struct parser *parser, struct call *call)
{
    char name[256] = "";

    if (parser->token.kind == TOKEN_WORD && parser->token.length < sizeof(name))
        memcpy(name, parser->token.text, parser->token.length);
    call->function = module_function(parser->module, name);
    if (call->function)
        parser_next(parser);
    else
        operand_read(parser, &call->address, T_U64);
}

static bool are_registers(const struct formals *formals, const struct operand *values)
{
    for (uint32_t i = 0; i < formals->count; i++)
        if (formals->list[i].is_register && values[i].kind != OPERAND_REGISTER &&
            values[i].kind != OPERAND_SINK)
            return false;
    return true;
}

void call_read(struct parser *parser, struct instruction *made)
{
    struct call *call = module_get(parser->module, sizeof(*call));
    struct operand *results = NULL;

    if (!call) {
        parser_fail(parser, "no memory", NULL, 0);
        return;
    }
    if (parser_accept(parser, '(')) {
        read_list(parser, &call->results, &results);
        parser_expect(parser, ',');
        if (results && !are_registers(&call->results, results))
            parser_fail(parser, "a result is no register", NULL, 0);
    }
    read_callee(parser, call);
    if (parser_accept(parser, ',') && parser_accept(parser, '('))
        read_list(parser, &call->arguments, &call->argument_values);
    /* A prototype, or targets, may follow. */
    while (!parser_is(parser, ';') && parser->token.kind != TOKEN_END)
        parser_next(parser);
    made->call = call;
}

/* What is copied between a caller and a function: as much as both have. */
static uint32_t shared_bytes(const struct formal *a, const struct formal *b)
{
    return a->bytes < b->bytes ? a->bytes : b->bytes;
}

struct values {
    uint64_t words[MOST_OPERANDS];
    uint32_t from[MOST_OPERANDS];
};

/* In the caller: values of registers, and where the others are. */
static void take_arguments(const struct thread *thread, const struct call *call,
                           struct values *values)
{
    for (uint32_t i = 0; i < call->arguments.count; i++) {
        const struct formal *formal = &call->arguments.list[i];

        if (formal->is_register)
            values->words[i] = get(thread, &call->argument_values[i]);
        else
            values->from[i] = thread->memory_at + formal->at;
    }
}

static void give_arguments(struct thread *thread, const struct call *call,
                           const struct ptx_function *function, const struct values *values)
{
    for (uint32_t i = 0; i < call->arguments.count && i < function->arguments.count; i++) {
        const struct formal *given = &call->arguments.list[i];
        const struct formal *wanted = &function->arguments.list[i];

        if (given->is_register && wanted->is_register)
            thread->registers[wanted->at] = values->words[i];
        else if (!given->is_register && !wanted->is_register)
            memcpy(thread->memory + thread->memory_at + wanted->at,
                   thread->memory + values->from[i], shared_bytes(given, wanted));
        else if (given->is_register)
            memcpy(thread->memory + thread->memory_at + wanted->at, &values->words[i],
                   wanted->bytes < 8 ? wanted->bytes : 8);
        else
            memcpy(&thread->registers[wanted->at], thread->memory + values->from[i],
                   given->bytes < 8 ? given->bytes : 8);
    }
}

/* Its text as it is; numbers are not put into it. */
static void print_text(struct thread *thread, const struct call *call)
{
    struct values values = {0};
    uint64_t at = 0;
    int result = 0;

    take_arguments(thread, call, &values);
    if (!call->arguments.count)
        return;
    if (call->arguments.list[0].is_register)
        at = values.words[0];
    else
        memcpy(&at, thread->memory + values.from[0], sizeof(at));
    for (const char *next; (next = memory_at(thread, SPACE_GENERIC, at, 1, &result)) && *next; at++)
        putchar(*next);
}

static int call_missing(struct thread *thread, const struct call *call,
                        const struct ptx_function *function)
{
    int32_t none = 0;

    if (function && !strcmp(function->name, "__assertfail"))
        return PTX_ASSERTED;
    if (!function || strcmp(function->name, "vprintf") != 0) {
        thread->block->launch->error = (struct ptx_error){.line = 0};
        strncpy(thread->block->launch->error.reason,
                function ? function->name : "a call of no function", PTX_REASON - 1);
        return function ? PTX_UNSUPPORTED : PTX_BAD_CODE_ADDRESS;
    }
    print_text(thread, call);
    if (call->results.count == 1 && !call->results.list[0].is_register &&
        call->results.list[0].bytes >= sizeof(none))
        memcpy(thread->memory + thread->memory_at + call->results.list[0].at, &none, sizeof(none));
    return STEP_ON;
}

int run_call(struct thread *thread, const struct instruction *at)
{
    const struct call *call = at->call;
    const struct ptx_function *function = call->function;
    struct values values = {0};

    if (!function)
        function = module_function_at(thread->block->launch->module, get(thread, &call->address));
    if (!function || !function->is_defined || function->is_kernel)
        return call_missing(thread, call, function);
    take_arguments(thread, call, &values);
    if (!thread_enter(thread, function, call))
        return PTX_FAILED;
    give_arguments(thread, call, function, &values);
    return STEP_ON;
}

static void give_results(struct thread *thread, const struct call *call,
                         const struct ptx_function *function, const uint64_t *registers,
                         const uint8_t *memory)
{
    for (uint32_t i = 0; i < call->results.count && i < function->results.count; i++) {
        const struct formal *given = &function->results.list[i];
        const struct formal *wanted = &call->results.list[i];

        if (wanted->is_register)
            thread->registers[wanted->at] = given->is_register ? registers[given->at] : 0;
        else if (given->is_register)
            memcpy(thread->memory + thread->memory_at + wanted->at, &registers[given->at],
                   wanted->bytes < 8 ? wanted->bytes : 8);
        else
            memcpy(thread->memory + thread->memory_at + wanted->at, memory + given->at,
                   shared_bytes(given, wanted));
        if (wanted->is_register && !given->is_register)
            memcpy(&thread->registers[wanted->at], memory + given->at,
                   given->bytes < 8 ? given->bytes : 8);
    }
}

/* The memory of what it leaves stays until something else is entered. */
int run_ret(struct thread *thread, const struct instruction *at)
{
    const struct frame *left = &thread->frames[thread->depth - 1];
    const uint64_t *registers = thread->registers;
    const uint8_t *memory = thread->memory + thread->memory_at;
    const struct frame *back;

    (void)at;
    if (thread->depth == 1)
        return STEP_EXIT;
    thread->depth--;
    back = &thread->frames[thread->depth - 1];
    thread->code = back->function->code;
    thread->pc = back->pc;
    thread->registers = thread->all_registers + back->registers_at;
    thread->memory_at = back->memory_at;
    if (left->call)
        give_results(thread, left->call, left->function, registers, memory);
    return STEP_ON;
}
