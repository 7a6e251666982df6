#include "cli/cmd_about.h"

#include <stdio.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/topics.h"
#include "data/json.h"

/* ---- version ---- */

static void cmd_about__field(JsonOut *w, const char *key, const char *value)
{
    json_key(w, key);
    json_put_str(w, str_from(value));
}

int cmd_about_version(Run *r)
{
    const abx_build *b = abx_build_info();
    Buf text = buf_make(LIMIT_ERROR_BODY);

    if (r->out.json) {
        JsonOut w = json_out(&text, JSON_PRETTY);
        json_begin(&w, '{');
        cmd_about__field(&w, "version", b->version);
        json_key(&w, "output_version");
        json_put_int(&w, b->output_version);
        cmd_about__field(&w, "commit", b->commit);
        cmd_about__field(&w, "tls", b->tls);
        cmd_about__field(&w, "zlib", b->zlib);
        cmd_about__field(&w, "libc", b->libc);
        cmd_about__field(&w, "target", b->target);
        cmd_about__field(&w, "ca_date", b->ca_date);
        json_end(&w, '}');
        buf_addc(&text, '\n');
    } else {
        buf_addf(&text, "abx %s\ncommit: %s\ntls: %s\nzlib: %s\nlibc: %s\ntarget: %s\nca_date: %s\n", b->version,
                 b->commit, b->tls, b->zlib, b->libc, b->target, b->ca_date);
    }
    int status = run_result(r, buf_str(&text));
    buf_free(&text);
    return status;
}

/* ---- help ---- */

enum { CMD_ABOUT_COLUMN = 30, CMD_ABOUT_WIDTH = 80 };

/* "  head    text", the text broken into lines behind the column. */
static void cmd_about__entry(Buf *to, Str head, const char *text)
{
    Str rest = str_from(text);

    buf_addf(to, "  %.*s", STR_ARG(head));
    size_t at = 2 + head.n;
    if (at + 2 > CMD_ABOUT_COLUMN) {
        buf_addc(to, '\n');
        at = 0;
    }
    while (rest.n) {
        size_t room = CMD_ABOUT_WIDTH - CMD_ABOUT_COLUMN, n = rest.n;
        if (n > room)
            for (n = room; n > 0 && rest.p[n] != ' '; n--)
                ;
        buf_addf(to, "%*s%.*s\n", (int)(CMD_ABOUT_COLUMN - at), "", (int)n, rest.p);
        str_skip(&rest, n < rest.n ? n + 1 : n);
        at = 0;
    }
}

static void cmd_about__options(Buf *to, Arena *a, const ArgOption *options, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const ArgOption *o = &options[i];
        Str head = o->letter ? arena_fmt(a, "-%c, --%s", o->letter, o->name) : arena_fmt(a, "    --%s", o->name);
        if (o->alias)
            head = arena_fmt(a, "%.*s, --%s", STR_ARG(head), o->alias);
        if (o->value)
            head = arena_fmt(a, "%.*s %s", STR_ARG(head), o->value);
        cmd_about__entry(to, head, o->help);
    }
}

static void cmd_about__commands(Buf *to, Arena *a, const ArgTable *table, const char *noun)
{
    for (size_t i = 0; i < table->command_count; i++) {
        const ArgCommand *c = &table->commands[i];
        if (noun && strcmp(c->noun, noun) != 0)
            continue;
        Str head = arena_fmt(a, "abx %s%s%s", c->noun, *c->noun ? " " : "", c->verb);
        if (c->alias)
            head = arena_fmt(a, "%.*s, %s", STR_ARG(head), c->alias);
        cmd_about__entry(to, head, c->summary);
    }
}

/* A page, if there is such a one, with `head` in front. */
static void cmd_about__page(Buf *to, const char *head, char kind, const char *noun, const char *verb)
{
    Buf pages;
    Str text = topics_page(kind, noun, verb, &pages);

    if (text.n) {
        buf_add(to, str_from(head));
        buf_add(to, text);
    }
    buf_free(&pages);
}

static void cmd_about__command(Buf *to, Arena *a, const ArgTable *table, const ArgCommand *c)
{
    buf_addf(to, "%s\n\nUsage: %.*s\n", c->summary, STR_ARG(args_usage(c, a)));
    cmd_about__page(to, "\nExamples:\n", '$', c->noun, c->verb);
    cmd_about__page(to, "\n", '=', c->noun, c->verb);
    if (c->option_count) {
        buf_add(to, STR("\nOptions:\n"));
        cmd_about__options(to, a, c->options, c->option_count);
    }
    if (*c->noun && args_command(table, NULL, c->verb) == c)
        buf_addf(to, "\n`abx %s` is short for this.", c->verb);
    buf_add(to, STR("\n`abx help` lists the global options.\n"));
}

