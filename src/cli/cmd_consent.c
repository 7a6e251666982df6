#include "cli/cmd_consent.h"

#include <errno.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/screen.h"
#include "data/json.h"
#include "os/poll.h"
#include "os/tty.h"

enum { CMD_CONSENT_ANSWER = 256 };      /* what is looked at of an answer */

typedef struct CmdConsent {
    Arena *a;
    Buf    text;
    bool   by_hash;     /* --sha256 was given; it holds, or nobody would be asked */
} CmdConsent;

/* "  label        text": what comes from outside is on one line, harmless. */
static void cmd_consent__row(CmdConsent *c, const char *label, Str text)
{
    Arena scratch = *c->a;

    if (!text.n)
        return;
    buf_addf(&c->text, "  %-12s ", label);
    buf_add(&c->text, screen_line(&scratch, text, true));
    buf_addc(&c->text, '\n');
}

/* One behind the other, whole: a "%.*s" of STR_ARG() ends after 4096 bytes, and
 * what a person agrees to must not have an end that is not shown. */
static Str cmd_consent__join(CmdConsent *c, const Str *parts, size_t n)
{
    Buf b = buf_make(2 * LIMIT_CONSENT);

    for (size_t i = 0; i < n; i++)
        buf_add(&b, parts[i]);
    Str out = arena_str(c->a, buf_str(&b));
    buf_free(&b);
    return out;
}
#define CMD_CONSENT_JOIN(c, ...) \
    cmd_consent__join((c), (const Str[]){__VA_ARGS__}, sizeof (Str[]){__VA_ARGS__} / sizeof (Str))

/* Words behind a comma, or, of a command line, behind a blank and quoted where
 * they could be mistaken for two. */
static Str cmd_consent__words(CmdConsent *c, abx_strings s, bool command)
{
    Buf b = buf_make(LIMIT_CONSENT);

    for (size_t i = 0; i < s.n; i++) {
        Str  word = str_from(s.v[i]);
        bool quote = command && (!word.n || str_has(word, ' ') || str_has(word, '\t') || str_has(word, '"'));
        buf_add(&b, i == 0 ? STR("") : command ? STR(" ") : STR(", "));
        buf_add(&b, quote ? STR("\"") : STR(""));
        buf_add(&b, word);
        buf_add(&b, quote ? STR("\"") : STR(""));
    }
    Str out = arena_str(c->a, buf_str(&b));
    buf_free(&b);
    return out;
}

/* ---- where it comes from, and what that proves ---- */

static void cmd_consent__origin(CmdConsent *c, const abx_plan *p)
{
    const abx_source *s = &p->source;
    bool git = strcmp(s->type, "git") == 0;
    bool pinned = strcmp(p->trust, "pinned") == 0;

    if (s->path)
        cmd_consent__row(c, "from", str_from(s->path));
    if (git)
        cmd_consent__row(c, "from", s->subdir ? arena_fmt(c->a, "%s, folder %s", s->url, s->subdir) : str_from(s->url));
    if (s->registry)
        cmd_consent__row(c, "from", arena_fmt(c->a, "%s of the catalog %s", s->id, s->registry));
    if (git && s->commit)
        cmd_consent__row(c, "commit", str_from(s->commit));
    if (*p->tree_sha256)
        cmd_consent__row(c, "tree_sha256", str_from(p->tree_sha256));
    if (strcmp(p->trust, "link") == 0)
        cmd_consent__row(c, "trust", STR("link: nothing is copied and nothing checked; what lies there when it starts is "
                                         "what runs"));
    else if (pinned && c->by_hash)
        cmd_consent__row(c, "trust", STR("pinned: every byte is what --sha256 says"));
    else if (pinned)
        cmd_consent__row(c, "trust", arena_fmt(c->a, "pinned: every byte is proved to be of that commit. It is not proved that "
                                               "the commit belongs to a branch of that repository, and the proof is as strong "
                                               "as %s; tree_sha256 with --sha256 is the strong pin",
                                               s->commit && strlen(s->commit) == 64 ? "SHA-256" : "SHA-1"));
    else if (git)
        cmd_consent__row(c, "trust", arena_fmt(c->a, "unpinned: %s is that commit today and can be another tomorrow; to pin "
                                               "it, --ref and the commit", s->ref ? s->ref : "HEAD"));
    else if (s->registry)
        cmd_consent__row(c, "trust", STR("local: the archive is the one that the catalog names"));
    else
        cmd_consent__row(c, "trust", STR("local: the files as they are now, recorded by tree_sha256"));
}

