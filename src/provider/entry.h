/* entry.h - what lies at a path in a sandbox, through an execd.
 *
 * A path means exactly its bytes; one that is not absolute is taken from `/`,
 * where the daemon lives. The stock daemon reads `$` in a path as a variable
 * and cannot answer about names with control characters, refuses to move onto
 * a file, and calls removing what is not there a success: what it does not do
 * to the letter is done by a command with quoted words, for any POSIX shell
 * with the tools of busybox. Links are looked at, moved and removed, never
 * followed; a folder that is listed may be reached by one.
 *
 * A name that is not UTF-8 is listed with U+FFFD in it and cannot be named:
 * JSON, which the daemon speaks, has no other characters. The stock daemon
 * tells no bits of a mode above 0777.
 */
#ifndef ABX_ENTRY_H
#define ABX_ENTRY_H

#include "provider/execd.h"

/* For transfer.c, which puts files at such places. */

enum {
    ENTRY_MISSING = 20,             /* our commands' exit statuses: there is nothing, */
    ENTRY_IS_FOLDER = 21,           /* a folder where none may be, */
    ENTRY_NO_FOLDER = 22,           /* or none where one must be */
    ENTRY_PATH = 4096,              /* Linux's PATH_MAX, its NUL included */
};

typedef struct Entry {
    bool     there;
    FileType type;
    int      mode;                  /* -1: not known */
    int64_t  size;
    Str      owner;                 /* "name:group", or empty */
    Str      modified;              /* as in FileInfo */
} Entry;

/* The daemon would read the path otherwise: it is for commands only. */
ABX_FN bool entry_is_hard(Str path);

/* Says so: E4000, sys EISDIR. Returns false. */
ABX_FN bool entry_is_folder(Str path, Err *err);

/* The path as it is used: absolute, no slash at its end. False: E8002, which
 * is also said of a slash at the end where a file must be named. */
ABX_FN bool entry_path(Str path, bool folder_ok, Arena *a, Str *out, Err *err);

ABX_FN Str entry_quoted(Str word, Arena *a);
ABX_FN Str entry_folder(Str path);      /* of a used path: what it lies in */

/* Run a command of ours that has to succeed. `what` is it in words ("write")
 * for errors, which name the path. */
ABX_FN bool entry_run(Execd *x, Str line, const char *what, Str path, Str *out, Arena *a, Deadline d, Err *err);

/* Nothing there is no failure. */
ABX_FN bool entry_look(Execd *x, Str path, Entry *out, Arena *a, Deadline d, Err *err);

/* See the functions of these names in provider.h (file_stat, file_list,
 * folder_make, file_move, file_remove). A move makes missing folders and
 * refuses to put anything onto a folder. */
ABX_FN bool entry_stat(Lifecycle *l, Str id, Str path, Arena *a, FileInfo *out, Deadline d, Err *err);
ABX_FN bool entry_list(Lifecycle *l, Str id, Str path, Arena *a, FileList *out, Deadline d, Err *err);
ABX_FN bool entry_make_folder(Lifecycle *l, Str id, Str path, Deadline d, Err *err);
ABX_FN bool entry_move(Lifecycle *l, Str id, Str from, Str to, Deadline d, Err *err);
ABX_FN bool entry_remove(Lifecycle *l, Str id, Str path, Deadline d, Err *err);

#endif
