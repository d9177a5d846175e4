// SPDX-License-Identifier: MIT
/* One instruction: its name, what is said of it, its operands. */
#include "inside.h"

/* @floats: does it for floats, if that is another function. */
static const struct {
    const char *name;
    execute *run;
    execute *floats;
} names[] = {
    {"abs", run_abs, run_float_abs},
    {"activemask", run_activemask, NULL},
    {"add", run_add, run_float_add},
    {"addc", run_addc, NULL},
    {"and", run_and, NULL},
    {"applypriority", run_nothing, NULL},
    {"atom", run_atom, NULL},
    {"bar", run_bar, NULL},
    {"barrier", run_bar, NULL},
    {"bfe", run_bfe, NULL},
    {"bfi", run_bfi, NULL},
    {"bfind", run_bfind, NULL},
    {"bmsk", run_bmsk, NULL},
    {"bra", run_bra, NULL},
    {"brev", run_brev, NULL},
    {"brkpt", run_trap, NULL},
    {"brx", run_brx, NULL},
    {"call", run_call, NULL},
    {"clz", run_clz, NULL},
    {"cnot", run_cnot, NULL},
    {"copysign", run_copysign, run_copysign},
    {"cos", run_cos, run_cos},
    {"cvt", run_cvt, run_cvt},
    {"cvta", run_cvta, NULL},
    {"discard", run_nothing, NULL},
    {"div", run_div, run_float_div},
    {"dp2a", run_dp2a, NULL},
    {"dp4a", run_dp4a, NULL},
    {"elect", run_elect, NULL},
    {"ex2", run_ex2, run_ex2},
    {"exit", run_exit, NULL},
    {"fence", run_nothing, NULL},
    {"fma", run_fma, run_fma},
    {"fns", run_fns, NULL},
    {"griddepcontrol", run_nothing, NULL},
    {"isspacep", run_isspacep, NULL},
    {"ld", run_ld, run_ld},
    {"ldu", run_ld, run_ld},
    {"lg2", run_lg2, run_lg2},
    {"lop3", run_lop3, NULL},
    {"mad", run_mad, run_fma},
    {"mad24", run_mad24, NULL},
    {"madc", run_madc, NULL},
    {"match", run_match, NULL},
    {"max", run_max, run_float_max},
    {"membar", run_nothing, NULL},
    {"min", run_min, run_float_min},
    {"mov", run_mov, run_mov},
    {"mul", run_mul, run_float_mul},
    {"mul24", run_mul24, NULL},
    {"nanosleep", run_nothing, NULL},
    {"neg", run_neg, run_float_neg},
    {"not", run_not, NULL},
    {"or", run_or, NULL},
    {"pmevent", run_nothing, NULL},
    {"popc", run_popc, NULL},
    {"prefetch", run_nothing, NULL},
    {"prefetchu", run_nothing, NULL},
    {"prmt", run_prmt, NULL},
    {"rcp", run_rcp, run_rcp},
    {"red", run_red, run_red},
    {"redux", run_redux, run_redux},
    {"rem", run_rem, NULL},
    {"ret", run_ret, NULL},
    {"rsqrt", run_rsqrt, run_rsqrt},
    {"sad", run_sad, NULL},
    {"selp", run_selp, run_selp},
    {"set", run_set, run_set},
    {"setmaxnreg", run_nothing, NULL},
    {"setp", run_setp, run_setp},
    {"shf", run_shf, NULL},
    {"shfl", run_shfl, NULL},
    {"shl", run_shl, NULL},
    {"shr", run_shr, NULL},
    {"sin", run_sin, run_sin},
    {"slct", run_slct, run_slct},
    {"sqrt", run_sqrt, run_sqrt},
    {"st", run_st, run_st},
    {"sub", run_sub, run_float_sub},
    {"subc", run_subc, NULL},
    {"szext", run_szext, NULL},
    {"tanh", run_tanh, run_tanh},
    {"testp", run_testp, run_testp},
    {"trap", run_trap, NULL},
    {"vote", run_vote, NULL},
    {"xor", run_xor, NULL},
};

