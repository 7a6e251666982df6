#include "cli/cmd_plugin.h"

#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/screen.h"
#include "data/json.h"
#include "serve/export.h"
#include "serve/kit.h"
#include "serve/serve.h"

static void cmd_plugin__string(JsonOut *w, const char *key, const char *value)
{
    json_key(w, key);
    json_put_str(w, str_from(value));
}

int cmd_plugin_serve(Run *r)
{
    ABX_UNSET Err err;

    if (serve_run(r->args->words[0], STDIN_FILENO, STDOUT_FILENO, r->out.cancel_fd, &err))
        return 0;
    return run_fail_told(r, &err);
}

int cmd_plugin_export(Run *r)
{
    const char *id = r->args->words[0], *dir = r->args->words[1];
    char        version[32] = "";
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_can_print(&e))
        return run_fail(r, &e);
    if (!export_write(id, dir, "/proc/self/exe", version, &err))
        return run_fail_own(r, &err);
    Buf text = buf_make(LIMIT_ERROR_BODY);
    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        cmd_plugin__string(&w, "id", id);
        cmd_plugin__string(&w, "version", version);
        cmd_plugin__string(&w, "path", dir);
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else if (!r->out.quiet) {
        buf_addf(&text, "%s %s: %.*s\n", id, version, STR_ARG(screen_line(r->a, str_from(dir), false)));
    }
    int status = run_result(r, buf_str(&text));
    buf_free(&text);
    return status;
}

/* ---- test ---- */

typedef struct CmdPluginTests {
    Run    *run;
    Buf     text;
    JsonOut json;
    bool    ok;         /* what was said so far could be printed */
    Err     err;
} CmdPluginTests;

static void cmd_plugin__tested(void *ctx, const KitResult *k)
{
    CmdPluginTests *t = ctx;
    Arena           scratch = *t->run->a;

    if (t->run->out.json) {
        json_begin(&t->json, '{');
        cmd_plugin__string(&t->json, "name", k->name);
        cmd_plugin__string(&t->json, "outcome", kit_word(k->outcome));
        cmd_plugin__string(&t->json, "detail", k->detail);
        json_end(&t->json, '}');
        return;
    }
    if (t->run->out.quiet && k->outcome != KIT_FAILED)
        return;
    Str detail = screen_line(&scratch, str_from(k->detail), t->run->out.out_terminal);
    Str line = arena_fmt(&scratch, "%-7s %s%s%.*s\n", kit_word(k->outcome), k->name, detail.n ? ": " : "", STR_ARG(detail));
    t->ok = t->ok && output_bytes(&t->run->out, STDOUT_FILENO, line, &t->err);
}

int cmd_plugin_test(Run *r)
{
    CmdPluginTests t = {.run = r, .text = buf_make(LIMIT_DOCUMENT), .ok = true};
    const char    *id = r->args->words[0];
    KitCount       n;
    abx_options    o;
    ABX_UNSET abx_error e;
    ABX_UNSET Err err;

    if (!run_options(r, &o, &err))
        return run_fail_own(r, &err);
    if (!run_can_print(&e))
        return run_fail(r, &e);
    t.json = json_out(&t.text, JSON_PRETTY);
    if (r->out.json) {
        json_begin(&t.json, '{');
        cmd_plugin__string(&t.json, "id", id);
        json_key(&t.json, "tests");
        json_begin(&t.json, '[');
    }
    if (!kit_run(&o, id, cmd_plugin__tested, &t, &n, &e)) {
        buf_free(&t.text);
        return run_fail(r, &e);
    }
    if (r->out.json) {
        json_end(&t.json, ']');
        for (KitOutcome i = KIT_PASSED; i <= KIT_SKIPPED; i++) {
            json_key(&t.json, kit_word(i));
            json_put_int(&t.json, n.of[i]);
        }
        json_end(&t.json, '}');
        buf_addc(&t.text, '\n');
    } else {
        buf_addf(&t.text, "%d passed, %d failed, %d skipped\n", n.of[KIT_PASSED], n.of[KIT_FAILED], n.of[KIT_SKIPPED]);
    }
    int status = t.ok ? run_result(r, buf_str(&t.text)) : run_fail_own(r, &t.err);
    buf_free(&t.text);
    return status ? status : n.of[KIT_FAILED] > 0;
}
