/* SPDX-License-Identifier: MIT */
/* What the interpreter's own files share. */
#ifndef FAKE_CUDA_PTX_INSIDE_H
#define FAKE_CUDA_PTX_INSIDE_H

#include "ptx.h"

#include <string.h>

/* Limits of what is believed. */
#define MOST_REGISTERS  (1u << 16)
#define MOST_VARIABLE   (1ull << 32)
#define MOST_SHARED     (256u << 10)
#define MOST_LOCAL      (512u << 10)
#define MOST_PARAMETERS 32764u
#define MOST_OPERANDS   64u
#define MOST_THREADS    1024u
#define MOST_DEPTH      2048u
/* An instruction has at least as many operands, of which some are none. */
#define LEAST_OPERANDS 8u
#define MOST_DEEP      (1u << 17) /* registers of all functions that a thread is in */
#define WARP           32u
#define BARRIERS       16u

/* Where generic addresses of a thread's own memory begin; the card's lie above, a host's, too. */
#define SHARED_WINDOW 0x010000000000ull
#define LOCAL_WINDOW  0x020000000000ull
#define PARAM_WINDOW  0x030000000000ull
#define WINDOW_BYTES  0x010000000000ull
#define CODE_WINDOW   0x040000000000ull
#define CODE_STEP     16u

enum type {
    T_NONE,
    T_PRED,
    T_B8,
    T_B16,
    T_B32,
    T_B64,
    T_B128,
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_S8,
    T_S16,
    T_S32,
    T_S64,
    T_F16,
    T_BF16,
    T_F16X2,
    T_BF16X2,
    T_F32,
    T_F64,
    T_F32X2,
    T_COUNT,
};

struct type_of {
    const char *name;
    uint8_t bytes;
    bool is_signed;
    bool is_float;
};
extern const struct type_of types[T_COUNT];

enum operand_kind {
    OPERAND_NONE,
    OPERAND_REGISTER, /* value: its number */
    OPERAND_VALUE,
    OPERAND_SPECIAL,  /* value: enum special */
    OPERAND_FRAME,    /* value: offset in the function's local memory */
    OPERAND_PARAM,    /* value: offset in the kernel's parameters */
    OPERAND_VARIABLE, /* variable */
    OPERAND_DYNAMIC,  /* the first byte of dynamic shared memory */
    OPERAND_SINK,
};

struct operand {
    uint8_t kind;
    bool is_negated;
    int64_t offset;
    union {
        uint64_t value;
        const struct ptx_variable *variable;
    };
};

enum special {
    S_TID,
    S_NTID = S_TID + 3,
    S_CTAID = S_NTID + 3,
    S_NCTAID = S_CTAID + 3,
    S_LANE = S_NCTAID + 3,
    S_WARP,
    S_WARPS,
    S_SM,
    S_SMS,
    S_GRID,
    S_EQ,
    S_LT,
    S_LE,
    S_GT,
    S_GE,
    S_CLOCK,
    S_CLOCK_HIGH,
    S_TIMER,
    S_DYNAMIC_BYTES,
    S_SHARED_BYTES,
    S_WARP_SIZE,
};

enum compare {
    C_NONE,
    C_EQ,
    C_NE,
    C_LT,
    C_LE,
    C_GT,
    C_GE,
    C_EQU,
    C_NEU,
    C_LTU,
    C_LEU,
    C_GTU,
    C_GEU,
    C_NUM,
    C_NAN,
};

/* What is done to memory, or between predicates, or by shfl, vote and others. */
enum how {
    HOW_NONE,
    HOW_ADD,
    HOW_MIN,
    HOW_MAX,
    HOW_AND,
    HOW_OR,
    HOW_XOR,
    HOW_POPC,
    HOW_EXCH,
    HOW_CAS,
    HOW_INC,
    HOW_DEC,
    HOW_UP,
    HOW_DOWN,
    HOW_BFLY,
    HOW_IDX,
    HOW_ALL,
    HOW_ANY,
    HOW_BALLOT,
};

enum rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP };

