#include "cli/cmd_install.h"

#include "base/limits.h"
#include "base/str.h"
#include "cli/cmd_consent.h"
#include "cli/document.h"
#include "cli/screen.h"

/* A receipt, or one line that says what happened. */
static int cmd_install__done(Run *r, const abx_installed *i, const char *verb)
{
    Buf text = buf_make(LIMIT_DOCUMENT);

    if (r->out.json)
        buf_addf(&text, "%s\n", i->receipt);
    else
        buf_addf(&text, "%s %s %.*s\n", verb, i->id, STR_ARG(screen_line(r->a, str_from(i->version), false)));
    return run_end(r, &text);
}

int cmd_install_add(Run *r)
{
    const Args *args = r->args;
    ABX_UNSET abx_error e;
    abx_host   *h = run_host(r, &e);
    const abx_installed *done = NULL;

    if (h && run_can_print(&e))
        done = abx_install(h, &(abx_install_options){
            .source = args->words[0], .ref = args_value(args, "ref"), .subdir = args_value(args, "subdir"),
            .sha256 = args_value(args, "sha256"), .archive_sha256 = args_value(args, "archive-sha256"),
            .link = args_flag(args, "link"), .force = args_flag(args, "force"), .yes = args_flag(args, "yes"),
            .allow_unpinned = args_flag(args, "allow-unpinned"),
            .allow_insecure_transport = args_flag(args, "allow-insecure-transport"),
            .allow_unverified = args_flag(args, "allow-unverified"), .no_verify = args_flag(args, "no-verify"),
            .consent = args_flag(args, "yes") ? NULL : cmd_consent_ask, .consent_ctx = r,
        }, &e);
    return done ? cmd_install__done(r, done, "Installed") : run_fail(r, &e);
}

int cmd_install_rollback(Run *r)
{
    ABX_UNSET abx_error e;
    abx_host   *h = run_host(r, &e);
    const abx_installed *done = NULL;

    if (h && run_can_print(&e))
        done = abx_rollback(h, r->args->words[0], args_flag(r->args, "no-verify"), &e);
    return done ? cmd_install__done(r, done, "Rolled back to") : run_fail(r, &e);
}

/* ---- update ---- */

/* The order of the keys is the other hosts', which is another one where nothing
 * was fetched. */
static void cmd_install__updated(JsonOut *w, const abx_updated *u, Arena scratch)
{
    bool idle = strcmp(u->status, "bundled") == 0 || strcmp(u->status, "pinned") == 0;

    json_begin(w, '{');
    document_string(w, "id", u->id);
    if (idle)
        document_string(w, "status", u->status);
    document_string(w, "installed", u->installed);
    if (u->available) {
        document_string(w, "available", u->available);
    } else {
        json_key(w, "available");
        json_put_null(w);
    }
    document_strings(w, "changes", u->changes);
    if (!idle)
        document_string(w, "status", u->status);
    if (u->message)
        document_string(w, "message", u->message);
    if (u->receipt)
        document_text(w, "receipt", u->receipt, scratch);
    json_end(w, '}');
}

static int cmd_install__print_updates(Run *r, const abx_updated *all, size_t n)
{
    Buf     text = buf_make(LIMIT_DOCUMENT);
    JsonOut w = json_out(&text, JSON_PRETTY);

    if (r->out.json) {
        json_begin(&w, '[');
        for (size_t i = 0; i < n; i++)
            cmd_install__updated(&w, &all[i], *r->a);
        json_end(&w, ']');
        buf_addc(&text, '\n');
    }
    for (size_t i = 0; !r->out.json && i < n; i++)
        buf_addf(&text, "%s: %s%s%s\n", all[i].id, all[i].status, all[i].message ? " \xe2\x80\x94 " : "",
                 all[i].message ? all[i].message : "");
    return run_end(r, &text);
}

int cmd_install_update(Run *r)
{
    const Args *args = r->args;
    ABX_UNSET abx_error e;
    abx_host   *h = run_host(r, &e);
    const abx_updated *all = NULL;
    size_t      n = 0;

    if (h && run_can_print(&e))
        all = abx_update(h, args->word_count ? args->words[0] : NULL, &(abx_update_options){
            .ref = args_value(args, "ref"), .check = args_flag(args, "check"), .yes = args_flag(args, "yes"),
            .allow_unpinned = args_flag(args, "allow-unpinned"),
            .allow_insecure_transport = args_flag(args, "allow-insecure-transport"),
            .allow_unverified = args_flag(args, "allow-unverified"), .no_verify = args_flag(args, "no-verify"),
            .consent = args_flag(args, "yes") ? NULL : cmd_consent_ask, .consent_ctx = r,
        }, &n, &e);
    return all ? cmd_install__print_updates(r, all, n) : run_fail(r, &e);
}

/* ---- uninstall ---- */

int cmd_install_remove(Run *r)
{
    ABX_UNSET abx_error e;
    abx_host *h = run_host(r, &e);
    const abx_uninstalled *u = NULL;

    if (h && run_can_print(&e))
        u = abx_uninstall(h, r->args->words[0], args_flag(r->args, "purge"), &e);
    if (!u)
        return run_fail(r, &e);
    if (u->default_reset && !r->out.quiet)
        output_say(&r->out, STR("Default provider reset to 'alicloud-express'\n"));

    Buf     text = buf_make(LIMIT_ERROR_BODY);
    JsonOut w = json_out(&text, JSON_PRETTY);
    if (r->out.json) {
        json_begin(&w, '{');
        document_string(&w, "id", u->id);
        document_flag(&w, "removed", 1);
        document_flag(&w, "purged", u->purged);
        document_flag(&w, "default_reset", u->default_reset);
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else {
        buf_addf(&text, "Removed %s\n", u->id);
    }
    return run_end(r, &text);
}
