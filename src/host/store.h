/* store.h - HOME/providers: the installed plugins (specification, 1.1 to 1.5).
 *
 *     Store s = store_make(home, &a);
 *     StoreLock lock;
 *     StoreChange change;
 *     if (!store_lock(&s, cancel_fd, &lock, err)) ...
 *     if (store_put(&lock, id, &tree, receipt, &change, err)) {
 *         if (good) store_keep(&lock, &change); else store_undo(&lock, &change, err);
 *     }
 *     store_unlock(&lock);
 *
 * Crash-safe: whenever the process or the machine stops, a plugin is the old
 * one or the new one, whole, with its receipt and its data, for every host that
 * reads the store, at that instant and without repair:
 *
 *   - a tree is written beside the store's plugins, flushed (one syncfs for all
 *     of it), and then exchanged with the old one by renameat2(RENAME_EXCHANGE);
 *   - the folder `data` cannot move in the same instant. So the new tree has a
 *     link `data` that leads to the old tree's folder from the place where that
 *     is about to be, and after the exchange the link and the folder change
 *     places. Both hosts' digests pass over it. (Who walks a path while the
 *     exchange happens between two of its names can miss `data` once; it is there
 *     when it looks again.)
 *
 * Where a file system has no exchange, the old tree is first renamed to
 * .trash/.swap-ID. A crash right there leaves no plugin: the next one who takes
 * the lock, and any abx that looks for the plugin, puts it back first.
 *
 * What is abx's own, and passed over by the other hosts: .previous/ID, the tree
 * before the last change; .files/ID-DIGEST, the hash of each file of a tree;
 * .lock-abx-* (os/lock.h). What is to be deleted is first renamed to
 * .trash/.gone-*. Leftovers in .staging and .trash go when they are older than
 * 300 s, with the lock held; data that another host's crash left there is put
 * back, and never deleted.
 *
 * Memory: paths in the arena of store_make().
 */
#ifndef ABX_STORE_H
#define ABX_STORE_H

#include "host/listing.h"
#include "host/receipt.h"
#include "host/tree.h"
#include "os/lock.h"

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

/* The receipt of an installed plugin, with the id that it is installed under.
 * False: not installed. */
ABX_FN bool store_receipt(const Store *s, Str id, Arena *a, Receipt *out);

/* There is something under this id, installed or not (data that was kept). */
ABX_FN bool store_has(const Store *s, Str id);

/* Where the files of a plugin are: its folder in the store, or where a link points. */
ABX_FN const char *store_files(const Store *s, const Receipt *r);

/* The folder `data`, made with mode 0700, absolute. */
ABX_FN bool store_data(const Store *s, Str id, const char **path, Err *err) ABX_CHECK;

/* 1.4: E8001 not installed, E8011 changed; a link passes. */
ABX_FN bool store_check(const Store *s, Str id, Err *err) ABX_CHECK;

/* ---- changing, with the lock held ---- */

typedef struct StoreLock {
    const Store *store;
    int          root;
    Lock         lock;
} StoreLock;

/* 1.5, with row 19: up to 10 s. E8010: somebody else works. ERR_CANCELLED.
 * Makes the folders, puts right what a crash left, and sweeps. */
ABX_FN bool store_lock(const Store *s, int cancel_fd, StoreLock *out, Err *err) ABX_CHECK;
ABX_FN bool store_renew(StoreLock *l, int64_t ahead_ms, Err *err) ABX_CHECK;   /* see lock_renew() */
ABX_FN void store_unlock(StoreLock *l);

/* A change that can be taken back until it is kept. */
typedef struct StoreChange {
    const char *id;
    const char *old;            /* where the tree is that was there before, under root; NULL: there was none */
    bool        rollback;
} StoreChange;

/* Put a tree (NULL: a link) with its receipt in place of what is there (3.6, 1
 * to 4). `data` moves along. False: E8010, and nothing has changed. */
ABX_FN bool store_put(StoreLock *l, Str id, const Tree *t, Str receipt, StoreChange *out, Err *err) ABX_CHECK;

/* Put the tree before the last change in place, receipt included; the one that
 * was there becomes the previous one. False: E8001, there is none; E8011, it is
 * not what its receipt says. */
ABX_FN bool store_rollback(StoreLock *l, Str id, StoreChange *out, Err *err) ABX_CHECK;

/* 3.6, 5. False: E8010, and where everything lies now. */
ABX_FN bool store_undo(StoreLock *l, StoreChange *c, Err *err) ABX_CHECK;

/* The old tree becomes .previous/ID, without its data. */
ABX_FN void store_keep(StoreLock *l, StoreChange *c);

/* 3.11, 5: without purge `data` stays. Also removes .previous/ID. */
ABX_FN bool store_remove(StoreLock *l, Str id, bool purge, Err *err) ABX_CHECK;

/* Replace the receipt alone, if it is still `old` (3.8, catalog). */
ABX_FN bool store_rewrite(StoreLock *l, Str id, Str old, Str receipt, Err *err) ABX_CHECK;

/* ---- what differs ---- */

typedef struct StoreVerdict {
    bool link;                  /* nothing to compare */
    bool same;
    bool listed;                /* who installed it left a list of its files, so these are known: */
    const ListingDiff *v;
    size_t n;
} StoreVerdict;

/* Compare the tree with its receipt, file by file where abx installed it.
 * False: E8001; E8011 for what cannot be hashed (a link in it). */
ABX_FN bool store_verify(const Store *s, Str id, Arena *a, StoreVerdict *out, Err *err) ABX_CHECK;

#endif
