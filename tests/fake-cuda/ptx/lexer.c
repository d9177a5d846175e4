// SPDX-License-Identifier: MIT
/* Tokens of PTX. */
#include "inside.h"

#include <ctype.h>
#include <stdlib.h>

#define NUMBER_MOST 64

static bool is_of_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Comments are blanks. False: one has no end. */
static bool skip_blanks(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        const char *at = lexer->at;
        size_t left = (size_t)(lexer->end - at);

        if (left > 1 && at[0] == '/' && at[1] == '/') {
            const char *stop = memchr(at, '\n', left);

            lexer->at = stop ? stop : lexer->end;
        } else if (left > 1 && at[0] == '/' && at[1] == '*') {
            const char *stop = memmem(at + 2, left - 2, "*/", 2);

            if (!stop)
                return false;
            for (; at < stop; at++)
                lexer->line += *at == '\n';
            lexer->at = stop + 2;
        } else if (isspace((unsigned char)*at)) {
            lexer->line += *at == '\n';
            lexer->at++;
        } else {
            break;
        }
    }
    return true;
}

static void take_word(struct lexer *lexer, struct token *token)
{
    token->text = lexer->at;
    while (lexer->at < lexer->end && is_of_word(*lexer->at))
        lexer->at++;
    token->length = (size_t)(lexer->at - token->text);
}

/* After a dot: also L1::no_allocate, 1d. */
static void take_dotted(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_DOT;
    lexer->at++;
    token->text = lexer->at;
    while (lexer->at < lexer->end &&
           (is_of_word(*lexer->at) ||
            (*lexer->at == ':' && lexer->at + 1 < lexer->end && lexer->at[1] == ':') ||
            (*lexer->at == ':' && lexer->at > token->text && lexer->at[-1] == ':')))
        lexer->at++;
    token->length = (size_t)(lexer->at - token->text);
}

/* 0f3F800000 and 0d3FF0000000000000 are bits. */
static bool take_bits(struct token *token, const char *text)
{
    bool is_single = text[1] == 'f' || text[1] == 'F';
    char *end;

    token->kind = is_single ? TOKEN_SINGLE : TOKEN_FLOAT;
    token->integer = strtoull(text + 2, &end, 16);
    return !*end && end == text + 2 + (is_single ? 8 : 16);
}

static bool take_integer(struct token *token, const char *text)
{
    size_t skipped = text[0] == '0' && (text[1] == 'b' || text[1] == 'B') ? 2 : 0;
    char *end;

    token->kind = TOKEN_INTEGER;
    token->integer = strtoull(text + skipped, &end, skipped ? 2 : 0);
    if (*end == 'U' && end > text + skipped)
        end++;
    return !*end && end > text + skipped;
}

static bool is_of_number(const char *start, const char *at)
{
    if (isalnum((unsigned char)*at) || *at == '.')
        return true;
    /* The sign of an exponent. */
    return (*at == '+' || *at == '-') && at > start && (at[-1] == 'e' || at[-1] == 'E') &&
           memchr(start, '.', (size_t)(at - start));
}

static bool take_number(struct lexer *lexer, struct token *token)
{
    char text[NUMBER_MOST];
    const char *start = lexer->at;
    size_t length;
    double value;
    char *end;

    while (lexer->at < lexer->end && is_of_number(start, lexer->at))
        lexer->at++;
    length = (size_t)(lexer->at - start);
    if (length >= sizeof(text))
        return false;
    memcpy(text, start, length);
    text[length] = 0;
    if (length > 2 && text[0] == '0' && strchr("fFdD", text[1]))
        return take_bits(token, text);
    if (!strchr(text, '.'))
        return take_integer(token, text);
    value = strtod(text, &end);
    token->kind = TOKEN_FLOAT;
    token->integer = bits_of_double(value);
    return !*end;
}

static bool take_string(struct lexer *lexer, struct token *token)
{
    const char *stop;

    token->kind = TOKEN_STRING;
    token->text = ++lexer->at;
    stop = memchr(lexer->at, '"', (size_t)(lexer->end - lexer->at));
    if (!stop)
        return false;
    token->length = (size_t)(stop - token->text);
    lexer->at = stop + 1;
    return true;
}

bool lexer_next(struct lexer *lexer, struct token *token)
{
    *token = (struct token){.kind = TOKEN_END};
    if (!skip_blanks(lexer))
        return false;
    token->line = lexer->line;
    if (lexer->at == lexer->end || !*lexer->at)
        return true;
    if (*lexer->at == '"')
        return take_string(lexer, token);
    if (isdigit((unsigned char)*lexer->at))
        return take_number(lexer, token);
    if (is_of_word(*lexer->at)) {
        token->kind = TOKEN_WORD;
        take_word(lexer, token);
        return true;
    }
    if (*lexer->at == '.') {
        take_dotted(lexer, token);
        return token->length > 0;
    }
    token->kind = TOKEN_SIGN;
    token->sign = *lexer->at++;
    return strchr("[](){},;:@!<>=+-|~*/", token->sign) != NULL;
}
