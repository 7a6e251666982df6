/* target.h - where a copy goes: the table in sync/receiver.h, as a folder that
 * is open and perhaps a name in it.
 *
 * Memory: one descriptor and a name; target_close().
 */
#ifndef ABX_TARGET_H
#define ABX_TARGET_H

#include "base/err.h"

typedef enum TargetKind {
    TARGET_FILE,                /* one file, or one link, comes */
    TARGET_FOLDER,              /* one folder */
    TARGET_INSIDE,              /* what is in a folder: "." */
    TARGET_SEVERAL,
} TargetKind;

typedef struct Target {
    int   fd;                   /* good for the *at() calls alone; -1: none */
    char *name;                 /* what the one thing is called in it; NULL: by its own name */
} Target;

/* A folder that an interrupted copy was making (sync/receiver.h): for one that
 * resumes it is what one folder becomes, and none to copy it into. Somebody may
 * have given a folder of his own that mode, so for any other copy it is one. */
ABX_FN bool target_making(const char *path);

/* Makes the folders that are missing above it. False: E4000, E4001, E4002. */
ABX_FN bool target_open(const char *path, TargetKind kind, bool resume, Target *out, Err *err) ABX_CHECK;
ABX_FN void target_close(Target *t);

#endif