static void cmd_about__noun(Buf *to, Arena *a, const ArgTable *table, const char *noun)
{
    buf_addf(to, "Usage: abx %s VERB [options] [--] [arguments]\n", noun);
    cmd_about__page(to, "\nExamples:\n", '$', noun, "");
    buf_add(to, STR("\nCommands:\n"));
    cmd_about__commands(to, a, table, noun);
    buf_addf(to, "\n`abx help %s VERB` says more.\n", noun);
}

static void cmd_about__all(Buf *to, Arena *a, const ArgTable *table)
{
    size_t       count;
    const Topic *topics = topics_all(&count);

    buf_add(to, STR("abx - code sandboxes on any backend\n\n"
                    "Usage: abx [global options] NOUN VERB [options] [--] [arguments]\n"
                    "A verb of `sandbox` or `file` needs no noun, where it says so: `abx exec` is\n"
                    "`abx sandbox exec`.\n\n"
                    "Examples:\n"
                    "  abx --provider opensandbox create --timeout 10m\n"
                    "  abx --provider opensandbox exec ID python3 -c 'print(6 * 7)'\n"
                    "  abx --provider opensandbox kill ID\n\n"
                    "Commands:\n"));
    cmd_about__commands(to, a, table, NULL);
    buf_add(to, STR("\nGlobal options, in front of the verb or behind it:\n"));
    cmd_about__options(to, a, table->globals, table->global_count);
    buf_add(to, STR("\nTopics:\n"));
    for (size_t i = 0; i < count; i++)
        cmd_about__entry(to, arena_fmt(a, "abx help %s", topics[i].name), topics[i].summary);
}

void cmd_about_text(const Run *r, Buf *to)
{
    const Args *args = r->args;

    if (args->command)
        cmd_about__command(to, r->a, args->table, args->command);
    else if (args->noun)
        cmd_about__noun(to, r->a, args->table, args->noun);
    else
        cmd_about__all(to, r->a, args->table);
}

int cmd_about_print(const Run *r, Str text)
{
    if (!r->out.json)
        return run_result(r, text);
    Buf     document = buf_make(6 * LIMIT_ERROR_BODY);
    JsonOut w = json_out(&document, JSON_PRETTY);
    json_begin(&w, '{');
    json_key(&w, "help");
    json_put_str(&w, text);
    json_end(&w, '}');
    buf_addc(&document, '\n');
    int status = run_result(r, buf_str(&document));
    buf_free(&document);
    return status;
}

/* `abx help NOUN VERB`, `abx help VERB`, `abx help NOUN`, `abx help TOPIC`. */
static bool cmd_about__find(const Run *r, Buf *to, Err *err)
{
    const Args     *args = r->args;
    const ArgTable *table = args->table;
    const char     *one = args->words[0], *two = args->word_count > 1 ? args->words[1] : NULL;

    const ArgCommand *c = two ? args_command(table, one, two) : args_command(table, NULL, one);
    if (c)
        cmd_about__command(to, r->a, table, c);
    else if (!two && topics_has(one))
        cmd_about__page(to, "", '=', "", one);
    else if (!two && args_is_noun(table, one))
        cmd_about__noun(to, r->a, table, one);
    else {
        err_set(err, ERR_USAGE, E8002, "There is no help on '%s%s%s'", one, two ? " " : "", two ? two : "");
        return err_hint(err, "`abx help` lists commands and topics.");
    }
    return true;
}

int cmd_about_help(Run *r)
{
    Buf text = buf_make(LIMIT_ERROR_BODY);
    ABX_UNSET Err err;
    int status;

    if (r->args->word_count == 0)
        cmd_about__all(&text, r->a, r->args->table);
    else if (!cmd_about__find(r, &text, &err)) {
        buf_free(&text);
        return run_fail_own(r, &err);
    }
    status = cmd_about_print(r, buf_str(&text));
    buf_free(&text);
    return status;
}

int cmd_about_agent(Run *r)
{
    ABX_UNSET Err err;

    err_set(&err, ERR_USAGE, E8002, "No option goes in front of 'agent'");
    err_hint(&err, "`abx agent` lists what it takes.");
    return run_fail_own(r, &err);
}