enum flag {
    FLAG_FTZ = 1 << 0,
    FLAG_SAT = 1 << 1,
    FLAG_LO = 1 << 2,
    FLAG_HI = 1 << 3,
    FLAG_WIDE = 1 << 4,
    FLAG_CARRY = 1 << 5,
    FLAG_UNI = 1 << 6,
    FLAG_NAN = 1 << 7,
    FLAG_TO = 1 << 8,
    FLAG_LEFT = 1 << 9,
    FLAG_RIGHT = 1 << 10,
    FLAG_WRAP = 1 << 11,
    FLAG_INTEGRAL = 1 << 12,
    FLAG_SHIFT = 1 << 13,
    FLAG_WARP = 1 << 14,
    FLAG_ARRIVE = 1 << 15,
    FLAG_RED = 1 << 16,
    FLAG_SYNC = 1 << 17,
    FLAG_PACKS = 1 << 18,
    FLAG_UNKNOWN = 1 << 19,
    FLAG_RELU = 1 << 20,
    FLAG_ROUNDED = 1 << 21,
    FLAG_APPROX = 1 << 22,
    FLAG_PAIR = 1 << 23, /* d|p: two results */
};

struct thread;
struct instruction;

/* How an instruction ends, besides an enum ptx_result. */
#define STEP_ON   0
#define STEP_WAIT (-1) /* for others */
#define STEP_EXIT (-2)

typedef int execute(struct thread *thread, const struct instruction *at);

/**
 * struct instruction
 * @type, @second: of the result, and of what it is made from, if it says both
 * @guard: register of the predicate without which it does nothing
 * @a: operands; a vector is as many as it has elements
 * @width: elements of a vector
 */
struct instruction {
    execute *run;
    const struct operand *a;
    uint32_t flags;
    uint32_t target;
    uint32_t guard;
    bool has_guard;
    bool guard_is_negated;
    uint8_t type;
    uint8_t second;
    uint8_t space;
    uint8_t compare;
    uint8_t how;
    uint8_t rounding;
    uint8_t count;
    uint8_t width;
    unsigned int line;
    const char *name;
    const struct call *call;
};

/* Registers, or variables in the frame: what a function is called with. */
struct formal {
    bool is_register;
    uint32_t at;
    uint32_t bytes;
};

struct formals {
    struct formal *list;
    uint32_t count;
};

/* @function: NULL: operand @address says which. */
struct call {
    const struct ptx_function *function;
    struct operand address;
    struct formals arguments, results;
    struct operand *argument_values;
};

struct targets {
    const uint32_t *list;
    uint32_t count;
};

struct ptx_function {
    const char *name;
    bool is_kernel;
    bool is_defined;
    uint32_t number;
    struct formals arguments, results;
    struct ptx_parameter *parameters;
    uint32_t parameter_count;
    uint32_t parameter_bytes;
    uint32_t registers;
    uint32_t frame_bytes;
    uint32_t shared_bytes;
    struct instruction *code;
    uint32_t length;
    struct targets *targets;
    uint32_t target_lists;
    struct ptx_function *next;
};

/* An initial value of a variable: bytes, or the address of a symbol plus them. */
struct ptx_value {
    uint64_t at;
    uint8_t bytes;
    uint64_t value;
    const char *symbol;
    struct ptx_value *next;
};

struct ptx_module {
    struct part *parts;
    struct ptx_function *functions, *last_function;
    uint32_t function_count;
    struct ptx_variable *variables, *last_variable;
    uint32_t shared_bytes;
};

/* Zeroed, and freed with the module. */
void *module_get(struct ptx_module *module, size_t bytes);
char *module_copy(struct ptx_module *module, const char *text, size_t bytes);
struct ptx_function *module_function(const struct ptx_module *module, const char *name);
struct ptx_function *module_function_at(const struct ptx_module *module, uint64_t address);

/* lexer.c */
enum token_kind {
    TOKEN_END,
    TOKEN_WORD,    /* also with % or $ */
    TOKEN_DOT,     /* .word; the text is without the dot */
    TOKEN_INTEGER, /* integer */
    TOKEN_FLOAT,   /* integer: bits of a double */
    TOKEN_SINGLE,  /* integer: bits of a float */
    TOKEN_STRING,
    TOKEN_SIGN, /* sign */
};

struct token {
    enum token_kind kind;
    const char *text;
    size_t length;
    unsigned int line;
    uint64_t integer;
    char sign;
};

struct parser;

struct lexer {
    const char *at, *end;
    unsigned int line;
};

/* False: there is a character that no token has. */
bool lexer_next(struct lexer *lexer, struct token *token);