/* Of the PTX ISA, and missing here. */
static const char *const missing[] = {
    "alloca",     "cachepolicy",  "clusterlaunchcontrol",
    "cp",         "createpolicy", "fabsdiff",
    "getctarank", "istypep",      "ldmatrix",
    "mapa",       "mbarrier",     "mma",
    "movmatrix",  "multimem",     "stackrestore",
    "stacksave",  "stmatrix",     "suld",
    "suq",        "sured",        "sust",
    "tcgen05",    "tensormap",    "tex",
    "tld4",       "txq",          "vabsdiff",
    "vabsdiff2",  "vabsdiff4",    "vadd",
    "vadd2",      "vadd4",        "vavrg2",
    "vavrg4",     "vmad",         "vmax",
    "vmax2",      "vmax4",        "vmin",
    "vmin2",      "vmin4",        "vset",
    "vset2",      "vset4",        "vshl",
    "vshr",       "vsub",         "vsub2",
    "vsub4",      "wgmma",        "wmma",
    "st_async",
};

enum field {
    SETS_SPACE,
    SETS_COMPARE,
    SETS_HOW,
    SETS_ROUNDING,
    SETS_FLAG,
    SETS_INTEGRAL, /* rounding to an integer */
    SETS_WIDTH,
    SETS_NOTHING,
};

