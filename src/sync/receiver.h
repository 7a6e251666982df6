/* receiver.h - the stream of a copy (sync/item.h) becomes files of this machine,
 * each of them whole or not at all, and none outside the target.
 *
 *     Receiver *r = receiver_open(&rq);
 *     while (...) if (!receiver_feed(r, bytes, err)) ...
 *     if (!receiver_end(r, err)) ...
 *     receiver_close(r);
 *
 * or, for who has no stream, entry by entry with receiver_folder(), _link(),
 * _file(), _bytes(), _whole(). Both are held to the same rules: what comes is
 * hostile. A name that no honest sender gives, one out of order, a second one, a
 * file below what came as a link or as a file, a stream that was cut, end it
 * with ERR_INPUT E8020.
 *
 * Where things go, T the target (the rules of `cp -R`):
 *
 *     what comes        T is a folder    T is a file       T is nothing       T/ is nothing
 *     one file          T/NAME           replaced          T                  T/NAME
 *     one folder        T/NAME           refused, E4000    T                  T/NAME
 *     "." (DIR/.)       into T           refused           into T             into T
 *     several           T/NAME each      refused           refused, E4001     T/NAME each
 *
 * With `resume` one folder goes to T as well where an interrupted copy left T (sync/nest.h).
 *
 * T itself may be a link, and is followed, unless it leads nowhere (E4001); below it nothing is. What is
 * neither file nor folder is not replaced. Missing folders above T are made. "." may come among
 * several, and more than once.
 *
 * A file goes to a name that nobody knows, in its own folder, until its size and its hash are right, and
 * is renamed. What is there already: a file is replaced by a file or a link, a link by either; a folder
 * stays with its mode, and never becomes something else, nor does anything become a folder: that is
 * ITEM_FAILED (EISDIR, ENOTDIR, ELOOP for a link in place of a folder), and the rest goes on. So is a
 * folder in which nothing can be made (EACCES; with `resume` what is new in it), what the file system does not take, such as a name
 * (ENAMETOOLONG), and folders deeper than LIMIT_SYNC_DEPTH (ELOOP). What is in a folder that failed is
 * passed over without a word. A full disk or quota, and too many descriptors, end the copy (ERR_SYSTEM
 * E4000; sys is the errno).
 *
 * New folders have mode 01700 until all that belongs into them is there (sync/nest.h). Modes are the
 * sender's, without set-id and sticky bits, whatever the umask. Owner and times are those of who writes.
 *
 * Memory: names of the open folders and LIMIT_SYNC_DEPTH descriptors;
 * receiver_close(), which also removes what is not whole, but for a partial file
 * that `resume` keeps.
 */
#ifndef ABX_RECEIVER_H
#define ABX_RECEIVER_H

#include "sync/item.h"

typedef struct ReceiverRequest {
    const char *target;         /* the caller keeps it */
    bool        several;        /* several roots will come */
    /* May one of this name come? A sender that is not to be trusted says a name that nobody asked for, .bashrc. NULL: any may. */
    bool      (*root)(void *ctx, Str name);
    bool        resume;         /* a partial file goes by a name that is found again (sync/draft.h), and is kept.
                                   ITEM_FAILED EBUSY: somebody else is writing it */
    int64_t     lasting;        /* a file of so many bytes, or more, is on the disk before it is renamed; 0: none */
    /* ITEM_DONE for each entry that is there now, ITEM_FAILED for one that is not (the sender's too), ITEM_KEPT,
     * ITEM_TOTAL, and ITEM_END with how many files were written, and how much of them came. `path` is the entry's
     * name in the copy. NULL: nobody listens. */
    void (*item)(void *ctx, const Item *i);
    void (*moved)(void *ctx, int64_t bytes);    /* so many bytes of files came since the last call; NULL */
    void *ctx;
} ReceiverRequest;

typedef struct Receiver Receiver;

ABX_FN Receiver *receiver_open(const ReceiverRequest *rq);
ABX_FN void      receiver_close(Receiver *r);               /* NULL is fine */

/* Bytes of a stream, cut anywhere. */
ABX_FN bool receiver_feed(Receiver *r, Str bytes, Err *err) ABX_CHECK;
/* No more come, in either way: closes folders and gives ITEM_END. False: ERR_INPUT E8020, a stream that was cut. */
ABX_FN bool receiver_end(Receiver *r, Err *err) ABX_CHECK;

/* Entry by entry, in the stream's order; paths as in the stream. What was refused
 * alone (ITEM_FAILED) is true; false ends the copy. */
ABX_FN bool receiver_folder(Receiver *r, Str path, unsigned mode, Err *err) ABX_CHECK;
ABX_SET bool receiver_link(Receiver *r, Str path, Str target, Err *err) ABX_CHECK;
ABX_FN bool receiver_file(Receiver *r, Str path, unsigned mode, int64_t size, Err *err) ABX_CHECK;    /* size -1: not known */
ABX_FN bool receiver_bytes(Receiver *r, Str bytes, Err *err) ABX_CHECK;
/* The file's content is there. `hash` NULL: nobody knows it. A wrong size or hash is ITEM_FAILED, EIO. */
ABX_FN bool receiver_whole(Receiver *r, const unsigned char hash[SHA256_SIZE], Err *err) ABX_CHECK;
/* It could not be read where it comes from; also in place of an entry, or of a folder that is open. */
ABX_FN bool receiver_failed(Receiver *r, Str path, int sys, Err *err) ABX_CHECK;

#endif
