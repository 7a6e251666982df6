/* store.h - HOME/providers: the installed plugins (specification, 1.1 to 1.5).
 *
 *     Store s = store_make(home, &a);
 *     StoreLock lock;
 *     if (!store_lock(&s, cancel_fd, &lock, err)) ...
 *     store_put(...), store_remove(...), store_back(...)
 *     store_unlock(&lock);
 *
 * Crash-safe: whenever the process or the machine stops, a plugin is the old
 * one or the new one, whole, with its receipt and its data. Changes are renames
 * within the store; what a change left behind lies in .staging and .trash and
 * goes, when it is older than 300 s, with the lock held. Before a change counts
 * the file system is flushed once (syncfs).
 *
 * Memory: paths in the arena of store_make().
 */
#ifndef ABX_STORE_H
#define ABX_STORE_H

#include "host/receipt.h"
#include "host/tree.h"
#include "os/clock.h"

typedef struct Store {
    Str    home;                /* ~/.abx, or ABX_HOME */
    Str    root;                /* home/providers */
    Arena *a;
} Store;

ABX_FN Store store_make(Str home, Arena *a);
ABX_FN const char *store_path(const Store *s, Str id, const char *name);    /* root/id, or root/id/name when name is not NULL */

/* Ids of what is installed, sorted (1.1): *ids in the arena. Nothing there is
 * an empty list; a store that cannot be read is E8010. */
ABX_FN bool store_ids(const Store *s, const Str **ids, size_t *n, Err *err) ABX_CHECK;

/* The receipt of an installed plugin. False: not installed. */
ABX_FN bool store_receipt(const Store *s, Str id, Arena *a, Receipt *out);

/* Where the files of a plugin are: its folder in the store, or where a link points. */
ABX_FN const char *store_files(const Store *s, const Receipt *r);

/* The folder `data`, made with mode 0700, absolute. */
ABX_FN bool store_data(const Store *s, Str id, const char **path, Err *err) ABX_CHECK;

/* 1.4: E8001 not installed, E8011 changed; a link passes. */
ABX_FN bool store_check(const Store *s, Str id, Err *err) ABX_CHECK;

typedef struct StoreLock { char *path; char *text; int64_t renewed; } StoreLock;

/* 1.5, with row 19: up to 10 s. E8010: somebody else works. ERR_CANCELLED.
 * Sweeps .staging and .trash. */
ABX_FN bool store_lock(const Store *s, int cancel_fd, StoreLock *out, Err *err) ABX_CHECK;
ABX_FN void store_renew(StoreLock *l);          /* call now and then in long work: its time is renewed */
ABX_FN void store_unlock(StoreLock *l);

/* A change that can be taken back until it is kept. */
typedef struct StoreChange { char *id, *trash, *final; bool had; } StoreChange;

/* Put a tree (NULL: a link) with its receipt in place of what is there (3.6, 1
 * to 4). `data` moves along. With the lock held. */
ABX_FN bool store_put(const Store *s, Str id, const Tree *t, Str receipt, StoreChange *out, Err *err) ABX_CHECK;
ABX_FN bool store_undo(const Store *s, StoreChange *c, Err *err) ABX_CHECK;     /* 3.6, 5 */
ABX_FN void store_keep(const Store *s, StoreChange *c);     /* the old tree becomes .previous/<id>, for rollback */

/* The tree before the last change, receipt included. False: E8001, there is
 * none; E8011, it is not what its receipt says. */
ABX_FN bool store_rollback(const Store *s, Str id, StoreChange *out, Err *err) ABX_CHECK;

/* 3.11, 5: without purge `data` stays. Also removes .previous/<id>. */
ABX_FN bool store_remove(const Store *s, Str id, bool purge, Err *err) ABX_CHECK;

/* Rewrite the receipt alone, if it is still `old` (3.8, catalog). */
ABX_FN bool store_rewrite(const Store *s, Str id, Str old, Str receipt, Err *err) ABX_CHECK;

#endif