static const struct modifier {
    const char *word;
    enum field field;
    uint32_t value;
} modifiers[] = {
    {"param", SETS_SPACE, SPACE_PARAM},
    {"param::entry", SETS_SPACE, SPACE_PARAM},
    {"param::func", SETS_SPACE, SPACE_PARAM},
    {"global", SETS_SPACE, SPACE_GLOBAL},
    {"shared", SETS_SPACE, SPACE_SHARED},
    {"shared::cta", SETS_SPACE, SPACE_SHARED},
    {"shared::cluster", SETS_SPACE, SPACE_SHARED},
    {"local", SETS_SPACE, SPACE_LOCAL},
    {"const", SETS_SPACE, SPACE_CONST},
    {"eq", SETS_COMPARE, C_EQ},
    {"ne", SETS_COMPARE, C_NE},
    {"lt", SETS_COMPARE, C_LT},
    {"le", SETS_COMPARE, C_LE},
    {"gt", SETS_COMPARE, C_GT},
    {"ge", SETS_COMPARE, C_GE},
    {"ls", SETS_COMPARE, C_LE},
    {"hs", SETS_COMPARE, C_GE},
    {"equ", SETS_COMPARE, C_EQU},
    {"neu", SETS_COMPARE, C_NEU},
    {"ltu", SETS_COMPARE, C_LTU},
    {"leu", SETS_COMPARE, C_LEU},
    {"gtu", SETS_COMPARE, C_GTU},
    {"geu", SETS_COMPARE, C_GEU},
    {"num", SETS_COMPARE, C_NUM},
    {"nan", SETS_COMPARE, C_NAN},
    {"add", SETS_HOW, HOW_ADD},
    {"min", SETS_HOW, HOW_MIN},
    {"max", SETS_HOW, HOW_MAX},
    {"and", SETS_HOW, HOW_AND},
    {"or", SETS_HOW, HOW_OR},
    {"xor", SETS_HOW, HOW_XOR},
    {"popc", SETS_HOW, HOW_POPC},
    {"exch", SETS_HOW, HOW_EXCH},
    {"cas", SETS_HOW, HOW_CAS},
    {"inc", SETS_HOW, HOW_INC},
    {"dec", SETS_HOW, HOW_DEC},
    {"up", SETS_HOW, HOW_UP},
    {"down", SETS_HOW, HOW_DOWN},
    {"bfly", SETS_HOW, HOW_BFLY},
    {"idx", SETS_HOW, HOW_IDX},
    {"all", SETS_HOW, HOW_ALL},
    {"any", SETS_HOW, HOW_ANY},
    {"ballot", SETS_HOW, HOW_BALLOT},
    {"rn", SETS_ROUNDING, ROUND_NEAREST},
    {"rna", SETS_ROUNDING, ROUND_NEAREST},
    {"rz", SETS_ROUNDING, ROUND_ZERO},
    {"rm", SETS_ROUNDING, ROUND_DOWN},
    {"rp", SETS_ROUNDING, ROUND_UP},
    {"rni", SETS_INTEGRAL, ROUND_NEAREST},
    {"rzi", SETS_INTEGRAL, ROUND_ZERO},
    {"rmi", SETS_INTEGRAL, ROUND_DOWN},
    {"rpi", SETS_INTEGRAL, ROUND_UP},
    {"ftz", SETS_FLAG, FLAG_FTZ},
    {"sat", SETS_FLAG, FLAG_SAT},
    {"satfinite", SETS_FLAG, FLAG_SAT},
    {"lo", SETS_FLAG, FLAG_LO},
    {"hi", SETS_FLAG, FLAG_HI},
    {"wide", SETS_FLAG, FLAG_WIDE},
    {"cc", SETS_FLAG, FLAG_CARRY},
    {"uni", SETS_FLAG, FLAG_UNI},
    {"NaN", SETS_FLAG, FLAG_NAN},
    {"to", SETS_FLAG, FLAG_TO},
    {"l", SETS_FLAG, FLAG_LEFT},
    {"r", SETS_FLAG, FLAG_RIGHT},
    {"wrap", SETS_FLAG, FLAG_WRAP},
    {"clamp", SETS_NOTHING, 0},
    {"shiftamt", SETS_FLAG, FLAG_SHIFT},
    {"warp", SETS_FLAG, FLAG_WARP},
    {"arrive", SETS_FLAG, FLAG_ARRIVE},
    {"red", SETS_FLAG, FLAG_RED},
    {"sync", SETS_FLAG, FLAG_SYNC},
    {"relu", SETS_FLAG, FLAG_RELU},
    {"approx", SETS_FLAG, FLAG_APPROX},
    {"full", SETS_FLAG, FLAG_APPROX},
    {"v2", SETS_WIDTH, 2},
    {"v4", SETS_WIDTH, 4},
    {"v8", SETS_WIDTH, 8},
    /* Of testp and prmt, by their number. */
    {"finite", SETS_COMPARE, 1},
    {"infinite", SETS_COMPARE, 2},
    {"number", SETS_COMPARE, 3},
    {"notanumber", SETS_COMPARE, 4},
    {"normal", SETS_COMPARE, 5},
    {"subnormal", SETS_COMPARE, 6},
    {"f4e", SETS_COMPARE, 1},
    {"b4e", SETS_COMPARE, 2},
    {"rc8", SETS_COMPARE, 3},
    {"ecl", SETS_COMPARE, 4},
    {"ecr", SETS_COMPARE, 5},
    {"rc16", SETS_COMPARE, 6},
};

/* Where a value is cached, and for whom it is in order, is no matter here. */
static const char *const ignored[] = {
    "aligned", "volatile", "relaxed", "acquire", "release", "acq_rel", "weak",  "sc",
    "cta",     "cluster",  "gpu",     "sys",     "gl",      "nc",      "ca",    "cg",
    "cs",      "lu",       "cv",      "wb",      "wt",      "mmio",    "noftz",
};

