/* install.h - putting plugins in, changing and removing them (specification,
 * section 3), in the exact order of its checks.
 *
 * The person is asked through a callback, so nothing here prints or reads.
 * Nothing of a plugin is run before its tree is in place; then `verify` runs
 * it, with the lock held, and what fails there is taken back.
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
    const Json     *consented;          /* the manifest's summary, as the receipt will hold it */
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
    Str       sha256;                   /* of the tree; p NULL: not given */
    bool      link, force, yes, allow_unpinned;
} InstallAsk;

typedef struct Installed {
    Str  id, version;
    Buf  receipt;                       /* as `install --json` prints it: a JSON object, no line feed; buf_free() */
} Installed;

/* False, in the order of 3.4: E8001, E8002, E8010, E8012, E8014, E8013, E8011,
 * E8003. The store is as it was then. */
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
    const Json *receipt;                /* catalog, updated: in the order in which it is printed; NULL: none */
} Updated;

/* 3.8. False: E8010, E8001, E8012, E8013, E8014, E8002. */
ABX_FN bool install_update(const Store *s, Str id, const UpdateAsk *ask, const InstallHost *host, Arena *a,
                           Updated *out, Err *err) ABX_CHECK;

/* 3.11 without the settings, which are settings.h's. E8003, E8001, E8010. */
ABX_FN bool install_remove(const Store *s, Str id, bool purge, int cancel_fd, Err *err) ABX_CHECK;

/* Back to the tree before the last change, without its data; verified like an
 * install. E8001, E8011, E8010. */
ABX_FN bool install_rollback(const Store *s, Str id, const InstallHost *host, Arena *a, Installed *out, Err *err) ABX_CHECK;

#endif
