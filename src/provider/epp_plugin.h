/* epp_plugin.h - one plugin: what it may do, its process, and the way to a
 * sandbox through it. What the files epp*.c share.
 *
 *     if (!epp_plugin_open(e, EPP_GATE_GET, d, err)) return false;
 *     JsonOut *w = epp_plugin_begin(e, "sandbox.get", id);
 *     if (!epp_plugin_call(e, d, &result, err)) ...
 */
#ifndef ABX_EPP_PLUGIN_H
#define ABX_EPP_PLUGIN_H

#include "provider/epp.h"
#include "provider/epp_call.h"

enum { EPP_KNOWN = 32 };

typedef struct Epp {
    Provider     base;
    ProviderKind kind;          /* its own: features are the manifest's */
    Arena        own;           /* copies of the spec and the settings; wiped at the end */
    EppSpec      spec;
    Settings     settings;
    EppVoice     voice;
    EppCalls     calls;
    unsigned     era;           /* counts its processes */
    bool         running;       /* there is a conversation, be it a failed one */
    bool         failed;        /* it could not be started: */
    Err          failure;
    Strs      features;      /* effective: the manifest's, and those that it declared itself, too */
    bool         no_connect;    /* it said that it has no such method */
    bool         feeds;         /* it knows "stdin" in exec.start */
    char        *known[EPP_KNOWN];      /* sandboxes that this process has seen: it was connected to them */
    size_t       known_next;
    char        *cursor;        /* of the next page of a list, */
    int          cursor_page;   /* which is this one */
    size_t       listed;        /* bytes of the pages before */
} Epp;

/* What a person asks for (4.12). */
typedef enum EppGate {
    EPP_GATE_CREATE, EPP_GATE_LIST, EPP_GATE_GET, EPP_GATE_KILL, EPP_GATE_TIMEOUT, EPP_GATE_PAUSE, EPP_GATE_RESUME,
    EPP_GATE_PORT, EPP_GATE_EXEC, EPP_GATE_READ, EPP_GATE_WRITE, EPP_GATE_LIST_FILES, EPP_GATE_STAT, EPP_GATE_REMOVE,
    EPP_GATE_MOVE, EPP_GATE_PROCESSES,
} EppGate;

/* E8004, naming the operation or the feature; nothing is started for it. */
ABX_FN bool epp_plugin_can(const Epp *e, EppGate gate, Err *err) ABX_CHECK;
ABX_FN bool epp_plugin_has(const Epp *e, const char *feature);      /* effective */

/* May it, and is it running? A process that failed stays failed. */
ABX_FN bool epp_plugin_open(Epp *e, EppGate gate, Deadline d, Err *err) ABX_CHECK;

/* The same, and it knows the sandbox: connected to it before its first use in
 * this process, as the other hosts do for every command. */
ABX_FN bool epp_plugin_attach(Epp *e, EppGate gate, Str id, Deadline d, Err *err) ABX_CHECK;
ABX_FN void epp_plugin_know(Epp *e, Str id);
ABX_FN void epp_plugin_unknow(Epp *e, Str id);

/* A process that has not failed and is not late, if need be another one. */
ABX_FN bool epp_plugin_fresh(Epp *e, Deadline d, Err *err) ABX_CHECK;
ABX_FN void epp_plugin_stop(Epp *e);

ABX_FN JsonOut *epp_plugin_begin(Epp *e, const char *method, Str sandbox);
/* At most call_ms, within d. */
ABX_FN bool epp_plugin_call(Epp *e, Deadline d, const Json **result, Err *err) ABX_CHECK;

/* In the texts of requests there is no place for other bytes: E8002. */
ABX_FN bool epp_plugin_utf8(Str s, const char *what, Err *err) ABX_CHECK;

/* sandbox.get, or sandbox.connect where there is no such method, and the other
 * way round; E8005 becomes E2009. */
ABX_FN bool epp_plugin_get(Epp *e, Str id, bool connect, Arena *a, SandboxInfo *out, Deadline d, Err *err) ABX_CHECK;

/* A missing sandbox has its own code. Returns false. */
ABX_FN bool epp_plugin_gone(Str id, Err *err);

#endif
