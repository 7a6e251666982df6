/* input.h - standard input on its way to a command in a sandbox.
 *
 * What is on descriptor 0 decides. A pipe, a socket or a file is sent, and its
 * end with it. A terminal is read where it was asked for (-i) alone. Nothing is
 * sent, and the command reads from /dev/null, where 0 is closed, /dev/null, a
 * file without anything (left) in it, or a pipe that is empty and closed.
 *
 *     Input in;
 *     if (!input_look(&in, asked, err)) ...
 *     if (in.kind != INPUT_NONE) ... start the command with input, and then
 *     input_read(&in, err)        when input_fd(&in) is readable
 *     input_give(&in, x, &e)      when the command may have room
 */
#ifndef ABX_INPUT_H
#define ABX_INPUT_H

#include "abx.h"
#include "base/err.h"
#include "base/limits.h"

typedef enum InputKind { INPUT_NONE, INPUT_FILE, INPUT_PIPE, INPUT_TERMINAL } InputKind;

typedef struct Input {
    InputKind kind;
    char      block[LIMIT_COPY_BLOCK];
    Str       rest;             /* of block: not taken yet */
    bool      unsent;           /* the command cannot be given it: what comes is only seen */
    bool      ended;            /* its end was read, */
    bool      told;             /* and passed on */
} Input;

/* Looks, and reads what is there already: but for a terminal. False: it cannot be read. */
ABX_FN bool input_look(Input *in, bool asked, Err *err) ABX_CHECK;

/* There is something that must not be lost: the command has to get it. */
ABX_FN bool input_matters(const Input *in, bool asked);

/* To be waited for until it is readable; -1: there is no room, or no more to read. */
ABX_FN int input_fd(const Input *in);
/* What is there now, if anything. False: it cannot be read. */
ABX_FN bool input_read(Input *in, Err *err) ABX_CHECK;
/* As much to the command as it takes now, and nothing of what is unsent. -1: *e. */
ABX_FN int input_give(Input *in, abx_exec *x, abx_error *e);

#endif
