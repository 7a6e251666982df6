/* gittalk.h - git's fetch conversation (gitprotocol-v2, gitprotocol-pack):
 * versions 2, 1 and 0, from the advertisement to a resolved pack.
 *
 *     GitTalk t;
 *     if (!gittalk_begin(&t, link, name, err)) ...        link is the talk's from now on
 *     if (!gittalk_find(&t, &tip, err)) ...
 *     if (!gittalk_fetch(&t, &want, pack, err)) ...
 *     gittalk_end(&t);
 *
 * Nothing is sent that was not advertised. An `ERR` packet, fatal text on the
 * side band, and an answer without its end are failures, whatever came before.
 * All errors are E8010, but for ERR_CANCELLED; what the server says is cleaned.
 */
#ifndef ABX_GITTALK_H
#define ABX_GITTALK_H

#include "data/pack.h"
#include "data/pktline.h"
#include "host/gitlink.h"

enum { GITTALK_NAMES = 6 };         /* as what a name is looked for, in git's order */

typedef struct GitTip {
    ObjectId id;                    /* what the name points to: a commit, or a tag */
    ObjectId commit;                /* what a tag points to in the end, as the server has it */
    bool     found, peeled;         /* peeled: `commit` was said, and is another */
} GitTip;

typedef struct GitTalk {
    GitLink   *link;
    PktReader  pkt;
    Str        in;                  /* bytes of the link that were not looked at yet */
    size_t     listed;              /* bytes of names so far */
    int        version;             /* 2, 1, 0 */
    ObjectHash hash;
    bool       agent, format, shallow, filter;      /* what was advertised, and what abx would make use of */
    bool       side_band, ofs_delta, no_progress;   /* versions 0 and 1 */
    bool       fetch, ls_refs;                      /* version 2 */
    Str        name;
    GitTip     tips[GITTALK_NAMES];
} GitTalk;

/* Reads the advertisement; `name` is what gittalk_find() will be asked for. The
 * link is closed with the talk, and where this fails. */
ABX_FN bool gittalk_begin(GitTalk *t, GitLink *link, Str name, Err *err) ABX_CHECK;
ABX_FN void gittalk_end(GitTalk *t);

/* What the name points to: of `N`, `refs/N`, `refs/tags/N`, `refs/heads/N`,
 * `refs/remotes/N` and `refs/remotes/N/HEAD` the first that there is. */
ABX_FN bool gittalk_find(GitTalk *t, GitTip *out, Err *err) ABX_CHECK;

typedef struct GitWant {
    const ObjectId *ids;
    size_t          n;
    bool            history;        /* they are commits: without what came before them */
    bool            no_blobs;       /* their trees alone; t->filter must be set */
} GitWant;

/* Into a pack that was just opened, which is resolved then. More than one want
 * needs version 2. */
ABX_FN bool gittalk_fetch(GitTalk *t, const GitWant *want, Pack *pack, Err *err) ABX_CHECK;

#endif
