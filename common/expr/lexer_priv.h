/* Inside common/expr: an expression's text cut into tokens. */
#ifndef COMMON_EXPR_LEXER_PRIV_H
#define COMMON_EXPR_LEXER_PRIV_H

#include "common/expr/expr_priv.h"

enum token_kind {
    TOKEN_END,
    TOKEN_OPEN,      /* ( */
    TOKEN_CLOSE,     /* ) */
    TOKEN_SET_OPEN,  /* { */
    TOKEN_SET_CLOSE, /* } */
    TOKEN_KEY_OPEN,  /* [ */
    TOKEN_KEY_CLOSE, /* ] */
    TOKEN_COMMA,
    TOKEN_STRING, /* "..." */
    TOKEN_WORD    /* anything else up to a blank or one of ( ) { } [ ] , " : names, keywords, addresses */
};

struct token {
    enum token_kind kind;
    struct str text;  /* as it stands in the source, for messages */
    struct str value; /* of a string: without quotes and escapes */
    struct pos pos;
};

struct lexer {
    struct str text;
    struct arena *arena; /* strings that have escapes are unescaped here */
    size_t at;
    unsigned line;
    size_t line_start;
};

/* Refuses text that is too long, not UTF-8, or has a NUL. text must live as long as the tree that is made of it. */
MUSTUSE bool lexer_init(struct lexer *lx, struct str text, struct arena *a, struct err *e);
/* At the end of the text it is TOKEN_END, as often as it is asked. */
MUSTUSE bool lexer_next(struct lexer *lx, struct token *out, struct err *e);
/* Sets e with a position; false. */
bool fail_at(struct err *e, struct pos pos, enum err_code code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Gives the fault in e, when it has no position yet, this one; false. */
bool place(struct err *e, struct pos pos);

#endif