/* parse.c: what is read, one token ahead. After a failure everything is at its end. */
enum symbol_kind {
    SYMBOL_REGISTERS, /* from @at, @count of them by number */
    SYMBOL_REGISTER,
    SYMBOL_FRAME,
    SYMBOL_PARAM,
    SYMBOL_SHARED,
    SYMBOL_DYNAMIC,
    SYMBOL_VARIABLE,
    SYMBOL_LABEL,
    SYMBOL_TARGETS,
    SYMBOL_PROTOTYPE,
};

struct symbol {
    enum symbol_kind kind;
    const char *name;
    size_t length;
    uint32_t at;
    uint32_t count;
    uint32_t bytes;
    enum type type;
    const struct ptx_variable *variable;
};

struct parser {
    struct lexer lexer;
    struct token token;
    struct ptx_module *module;
    struct ptx_error *error;
    bool has_failed;
    struct ptx_function *function;
    struct symbol *symbols;
    uint32_t symbol_count, symbol_room;
    /* Symbols of the module are before this one. */
    uint32_t own_symbols;
    struct instruction *code;
    uint32_t length, room;
    uint32_t dynamic_shared;
};

void parser_next(struct parser *parser);
void parser_fail(struct parser *parser, const char *reason, const char *text, size_t length);
bool parser_is(const struct parser *parser, char sign);
/* Takes it if it is there. */
bool parser_accept(struct parser *parser, char sign);
void parser_expect(struct parser *parser, char sign);
bool parser_is_dot(const struct parser *parser, const char *word);
bool parser_accept_dot(struct parser *parser, const char *word);
bool parser_is_word(const struct parser *parser, const char *word);
/* An integer, with a sign or without. */
int64_t parser_integer(struct parser *parser);
enum type parser_type(const struct parser *parser);
struct symbol *parser_add(struct parser *parser, const struct symbol *symbol);
const struct symbol *parser_find(const struct parser *parser, const char *name, size_t length);
bool token_is(const struct token *token, const char *text);
uint64_t round_up(uint64_t value, uint64_t align);
enum type type_by_name(const char *word, size_t length);

/* declare.c: variables, registers, formal parameters. */
struct declaration {
    enum ptx_space space;
    enum type type;
    uint32_t align;
    uint32_t width;
    const char *name;
    size_t length;
    uint64_t bytes;
    bool is_unsized;
    bool is_register;
    struct ptx_value *values;
};
/* From its space on to before the comma, semicolon or parenthesis. */
void declare_read(struct parser *parser, struct declaration *declaration);
void declare_variable(struct parser *parser, bool is_extern);
void declare_registers(struct parser *parser);
void declare_in_frame(struct parser *parser);
uint32_t frame_take(struct parser *parser, uint64_t bytes, uint32_t align);
uint32_t register_take(struct parser *parser, uint64_t count);

/* body.c: the code of a function. */
void body_read(struct parser *parser);

/* instruction.c: one instruction, from its name on. */
void instruction_read(struct parser *parser, struct instruction *made);
void operand_read(struct parser *parser, struct operand *operand, enum type type);
/* The function that does it; NULL: there is no such instruction. */
execute *instruction_find(const struct parser *parser, const char *name, size_t length);
bool modifier_read(const struct token *word, struct instruction *made);

/* call.c */
void call_read(struct parser *parser, struct instruction *made);

/* thread.c */
enum wait { WAIT_NOT, WAIT_BARRIER, WAIT_WARP, WAIT_ENDED };

struct frame {
    const struct ptx_function *function;
    const struct call *call;
    uint32_t pc;
    uint32_t registers_at;
    uint32_t memory_at;
};

/**
 * struct thread
 * @registers: of the function in which it is
 * @memory: local memory of all functions that it is in; @memory_at: of this one
 * @mask: with whom it meets in its warp; @given: what it brings
 */
struct thread {
    struct block *block;
    const struct instruction *code;
    uint64_t *registers;
    uint32_t pc;
    uint32_t number;
    uint32_t lane;
    uint32_t tid[3];
    bool carry;
    enum wait wait;
    uint32_t barrier;
    uint32_t expected;
    uint32_t mask;
    uint64_t given;
    const struct instruction *meeting;
    uint64_t *all_registers;
    uint32_t registers_room;
    uint8_t *memory;
    uint32_t memory_room;
    uint32_t memory_at;
    struct frame *frames;
    uint32_t depth, frames_room;
};

struct block {
    struct ptx_launch *launch;
    struct run *run;
    uint32_t ctaid[3];
    uint8_t *shared;
    uint32_t shared_bytes, dynamic_at;
    struct thread *threads;
    uint32_t count;
    uint32_t ended;
    /* Those that went on, by the barrier. */
    uint32_t arrivals[BARRIERS];
};

