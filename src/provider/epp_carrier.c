#include "provider/epp_carrier.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "provider/epp_exec.h"
#include "provider/epp_file.h"

enum { EPP_CARRIER_FEED = 1 << 20 };    /* in one process.stdin: on a slow way what counts is how few they are */

typedef enum EppCarrierTarget { EPP_CARRIER_UNKNOWN, EPP_CARRIER_PROCESS_ID, EPP_CARRIER_PID } EppCarrierTarget;

typedef struct EppCarrier {
    Carrier  base;
    Epp     *plugin;
    char    *sandbox;
    EppWait  wait;              /* of the process.stdin */
    bool     waiting;           /* that was not answered yet, */
    unsigned era;               /* by this process of the plugin */
    bool     taken;             /* one was answered well: it is fed by the right name */
    bool     failed;            /* it cannot be fed: */
    Err      failure;
    EppCarrierTarget target;
} EppCarrier;

static EppCarrier *epp_carrier__of(Carrier *c)
{
    return (EppCarrier *)c;
}

static bool epp_carrier__open(Provider *p, Str id, Carrier **out, Deadline d, Err *err)
{
    Epp *e = (Epp *)p;

    if (!epp_plugin_can(e, EPP_GATE_WRITE, err) || !epp_plugin_attach(e, EPP_GATE_EXEC, id, d, err))
        return false;
    if (!epp_plugin_has(e, "exec.stream") || !epp_plugin_can(e, EPP_GATE_WRITE, err))
        return err_set(err, ERR_REMOTE, E8004, "provider %.*s does not declare exec.stream and files.rw",
                       STR_ARG(e->spec.id));
    EppCarrier *c = mem_new(sizeof *c);
    *c = (EppCarrier){.base = {epp_carrier_ops()}, .plugin = e, .sandbox = mem_str(id)};
    *out = &c->base;
    return true;
}

static void epp_carrier__close(Carrier *carrier)
{
    EppCarrier *c = epp_carrier__of(carrier);

    if (c->waiting && c->era == c->plugin->era)
        epp_call_forget(&c->plugin->calls, &c->wait, false);
    mem_free(c->sandbox);
    mem_free(c);
}

/* What is to be ended with us must notice that we are gone: it has an input even
 * where nothing will be said in it. */
static bool epp_carrier__line(Carrier *carrier, Str line, const Pair *env, size_t n, bool input, ExecCall **out, Deadline d,
                              Err *err)
{
    EppCarrier *c = epp_carrier__of(carrier);
    ExecRequest rq = {.argv = &line, .argc = 1, .env = env, .env_count = n, .open_stdin = true};

    (void)input;
    return epp_exec_start(&c->plugin->base, str_from(c->sandbox), &rq, out, d, err);
}

static bool epp_carrier__put(Carrier *carrier, Str path, Source src, Deadline d, Err *err)
{
    EppCarrier *c = epp_carrier__of(carrier);
    int64_t     size;

    return epp_file_write(&c->plugin->base, str_from(c->sandbox), path, 0755, src, &size, d, err);
}

/* ---- input ---- */

static bool epp_carrier__feeds(const Carrier *carrier, bool wanted)
{
    const Epp *e = ((const EppCarrier *)carrier)->plugin;

    return e->feeds || (wanted && epp_plugin_has(e, "process.manage"));
}

static Step epp_carrier__no_input(EppCarrier *c, const char *why, Err *err)
{
    err_set(&c->failure, ERR_REMOTE, E8004, "provider %.*s cannot feed a command: %s", STR_ARG(c->plugin->spec.id), why);
    c->failed = true;
    *err = c->failure;
    return STEP_ERR;
}

/* By which name is it known? Where the list fails there is still the other one. */
static void epp_carrier__find(EppCarrier *c, const ExecCall *x, uint32_t pid)
{
    Arena       a = arena_make(ARENA_COMMAND);
    ProcessList all = {0};
    uint64_t    number;
    ABX_UNSET Err none;

    c->target = EPP_CARRIER_PROCESS_ID;
    if (!epp_exec_fed(x) && epp_file_processes(&c->plugin->base, str_from(c->sandbox), &a, &all, clock_after(LIMIT_CALL_MS), &none))
        for (size_t i = 0; i < all.count; i++)
            if (num_u64(all.items[i].pid, &number) && number == pid)
                c->target = EPP_CARRIER_PID;
    arena_free(&a);
}

/* What became of the one before. What was started and cannot be fed is ended. */
static Step epp_carrier__answer(EppCarrier *c, ExecCall *x, Err *err)
{
    const Json *result;
    ABX_UNSET Err why;
    EppCalls   *calls = &c->plugin->calls;
    Step        step = epp_call_poll(calls, &c->wait, &result, &why);

    /* Who only writes must hear it, too. */
    if (step == STEP_MORE && !epp_link_turn(&calls->link, -1, 0, &why))
        step = epp_call_poll(calls, &c->wait, &result, &why);
    if (step == STEP_MORE)
        return step;
    epp_call_forget(&c->plugin->calls, &c->wait, false);
    c->waiting = false;
    if (step == STEP_DONE)
        c->taken = true;
    else if (c->taken || c->plugin->calls.link.failed)
        *err = why;
    else
        (void)(epp_carrier__no_input(c, why.text, err) && x->ops->kill(x, clock_after(LIMIT_CLEANUP_MS), &why));
    return step;
}

static Step epp_carrier__feed(Carrier *carrier, ExecCall *x, uint32_t pid, Str bytes, Err *err)
{
    EppCarrier *c = epp_carrier__of(carrier);

    if (!epp_exec_lives(x) || (c->waiting && c->era != c->plugin->era)) {
        err_set(err, ERR_CLOSED, E8021, "the plugin that ran the command was ended");
        return STEP_ERR;
    }
    if (c->failed) {
        *err = c->failure;
        return STEP_ERR;
    }
    if (c->waiting) {
        Step step = epp_carrier__answer(c, x, err);
        if (step != STEP_DONE)
            return step;
    }
    if (!bytes.n)
        return STEP_DONE;
    if (c->target == EPP_CARRIER_UNKNOWN)
        epp_carrier__find(c, x, pid);
    JsonOut *w = epp_plugin_begin(c->plugin, "process.stdin", str_from(c->sandbox));
    json_key(w, "pid");
    if (c->target == EPP_CARRIER_PID)
        json_put_int(w, pid);
    else
        epp_exec_put_id(x, w);
    json_key(w, "data");
    json_put_str(w, bytes);
    if (!epp_call_send(&c->plugin->calls, &c->wait, clock_after(c->plugin->spec.call_ms), err))
        return STEP_ERR;
    c->waiting = true;
    c->era = c->plugin->era;
    return STEP_DONE;
}

const CarrierOps *epp_carrier_ops(void)
{
    static const CarrierOps ops = {
        .open = epp_carrier__open, .close = epp_carrier__close, .line = epp_carrier__line, .put = epp_carrier__put,
        .feed = epp_carrier__feed, .feed_bytes = EPP_CARRIER_FEED, .feeds = epp_carrier__feeds,
    };

    return &ops;
}
