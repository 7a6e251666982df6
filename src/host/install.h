/* install.h - putting plugins in, changing and removing them (specification,
 * section 3), in the exact order of its checks.
 *
 * The person is asked through a callback, so nothing here prints or reads.
 *
 * Memory: results in the arena.
 */
#ifndef ABX_INSTALL_H
#define ABX_INSTALL_H

#include "host/source.h"
#include "host/store.h"

/* What a person is asked, and what a change would mean (3.5, "plan keys"). */
typedef struct InstallPlan {
    const Manifest *manifest;
    ReceiptSource   source;
    Str             tree_sha256;
    ReceiptTrust    trust;
    Str             commit;             /* git: what would be pinned */
    const Str      *changes;            /* aspects that differ from the old receipt */
    size_t          change_count;
    const Receipt  *old;                /* NULL: nothing is replaced */
} InstallPlan;

/* The plan as the JSON document of 3.5. */
ABX_FN void install_plan(const InstallPlan *p, JsonOut *w);

typedef struct InstallHost {
    SourceHost source;
    /* Returns true for yes. NULL: nobody can be asked, which is a no. */
    bool     (*consent)(void *ctx, const InstallPlan *plan);
    void      *consent_ctx;
    /* Runs the plugin once (3.7), inside the lock; false: the installed, integrity
     * or handshake check failed, with the reason. NULL: no verification. */
    bool     (*verify)(void *ctx, Str id, Err *err);
    void      *verify_ctx;
} InstallHost;

typedef struct InstallAsk {
    SourceAsk source;
    Str       sha256;                   /* p NULL: not given */
    bool      link, force, yes, allow_unpinned;
} InstallAsk;

typedef struct Installed {
    Str  id, version;
    Buf  receipt;                       /* as `install --json` prints it: a JSON object, no line feed; buf_free() */
} Installed;

ABX_FN bool install_add(const Store *s, const InstallAsk *ask, const InstallHost *host, Arena *a, Installed *out,
                        Err *err) ABX_CHECK;

typedef struct UpdateAsk {
    Str  ref;                           /* p NULL: not given */
    bool check, yes, allow_unpinned, allow_insecure, allow_unverified;
} UpdateAsk;

typedef struct Updated {
    Str        id, installed, available;    /* available p NULL: null */
    const Str *changes;
    size_t     change_count;
    Str        status;                  /* bundled, pinned, up-to-date, available, updated */
    Str        message;                 /* p NULL: none */
    const Json *receipt;                /* catalog, updated; NULL: none */
} Updated;

ABX_FN bool install_update(const Store *s, Str id, const UpdateAsk *ask, const InstallHost *host, Arena *a,
                           Updated *out, Err *err) ABX_CHECK;

/* 3.11 without the settings, which are settings.h's. E8003, E8001, E8010. */
ABX_FN bool install_remove(const Store *s, Str id, bool purge, int cancel_fd, Err *err) ABX_CHECK;

/* Back to the tree before the last change; verified like an install. */
ABX_FN bool install_rollback(const Store *s, Str id, const InstallHost *host, Arena *a, Installed *out, Err *err) ABX_CHECK;

#endif
