#include "cli/cmd_forward.h"

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/document.h"

#include <stdio.h>

/* ---- words ---- */

/* What stands behind the last colon, and is cut off; all, where there is none. */
static Str cmd_forward__last(Str *s)
{
    Str last = *s;

    for (size_t i = s->n; i-- > 0;)
        if (s->p[i] == ':') {
            last = (Str){s->p + i + 1, s->n - i - 1};
            *s = (Str){s->p, i};
            return last;
        }
    *s = (Str){0};
    return last;
}

static bool cmd_forward__number(Str s, int least, int *out)
{
    uint64_t v;

    if (!num_u64(s, &v) || v > UINT16_MAX || v < (uint64_t)least)
        return false;
    *out = (int)v;
    return true;
}

/* [ADDRESS:]LOCAL:REMOTE, :REMOTE, or PORT for both. */
static bool cmd_forward__port(const char *word, const char *address, Arena *a, abx_forward_port *p, Err *err)
{
    Str  s = str_from(word), remote = cmd_forward__last(&s);
    bool one = !s.p, good = cmd_forward__number(remote, 1, &p->remote);

    p->address = address;
    p->local = one ? p->remote : 0;
    if (!one && s.n) {
        Str local = cmd_forward__last(&s);
        good = good && (local.n == 0 || cmd_forward__number(local, 0, &p->local));
        if (s.p) {
            if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
                s = (Str){s.p + 1, s.n - 2};
            good = good && s.n;
            p->address = arena_cstr(a, s);
        }
    }
    if (p->address && strcmp(p->address, "localhost") == 0)
        p->address = NULL;
    return good || err_set(err, ERR_USAGE, E8002, "\"%s\" is not LOCAL:REMOTE, with ports of 1 to 65535", word);
}

/* ---- what is said ---- */

static void cmd_forward__event(void *ctx, const abx_forward_event *ev)
{
    Run *r = ctx;
    ABX_UNSET char line[512];

    if (ev->kind != ABX_FORWARD_REFUSED && !r->out.verbose)
        return;
    if (ev->kind == ABX_FORWARD_REFUSED)
        snprintf(line, sizeof line, "port %d in the sandbox: %s", ev->remote, ev->reason);
    else
        snprintf(line, sizeof line, "%d -> %d: %s%s%s", ev->local, ev->remote,
                 ev->kind == ABX_FORWARD_OPENED ? "open" : "closed", ev->reason ? ": " : "", ev->reason ? ev->reason : "");
    output_notice(&r->out, line);
}

static bool cmd_forward__listening(Run *r, const abx_forward *f, const abx_forward_port *ports, size_t n, Err *err)
{
    Buf  text = buf_make(LIMIT_ERROR_BODY);
    bool ok = true;

    for (size_t i = 0; i < n && ok; i++) {
        const char *at = ports[i].address ? ports[i].address : "127.0.0.1";
        bool        six = strchr(at, ':') != NULL;
        const char *local = arena_fmt(r->a, "%s%s%s:%d", six ? "[" : "", at, six ? "]" : "", abx_forward_local(f, i)).p;
        buf_clear(&text);
        if (r->out.json) {
            JsonOut w = json_out(&text, JSON_SPACED);
            json_begin(&w, '{');
            document_string(&w, "local", local);
            json_key(&w, "remote");
            json_put_int(&w, ports[i].remote);
            json_end(&w, '}');
            buf_addc(&text, '\n');
        } else {
            buf_addf(&text, "%s -> %d\n", local, ports[i].remote);
        }
        ok = output_result(&r->out, buf_str(&text), err);
    }
    buf_free(&text);
    return ok;
}

int cmd_forward_run(Run *r)
{
    size_t            n = r->args->word_count - 1;
    abx_forward_port *ports = arena_array(r->a, n, sizeof *ports);
    abx_sandbox      *box = NULL;
    abx_forward      *f = NULL;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;
    int               status;

    for (size_t i = 0; i < n; i++)
        if (!cmd_forward__port(r->args->words[i + 1], args_value(r->args, "address"), r->a, &ports[i], &err))
            return run_fail_own(r, &err);
    if ((box = run_attach(r, &e)))
        f = abx_forward_open(box, &(abx_forward_options){ports, n, cmd_forward__event, r}, &e);
    if (f && !cmd_forward__listening(r, f, ports, n, &err)) {
        status = run_fail_own(r, &err);
    } else {
        while (f && abx_forward_step(f, 1, &e) == 0)
            continue;
        status = run_stopped(r, &e);
    }
    abx_forward_close(f);
    abx_sandbox_free(box);
    return status;
}