bool modifier_read(const struct token *word, struct instruction *made)
{
    for (unsigned int i = 0; i < sizeof(modifiers) / sizeof(modifiers[0]); i++) {
        const struct modifier *is = &modifiers[i];

        if (!token_is(word, is->word))
            continue;
        if (is->field == SETS_SPACE)
            made->space = (uint8_t)is->value;
        else if (is->field == SETS_COMPARE)
            made->compare = (uint8_t)is->value;
        else if (is->field == SETS_HOW)
            made->how = (uint8_t)is->value;
        else if (is->field == SETS_WIDTH)
            made->width = (uint8_t)is->value;
        else if (is->field == SETS_FLAG)
            made->flags |= is->value;
        if (is->field == SETS_ROUNDING || is->field == SETS_INTEGRAL)
            made->rounding = (uint8_t)is->value;
        if (is->field == SETS_INTEGRAL)
            made->flags |= FLAG_INTEGRAL;
        if (is->field == SETS_ROUNDING)
            made->flags |= FLAG_ROUNDED;
        return true;
    }
    for (unsigned int i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        if (token_is(word, ignored[i]))
            return true;
    return (word->length > 4 && !memcmp(word->text, "L1::", 4)) ||
           (word->length > 4 && !memcmp(word->text, "L2::", 4));
}

/* What else is said is of something that is missing here. */
static void read_modifiers(struct parser *parser, struct instruction *made)
{
    while (parser->token.kind == TOKEN_DOT) {
        enum type type = parser_type(parser);

        if (type != T_NONE && made->type == T_NONE)
            made->type = made->second = (uint8_t)type;
        else if (type != T_NONE)
            made->second = (uint8_t)type;
        else if (!modifier_read(&parser->token, made))
            made->flags |= FLAG_UNKNOWN;
        parser_next(parser);
    }
}

static const struct {
    const char *name;
    enum special special;
    bool has_parts;
} specials[] = {
    {"%tid", S_TID, true},
    {"%ntid", S_NTID, true},
    {"%ctaid", S_CTAID, true},
    {"%nctaid", S_NCTAID, true},
    {"%laneid", S_LANE, false},
    {"%warpid", S_WARP, false},
    {"%nwarpid", S_WARPS, false},
    {"%smid", S_SM, false},
    {"%nsmid", S_SMS, false},
    {"%gridid", S_GRID, false},
    {"%lanemask_eq", S_EQ, false},
    {"%lanemask_lt", S_LT, false},
    {"%lanemask_le", S_LE, false},
    {"%lanemask_gt", S_GT, false},
    {"%lanemask_ge", S_GE, false},
    {"%clock", S_CLOCK, false},
    {"%clock64", S_CLOCK, false},
    {"%clock_hi", S_CLOCK_HIGH, false},
    {"%globaltimer", S_TIMER, false},
    {"%globaltimer_lo", S_TIMER, false},
    {"%dynamic_smem_size", S_DYNAMIC_BYTES, false},
    {"%total_smem_size", S_SHARED_BYTES, false},
    {"WARP_SZ", S_WARP_SIZE, false},
};

/* Clusters are of one block. */
static bool read_cluster_special(struct parser *parser, struct operand *operand)
{
    bool is_count = token_is(&parser->token, "%cluster_nctaid") ||
                    token_is(&parser->token, "%cluster_nctarank");
    bool is_id = token_is(&parser->token, "%cluster_ctaid") ||
                 token_is(&parser->token, "%cluster_ctarank") ||
                 (parser->token.length > 7 && !memcmp(parser->token.text, "%envreg", 7));

    if (!is_count && !is_id)
        return false;
    *operand = (struct operand){.kind = OPERAND_VALUE, .value = is_count};
    parser_next(parser);
    if (parser->token.kind == TOKEN_DOT)
        parser_next(parser);
    return true;
}

static bool read_special(struct parser *parser, struct operand *operand)
{
    for (unsigned int i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        if (!token_is(&parser->token, specials[i].name))
            continue;
        *operand = (struct operand){.kind = OPERAND_SPECIAL, .value = specials[i].special};
        if (specials[i].special == S_WARP_SIZE)
            *operand = (struct operand){.kind = OPERAND_VALUE, .value = WARP};
        parser_next(parser);
        if (!specials[i].has_parts)
            return true;
        if (parser->token.kind != TOKEN_DOT || parser->token.length != 1 ||
            !strchr("xyzw", *parser->token.text)) {
            parser_fail(parser, "expected .x, .y or .z", NULL, 0);
            return true;
        }
        if (*parser->token.text == 'w')
            *operand = (struct operand){.kind = OPERAND_VALUE, .value = 0};
        else
            operand->value += (uint64_t)(*parser->token.text - 'x');
        parser_next(parser);
        return true;
    }
    return read_cluster_special(parser, operand);
}

static void take_symbol(const struct symbol *symbol, struct operand *operand)
{
    static const enum operand_kind kinds[] = {
        [SYMBOL_REGISTER] = OPERAND_REGISTER, [SYMBOL_FRAME] = OPERAND_FRAME,
        [SYMBOL_PARAM] = OPERAND_PARAM,       [SYMBOL_SHARED] = OPERAND_VALUE,
        [SYMBOL_DYNAMIC] = OPERAND_DYNAMIC,   [SYMBOL_VARIABLE] = OPERAND_VARIABLE,
        [SYMBOL_TARGETS] = OPERAND_VALUE,     [SYMBOL_PROTOTYPE] = OPERAND_VALUE,
        [SYMBOL_LABEL] = OPERAND_VALUE,
    };

    *operand = (struct operand){.kind = (uint8_t)kinds[symbol->kind], .value = symbol->at};
    if (symbol->kind == SYMBOL_VARIABLE)
        operand->variable = symbol->variable;
}

static void read_name(struct parser *parser, struct operand *operand)
{
    const struct symbol *symbol = parser_find(parser, parser->token.text, parser->token.length);
    struct ptx_function *function;
    char name[256];

    if (symbol) {
        take_symbol(symbol, operand);
        parser_next(parser);
        return;
    }
    if (read_special(parser, operand))
        return;
    if (parser->token.length >= sizeof(name)) {
        parser_fail(parser, "a name is too long", NULL, 0);
        return;
    }
    memcpy(name, parser->token.text, parser->token.length);
    name[parser->token.length] = 0;
    function = module_function(parser->module, name);
    if (!function) {
        parser_fail(parser, "unknown name", parser->token.text, parser->token.length);
        return;
    }
    *operand = (struct operand){.kind = OPERAND_VALUE,
                                .value = CODE_WINDOW + (uint64_t)function->number * CODE_STEP};
    parser_next(parser);
}

/* As the instruction's type has it. */
static uint64_t float_bits(const struct token *token, enum type type, bool is_negative)
{
    double value =
        token->kind == TOKEN_SINGLE ? (double)float_of(token->integer) : double_of(token->integer);

    if (token->kind == TOKEN_SINGLE && types[type].bytes == 4)
        return token->integer ^ (is_negative ? 0x80000000u : 0);
    value = is_negative ? -value : value;
    if (types[type].bytes == 4 || (types[type].is_float && types[type].bytes < 8))
        return bits_of_float((float)value);
    return bits_of_double(value);
}

static void read_number(struct parser *parser, struct operand *operand, enum type type)
{
    bool is_negative = parser_accept(parser, '-');
    bool is_inverted = !is_negative && parser_accept(parser, '~');

    *operand = (struct operand){.kind = OPERAND_VALUE, .value = parser->token.integer};
    if (parser->token.kind == TOKEN_FLOAT || parser->token.kind == TOKEN_SINGLE) {
        operand->value = float_bits(&parser->token, type, is_negative);
    } else if (parser->token.kind != TOKEN_INTEGER) {
        parser_fail(parser, "expected an operand", parser->token.text, parser->token.length);
    } else {
        operand->value = is_negative ? 0 - operand->value : operand->value;
        operand->value = is_inverted ? ~operand->value : operand->value;
    }
    parser_next(parser);
}

static void fold_offset(struct operand *operand)
{
    if (operand->kind != OPERAND_VALUE)
        return;
    operand->value += (uint64_t)operand->offset;
    operand->offset = 0;
}

/* [name], [name+8], [name + -8], [4096] */
static void read_address(struct parser *parser, struct operand *operand)
{
    if (parser->token.kind == TOKEN_WORD)
        read_name(parser, operand);
    else
        read_number(parser, operand, T_U64);
    if (parser_accept(parser, '+'))
        operand->offset = parser_integer(parser);
    else if (parser_is(parser, '-'))
        operand->offset = parser_integer(parser);
    fold_offset(operand);
    parser_expect(parser, ']');
}

void operand_read(struct parser *parser, struct operand *operand, enum type type)
{
    bool is_negated;

    *operand = (struct operand){0};
    if (parser_accept(parser, '[')) {
        read_address(parser, operand);
        return;
    }
    is_negated = parser_accept(parser, '!');
    if (parser_is_word(parser, "_")) {
        operand->kind = OPERAND_SINK;
        parser_next(parser);
    } else if (parser->token.kind == TOKEN_WORD) {
        read_name(parser, operand);
        /* name+8 */
        if (operand->kind != OPERAND_REGISTER && parser_accept(parser, '+'))
            operand->offset = parser_integer(parser);
        fold_offset(operand);
    } else {
        read_number(parser, operand, type);
    }
    operand->is_negated = is_negated;
}

struct operands {
    struct operand list[MOST_OPERANDS];
    uint32_t count;
};

static void add_operand(struct parser *parser, struct operands *operands, enum type type)
{
    if (operands->count == MOST_OPERANDS)
        parser_fail(parser, "too many operands", NULL, 0);
    else
        operand_read(parser, &operands->list[operands->count++], type);
}

/* {a, b}: as many operands. The first vector says the width, if nothing else has. */
static void read_vector(struct parser *parser, struct instruction *made, struct operands *operands)
{
    uint32_t before = operands->count;

    do
        add_operand(parser, operands, (enum type)made->second);
    while (parser_accept(parser, ','));
    parser_expect(parser, '}');
    if (made->width < 2)
        made->width = (uint8_t)(operands->count - before);
    /* mov says by the place of the vector if it packs. */
    if (made->run == run_mov && before)
        made->flags |= FLAG_PACKS;
}

static void read_operands(struct parser *parser, struct instruction *made)
{
    struct operands operands = {.count = 0};
    struct operand *copy;

    while (!parser_is(parser, ';') && parser->token.kind != TOKEN_END) {
        if (parser_accept(parser, '{'))
            read_vector(parser, made, &operands);
        else
            add_operand(parser, &operands, (enum type)made->second);
        if (parser_accept(parser, '|'))
            made->flags |= FLAG_PAIR;
        else if (!parser_accept(parser, ','))
            break;
        if (parser_is(parser, ';'))
            parser_fail(parser, "expected an operand", NULL, 0);
    }
    copy = module_get(parser->module, (LEAST_OPERANDS + operands.count) * sizeof(*copy));
    if (!copy) {
        parser_fail(parser, "no memory", NULL, 0);
        return;
    }
    memcpy(copy, operands.list, operands.count * sizeof(*copy));
    made->a = copy;
    made->count = (uint8_t)operands.count;
}

execute *instruction_find(const struct parser *parser, const char *name, size_t length)
{
    const struct token word = {.text = name, .length = length};

    (void)parser;
    for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (token_is(&word, names[i].name))
            return names[i].run;
    for (unsigned int i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
        if (token_is(&word, missing[i]))
            return run_unsupported;
    return NULL;
}

static execute *floats_of(execute *run)
{
    for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].run == run)
            return names[i].floats;
    return NULL;
}

