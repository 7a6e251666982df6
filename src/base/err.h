/* err.h - one failure, said once, for the person who ran the command.
 *
 * A function that can fail returns bool (or Step) and takes `Err *err` last.
 * On success *err is untouched. On failure it holds
 *   kind  for the program to branch on,
 *   code  E####, from the table in base/code.h: what scripts see, and the exit
 *         status with it,
 *   text  one line for the person, and hint, one more on what to do about it.
 * The lowest function that knows the thing names it; each layer above adds at
 * most a word of context with err_wrap(); only cli/ prints.
 *
 * Memory: all inside the Err, nothing to free. Text and hint hold 2047 bytes;
 * what is longer is cut at a character and ends in an ellipsis.
 */
#ifndef ABX_ERR_H
#define ABX_ERR_H

#include "base/base.h"
#include "base/code.h"

typedef enum ErrKind {
    ERR_NONE,
    ERR_USAGE,      /* what the caller asked for is wrong in itself */
    ERR_INPUT,      /* bytes from a file, server or plugin are malformed */
    ERR_LIMIT,      /* well formed, but more than we agreed to hold */
    ERR_NOT_FOUND,
    ERR_DENIED,
    ERR_TIMEOUT,    /* a deadline passed */
    ERR_CANCELLED,  /* the cancel fd became readable: Ctrl-C, as a rule */
    ERR_UNSENT,     /* no connection: provably not a byte of the request was handled */
    ERR_CLOSED,     /* the peer went away in the middle */
    ERR_REMOTE,     /* the peer answered, and the answer was no */
    ERR_SYSTEM,     /* a system call failed; sys holds errno */
} ErrKind;

enum { ERR_TEXT_SIZE = 2048, ERR_ID_SIZE = 80 };

typedef struct Err {
    ErrKind kind;
    Code    code;
    int     sys;                        /* errno, or 0 */
    int     status;                     /* HTTP status of the answer, or 0 */
    bool    retryable;                  /* the same call may work in a while */
    char    text[ERR_TEXT_SIZE];
    char    hint[ERR_TEXT_SIZE];        /* "": the table's hint for the code, if it has one */
    char    request_id[ERR_ID_SIZE];    /* what the server calls the exchange, or "" */
} Err;

/* Set *err anew and return false, so that a caller can `return err_set(...)`. */
ABX_FN bool err_set(Err *err, ErrKind kind, Code code, const char *fmt, ...) ABX_PRINTF(4, 5);

/* The same for a failed system call: ": " and strerror(sys) follow the text. */
ABX_FN bool err_sys(Err *err, int sys, Code code, const char *fmt, ...) ABX_PRINTF(4, 5);

/* Put "where: " in front of a failure already set. Returns false. */
ABX_FN bool err_wrap(Err *err, const char *fmt, ...) ABX_PRINTF(2, 3);

/* Say what the person can do about a failure already set. Returns false. */
ABX_FN bool err_hint(Err *err, const char *fmt, ...) ABX_PRINTF(2, 3);

#endif
