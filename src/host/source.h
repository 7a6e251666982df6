/* source.h - where a plugin comes from: what SOURCE means, and its files.
 *
 * Specification of the provider host, 3.2 and 3.3, with rows 14, 17, 18, 25, 34
 * and 36 of docs/differences.md.
 *
 *     SourceRef ref;
 *     if (!source_parse(&ask, &a, &ref, err)) ...      nothing is opened or sent
 *     SourceGot got;
 *     if (!source_fetch(&ref, &host, &a, &got, err)) ...
 *     tree_free(&got.tree);
 *
 * Memory: the arena's, and the tree's own.
 */
#ifndef ABX_SOURCE_H
#define ABX_SOURCE_H

#include "host/receipt.h"
#include "host/tree.h"
#include "net/client.h"

typedef struct SourceAsk {
    Str  source;                /* as it was given */
    Str  ref, subdir;           /* p NULL: not given */
    Str  archive_sha256;        /* p NULL: not given */
    bool allow_insecure;        /* --allow-insecure-transport */
    bool allow_unverified;      /* --allow-unverified */
} SourceAsk;

typedef enum SourceKind { SOURCE_FOLDER, SOURCE_ARCHIVE, SOURCE_GIT, SOURCE_CATALOG } SourceKind;

typedef struct SourceRef {
    SourceKind kind;
    Str  location;              /* path, git URL or catalog id */
    Str  ref, subdir;           /* empty: none */
    Str  archive_sha256;
    bool allow_insecure, allow_unverified;
} SourceRef;

/* Short forms, classification, transport policy. E8010, E8012. */
ABX_FN bool source_parse(const SourceAsk *ask, Arena *a, SourceRef *out, Err *err) ABX_CHECK;

/* What fetching needs from this process. */
typedef struct SourceHost {
    int    cancel_fd;
    Str    ca_file;
    Str    registry;            /* ABX_PROVIDER_REGISTRY; empty: the public one */
    const char *const *environ; /* for ssh: PATH, HOME, SSH_AUTH_SOCK, SSH_AGENT_PID */
    void (*notice)(void *ctx, Str line);
    void  *notice_ctx;
    void (*trace)(void *ctx, const char *line);
    void  *trace_ctx;
} SourceHost;

typedef struct SourceGot {
    Tree          tree;         /* sealed */
    ReceiptSource source;       /* as the receipt will hold it */
    bool          pinned;       /* git: the ref is a full commit id, and it was proved */
    Str           catalog_id;   /* catalog: the id that was asked for */
    Str           row_version;  /* catalog */
} SourceGot;

/* All of it, in memory. E8010, E8012 (what cannot be proved), E8001 and E8002 (catalog). */
ABX_FN bool source_fetch(const SourceRef *ref, const SourceHost *host, Arena *a, SourceGot *out, Err *err) ABX_CHECK;

/* A URL or source as it may be shown: without userinfo (a bare user of ssh
 * stays), without control characters, with a NUL behind it. */
ABX_FN Str source_shown(Str source, Arena *a);

#endif