/* Until it is reached, what is missing does no harm. */
static void skip_unsupported(struct parser *parser, struct instruction *made,
                             const struct token *name)
{
    const char *end = name->text;

    while (end < parser->lexer.end && *end != ';' && *end != '\n')
        end++;
    made->run = run_unsupported;
    made->name = module_copy(parser->module, name->text, (size_t)(end - name->text));
    while (!parser_is(parser, ';') && parser->token.kind != TOKEN_END)
        parser_next(parser);
    parser_expect(parser, ';');
}

/* The label is joined at the end of the function. */
static void read_branch(struct parser *parser, struct instruction *made)
{
    if (parser->token.kind != TOKEN_WORD) {
        parser_fail(parser, "expected a label", NULL, 0);
        return;
    }
    made->name = parser->token.text;
    made->target = (uint32_t)parser->token.length;
    parser_next(parser);
}

/* How many operands there must be at least, so that executors need not ask. */
static bool has_enough(const struct instruction *made)
{
    static const struct {
        execute *run;
        uint8_t count;
    } least[] = {
        {run_nothing, 0},   {run_trap, 0}, {run_bar, 0},  {run_elect, 2},     {run_activemask, 1},
        {run_mad, 4},       {run_fma, 4},  {run_bfi, 5},  {run_bfe, 4},       {run_lop3, 5},
        {run_prmt, 4},      {run_shf, 4},  {run_selp, 4}, {run_slct, 4},      {run_madc, 4},
        {run_sad, 4},       {run_dp4a, 4}, {run_dp2a, 4}, {run_mad24, 4},     {run_fns, 4},
        {run_brx, 2},       {run_mov, 2},  {run_abs, 2},  {run_float_abs, 2}, {run_neg, 2},
        {run_float_neg, 2}, {run_not, 2},  {run_cnot, 2}, {run_popc, 2},      {run_clz, 2},
        {run_bfind, 2},     {run_brev, 2}, {run_rcp, 2},  {run_sqrt, 2},      {run_rsqrt, 2},
        {run_sin, 2},       {run_cos, 2},  {run_lg2, 2},  {run_ex2, 2},       {run_tanh, 2},
        {run_testp, 2},     {run_cvt, 2},  {run_cvta, 2}, {run_isspacep, 2},  {run_ld, 2},
        {run_st, 2},        {run_red, 2},  {run_vote, 2}, {run_match, 3},     {run_shfl, 4},
        {run_redux, 3},
    };
    uint32_t wanted = 3;

    for (unsigned int i = 0; i < sizeof(least) / sizeof(least[0]); i++)
        if (least[i].run == made->run)
            wanted = least[i].count;
    if (made->run == run_ld || made->run == run_st)
        wanted = 1u + (made->width ? made->width : 1u);
    return made->count >= wanted;
}

