/* plugins.h - what the functions of "provider management" in abx.h share. */
#ifndef ABX_PLUGINS_H
#define ABX_PLUGINS_H

#include "abx.h"
#include "api/session.h"
#include "host/store.h"

struct abx_host {
    abx_options   options;      /* its strings are copies, in `own` */
    Arena         own;
    Arena         result;       /* what the last call gave out */
    Arena         paths;        /* the store's: whoever has a store may hold a copy of another arena */
    SessionNotice notice;
};

/* Forget what was given out; the arena for what comes next. */
ABX_FN Arena *plugins_begin(abx_host *h);

/* Where providers are installed. False: E8010, there is no home folder. */
ABX_FN bool plugins_store(abx_host *h, Store *out, Err *err) ABX_CHECK;

/* The same for looking only: NULL where there is none. */
ABX_FN const Store *plugins_store_or_none(abx_host *h, Store *out);

/* A provider that is installed, with its receipt; ids that cannot be one are
 * none, and so is everything where there is no home folder. */
ABX_FN bool plugins_installed(abx_host *h, Str id, Store *s, Receipt *out);

/* The id that is meant: `id`, or where that is NULL the default provider's. */
ABX_FN bool plugins_id(abx_host *h, const char *id, Str *out, Err *err) ABX_CHECK;

ABX_FN abx_strings plugins_strings(const Str *v, size_t n, Arena *a);
ABX_FN abx_strings plugins_sorted(abx_strings s, Arena *a);        /* a copy, in byte order */

#endif
