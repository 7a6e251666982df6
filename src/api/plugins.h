/* plugins.h - what the functions of "provider management" in abx.h share. */
#ifndef ABX_PLUGINS_H
#define ABX_PLUGINS_H

#include "abx.h"
#include "api/session.h"
#include "base/arena.h"

struct abx_host {
    abx_options   options;      /* its strings are copies, in `own` */
    Arena         own;
    Arena         result;       /* what the last call gave out */
    SessionNotice notice;
};

/* Forget what was given out; the arena for what comes next. */
ABX_FN Arena *plugins_begin(abx_host *h);

#endif
