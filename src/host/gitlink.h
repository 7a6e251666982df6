/* gitlink.h - the way to a git server, whatever it is made of.
 *
 * What the server says first (its advertisement) comes with the first
 * gitlink_read()s; after a request, its answer does. Over HTTP each of them is
 * an exchange of its own and ends with its body; over the pipes of a program
 * they follow each other, and only the packets say where one ends.
 *
 *     GitLink *l;
 *     if (!gitlink_open(url, host, &l, err)) ...
 *     while (gitlink_read(l, &piece, err) && piece.n) ...
 *     gitlink_close(l);
 *
 * Every wait ends: LIMIT_GIT_MS after the last gitlink_send() (or the opening),
 * after LIMIT_GIT_SILENCE_MS without a byte, and when host->cancel_fd says so.
 * Errors are E8010, but for ERR_CANCELLED.
 *
 * Memory: gitlink_close() ends what it is made of, and frees it.
 */
#ifndef ABX_GITLINK_H
#define ABX_GITLINK_H

#include "host/source.h"

typedef struct GitLink GitLink;

typedef struct GitLinkOps {
    bool (*read)(GitLink *l, Str *piece, Err *err);
    bool (*send)(GitLink *l, Str request, Err *err);
    bool (*cut)(GitLink *l, Err *err);
    bool (*goes_on)(GitLink *l, Err *err);
    void (*close)(GitLink *l);
} GitLinkOps;

/* First member of each kind. */
struct GitLink {
    const GitLinkOps *ops;
    bool              http;     /* each request stands alone */
};

/* By the URL's kind: https and http, ssh and user@host:path, file. E8012: a
 * user, host or path that a program could take for an option. E8010: another
 * kind, or no way to it. Nothing is sent or started before all of it is checked. */
ABX_FN bool gitlink_open(Str url, const SourceHost *host, GitLink **out, Err *err) ABX_CHECK;
ABX_FN void gitlink_close(GitLink *l);          /* NULL is fine */

/* The next bytes, good until the next call; none at the end. */
ABX_FN bool gitlink_read(GitLink *l, Str *piece, Err *err) ABX_CHECK;

/* All of the request. What was not read of the answer before is dropped (HTTP). */
ABX_FN bool gitlink_send(GitLink *l, Str request, Err *err) ABX_CHECK;

/* The bytes ended where they must not: says what is known of the reason, and is false. */
ABX_FN bool gitlink_cut(GitLink *l, Err *err);

/* False: the time is over, or it was cancelled. For work between two reads. */
ABX_FN bool gitlink_goes_on(GitLink *l, Err *err) ABX_CHECK;

#endif