/* ---- what it may do ---- */

static Str cmd_consent__fields(CmdConsent *c, const abx_plan *p, bool secret)
{
    Buf b = buf_make(LIMIT_CONSENT);

    for (size_t i = 0; i < p->field_count; i++) {
        const abx_field *f = &p->fields[i];
        if ((f->secret != 0) != secret)
            continue;
        buf_addf(&b, "%s%s (%s", b.n ? ", " : "", f->key, f->variable);
        for (size_t k = 0; k < f->aliases.n; k++)
            buf_addf(&b, ", %s", f->aliases.v[k]);
        buf_addc(&b, ')');
    }
    Str out = arena_str(c->a, buf_str(&b));
    buf_free(&b);
    return out;
}

static Str cmd_consent__said(CmdConsent *c, const char *head, abx_strings s)
{
    return CMD_CONSENT_JOIN(c, str_from(head), cmd_consent__words(c, s, false));
}

static void cmd_consent__rights(CmdConsent *c, const abx_plan *p)
{
    Str command = cmd_consent__words(c, p->runtime, true);

    cmd_consent__row(c, "runs", CMD_CONSENT_JOIN(c, command, STR(" (kind "), str_from(p->kind), STR(")")));
    cmd_consent__row(c, "", STR("with your rights: its environment and its folder are its own, but nothing confines it"));
    cmd_consent__row(c, "it says", p->filesystem.n ? cmd_consent__said(c, "it reads ", p->filesystem)
                                                   : STR("it reads no files"));
    cmd_consent__row(c, "", p->network.n ? cmd_consent__said(c, "it reaches ", p->network)
                                         : STR("it reaches nothing on the network"));
    cmd_consent__row(c, "", p->spawns_processes ? STR("it starts processes of its own")
                                                : STR("it starts no processes of its own"));
    cmd_consent__row(c, "variables", cmd_consent__words(c, p->env_passthrough, false));
    cmd_consent__row(c, "settings", cmd_consent__fields(c, p, false));
    cmd_consent__row(c, "secrets", cmd_consent__fields(c, p, true));
    cmd_consent__row(c, "inherits", cmd_consent__words(c, p->inherit, false));
    for (size_t i = 0; i < p->inherit.n; i++)
        if (strcmp(p->inherit.v[i], "sandbox_api_key") == 0)
            cmd_consent__row(c, "", STR("sandbox_api_key is abx's own key: it is handed to this plugin"));
    cmd_consent__row(c, "features", cmd_consent__words(c, p->features, false));
    for (size_t i = 0; i < p->command_count; i++)
        cmd_consent__row(c, i ? "" : "commands",
                         arena_fmt(c->a, "%s (%s): %s", p->commands[i].id, p->commands[i].effect, p->commands[i].description));
}

/* ---- what changed ---- */

/* A value of a summary as a word: of a field its key, of a command its id. */
static Str cmd_consent__word(CmdConsent *c, const Json *v)
{
    const Json *name = v->type != JSON_OBJECT ? v : json_get(v, "key") ? json_get(v, "key") : json_get(v, "id");
    Buf         b = buf_make(LIMIT_CONSENT);
    JsonOut     w = json_out(&b, JSON_COMPACT);

    if (name && name->type == JSON_STRING)
        buf_add(&b, name->text);
    else
        json_put(&w, v);
    Str out = arena_str(c->a, buf_str(&b));
    buf_free(&b);
    return out;
}

static bool cmd_consent__holds(CmdConsent *c, const Json *list, Str word)
{
    for (size_t i = 0; i < json_count(list); i++)
        if (str_eq(cmd_consent__word(c, &list->items[i]), word))
            return true;
    return false;
}

/* The words of `of` that `than` has not, each behind the sign. */
static void cmd_consent__more(CmdConsent *c, const Json *of, const Json *than, char sign, Buf *to)
{
    for (size_t i = 0; i < json_count(of); i++) {
        Str word = cmd_consent__word(c, &of->items[i]);
        if (cmd_consent__holds(c, than, word))
            continue;
        buf_addf(to, "%s%c", to->n ? ", " : "", sign);
        buf_add(to, word);
    }
}