void instruction_read(struct parser *parser, struct instruction *made)
{
    struct token name = parser->token;

    if (name.kind != TOKEN_WORD) {
        parser_fail(parser, "expected an instruction", name.text, name.length);
        return;
    }
    made->run = instruction_find(parser, name.text, name.length);
    if (!made->run) {
        parser_fail(parser, "there is no such instruction", name.text, name.length);
        return;
    }
    parser_next(parser);
    read_modifiers(parser, made);
    if (made->run == run_nothing)
        made->flags &= ~(uint32_t)FLAG_UNKNOWN;
    if (made->run == run_unsupported || (made->flags & FLAG_UNKNOWN) || made->type == T_B128) {
        skip_unsupported(parser, made, &name);
        return;
    }
    if (types[made->type].is_float && floats_of(made->run))
        made->run = floats_of(made->run);
    if (made->run == run_bra)
        read_branch(parser, made);
    else if (made->run == run_call)
        call_read(parser, made);
    else if (made->run != run_ret && made->run != run_exit)
        read_operands(parser, made);
    if (made->run != run_bra && made->run != run_call && made->run != run_ret &&
        made->run != run_exit && !has_enough(made))
        parser_fail(parser, "it has too few operands", name.text, name.length);
    parser_expect(parser, ';');
}
