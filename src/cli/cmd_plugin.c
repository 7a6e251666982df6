#include "cli/cmd_plugin.h"

#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/document.h"
#include "cli/screen.h"
#include "serve/export.h"
#include "serve/serve.h"

int cmd_plugin_serve(Run *r)
{
    Err err;

    if (serve_run(r->args->words[0], STDIN_FILENO, STDOUT_FILENO, r->out.cancel_fd, &err))
        return 0;
    return run_fail_told(r, &err);
}

int cmd_plugin_export(Run *r)
{
    const char *id = r->args->words[0], *dir = r->args->words[1];
    char        version[32] = "";
    abx_error   e;
    Err         err;

    if (!run_can_print(&e))
        return run_fail(r, &e);
    if (!export_write(id, dir, "/proc/self/exe", version, &err))
        return run_fail_own(r, &err);
    Buf text = buf_make(LIMIT_ERROR_BODY);
    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        json_key(&w, "id");
        json_put_str(&w, str_from(id));
        json_key(&w, "version");
        json_put_str(&w, str_from(version));
        json_key(&w, "path");
        json_put_str(&w, str_from(dir));
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else if (!r->out.quiet) {
        buf_addf(&text, "%s %s: %.*s\n", id, version, STR_ARG(screen_line(r->a, str_from(dir), false)));
    }
    int status = run_result(r, buf_str(&text));
    buf_free(&text);
    return status;
}