static bool cmd_consent__is_list(const Json *v)
{
    return !v || v->type == JSON_ARRAY || v->type == JSON_NULL;
}

static void cmd_consent__change(CmdConsent *c, Str what, const Json *was, const Json *is)
{
    Buf b = buf_make(4 * LIMIT_CONSENT);

    if (is && is->type == JSON_OBJECT) {
        for (size_t i = 0; i < is->count; i++)
            cmd_consent__change(c, arena_fmt(c->a, "%.*s.%.*s", STR_ARG(what), STR_ARG(is->keys[i])),
                                json_get(was, is->keys[i].p), &is->items[i]);
        buf_free(&b);
        return;
    }
    if (cmd_consent__is_list(was) && cmd_consent__is_list(is) && !str_eq(what, STR("runtime"))) {
        cmd_consent__more(c, is, was, '+', &b);
        cmd_consent__more(c, was, is, '-', &b);
    } else {
        Str before = was ? cmd_consent__word(c, was) : STR("nothing");
        Str now = is ? cmd_consent__word(c, is) : STR("nothing");
        if (!str_eq(before, now))
            buf_add(&b, CMD_CONSENT_JOIN(c, before, STR(" -> "), now));
    }
    if (b.n)
        cmd_consent__row(c, "", CMD_CONSENT_JOIN(c, what, STR(": "), buf_str(&b)));
    buf_free(&b);
}

static void cmd_consent__changes(CmdConsent *c, const abx_plan *p)
{
    const Json *was, *is;
    ABX_UNSET Err err;

    if (!p->old_receipt)
        return;
    cmd_consent__row(c, "changes", p->changes.n ? cmd_consent__words(c, p->changes, false)
                                                : STR("its files only; nothing of what was agreed to"));
    if (!json_parse(str_from(p->old_receipt), c->a, &was, &err) || !json_parse(str_from(p->json), c->a, &is, &err))
        return;
    for (size_t i = 0; i < p->changes.n; i++)
        cmd_consent__change(c, str_from(p->changes.v[i]), json_get(json_get(was, "consented"), p->changes.v[i]),
                            json_get(is, p->changes.v[i]));
}

/* ---- asking ---- */

static void cmd_consent__show(CmdConsent *c, const abx_plan *p)
{
    Str title = p->old_version
        ? arena_fmt(c->a, "Replace %s %s (%s) by %s", p->id, p->old_version, p->old_trust, p->version)
        : arena_fmt(c->a, "Install %s %s: %s", p->id, p->version, p->name);

    buf_add(&c->text, screen_line(c->a, title, true));
    buf_addc(&c->text, '\n');
    cmd_consent__origin(c, p);
    cmd_consent__rights(c, p);
    cmd_consent__changes(c, p);
}

/* A line that was typed; false where none came. */
static bool cmd_consent__answer(const Run *r, Str *out)
{
    char *line = arena_alloc(r->a, CMD_CONSENT_ANSWER);
    ABX_UNSET Err err;

    while (poll_one(STDIN_FILENO, POLLIN, r->out.cancel_fd, DEADLINE_NONE, &err)) {
        ssize_t n = read(STDIN_FILENO, line, CMD_CONSENT_ANSWER);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        *out = str_trim((Str){line, n > 0 ? (size_t)n : 0});
        return n > 0;
    }
    return false;
}

int cmd_consent_ask(void *ctx, const abx_plan *plan)
{
    Run       *r = ctx;
    Arena      a = arena_make(ARENA_COMMAND);
    CmdConsent c = {.a = &a, .text = buf_make(LIMIT_DOCUMENT),
                    .by_hash = strcmp(r->args->command->verb, "install") == 0 && args_value(r->args, "sha256")};
    Str        answer = STR("");

    if (r->out.json)
        buf_addf(&c.text, "%s\n", plan->json);
    else
        cmd_consent__show(&c, plan);
    output_say(&r->out, buf_str(&c.text));
    if (tty_is(STDIN_FILENO) && !args_flag(r->args, "no-input")) {
        output_say(&r->out, STR("Install this provider? [y/N] "));
        if (!cmd_consent__answer(r, &answer))
            output_say(&r->out, STR("\n"));
    }
    buf_free(&c.text);
    arena_free(&a);
    return str_eq_nocase(answer, STR("y")) || str_eq_nocase(answer, STR("yes"));
}