/* What all blocks share. */
struct run {
    struct ptx_launch *launch;
    uint64_t steps, most;
    struct ptx_range recent[4];
    unsigned int next_recent;
};

bool thread_enter(struct thread *thread, const struct ptx_function *function,
                  const struct call *call);
/* Nothing of a function that it was in is left. */
void thread_reset(struct thread *thread);
void thread_free(struct thread *thread);
int thread_run(struct thread *thread, uint64_t turn);
uint64_t special_read(const struct thread *thread, uint64_t which);
/* Host memory behind an address; NULL: it is none, and @result says why. */
void *memory_at(struct thread *thread, enum ptx_space space, uint64_t address, uint32_t bytes,
                int *result);

/* floats.c: of the atomic instructions, too. */
uint64_t float_add(unsigned int type, uint64_t a, uint64_t b);
uint64_t float_min_max(unsigned int type, uint64_t a, uint64_t b, bool is_max);
float half_read(uint64_t bits);
uint64_t half_write(double value);
float bfloat_read(uint64_t bits);
uint64_t bfloat_write(float value);
/* Until the next call: of what is computed, not of what the host does otherwise. */
void rounding_set(unsigned int rounding);

/* warp.c: threads of a warp that meet. */
bool warp_meet(struct block *block, uint32_t first);

/* The executors, by file. */
execute run_add, run_sub, run_mul, run_mad, run_div, run_rem, run_abs, run_neg, run_min, run_max,
    run_and, run_or, run_xor, run_not, run_cnot, run_shl, run_shr, run_popc, run_clz, run_bfind,
    run_brev, run_bfe, run_bfi, run_sad, run_mul24, run_mad24, run_dp4a, run_dp2a, run_prmt,
    run_lop3, run_shf, run_bmsk, run_szext, run_addc, run_subc, run_madc, run_fns;
execute run_fma, run_rcp, run_sqrt, run_rsqrt, run_sin, run_cos, run_lg2, run_ex2, run_tanh,
    run_testp, run_copysign;
execute run_setp, run_set, run_selp, run_slct, run_mov, run_cvt, run_cvta, run_isspacep;
execute run_ld, run_st, run_atom, run_red, run_nothing, run_unsupported;
execute run_bra, run_brx, run_call, run_ret, run_exit, run_trap, run_bar, run_shfl, run_vote,
    run_match, run_redux, run_activemask, run_elect, run_bar_warp;
/* Floats of add, sub and the others, whose integers are elsewhere. */
execute run_float_add, run_float_sub, run_float_mul, run_float_div, run_float_abs, run_float_neg,
    run_float_min, run_float_max;

static inline uint64_t cut(uint64_t value, unsigned int bytes)
{
    return bytes >= 8 ? value : value & ((1ull << (8 * bytes)) - 1);
}

static inline int64_t widen(uint64_t value, unsigned int bytes)
{
    unsigned int shift = bytes >= 8 ? 0 : 64 - 8 * bytes;

    return (int64_t)(value << shift) >> shift;
}

uint64_t operand_other(const struct thread *thread, const struct operand *operand);

static inline uint64_t get(const struct thread *thread, const struct operand *operand)
{
    uint64_t value;

    if (operand->kind == OPERAND_REGISTER)
        value = thread->registers[operand->value];
    else if (operand->kind == OPERAND_VALUE)
        value = operand->value;
    else
        value = operand_other(thread, operand);
    return operand->is_negated ? !value : value;
}

static inline uint64_t get_as(const struct thread *thread, const struct operand *operand,
                              unsigned int type)
{
    uint64_t value = get(thread, operand);

    return types[type].is_signed ? (uint64_t)widen(value, types[type].bytes)
                                 : cut(value, types[type].bytes);
}

/* A register may be wider than the type: it holds the value extended, as the type has it. */
static inline void put(struct thread *thread, const struct operand *operand, unsigned int type,
                       uint64_t value)
{
    if (operand->kind == OPERAND_REGISTER)
        thread->registers[operand->value] = types[type].is_signed
                                                ? (uint64_t)widen(value, types[type].bytes)
                                                : cut(value, types[type].bytes);
}

static inline float float_of(uint64_t bits)
{
    uint32_t narrow = (uint32_t)bits;
    float value;

    memcpy(&value, &narrow, sizeof(value));
    return value;
}

static inline double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline uint64_t bits_of_double(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#endif
