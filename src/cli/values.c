#include "cli/values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/utf8.h"
#include "os/poll.h"

bool values_duration(const char *what, const char *text, int64_t *ms, Err *err)
{
    if (strcmp(text, "none") == 0) {
        *ms = -1;
        return true;
    }
    int64_t v;
    if (!num_duration(str_from(text), &v)) {
        err_set(err, ERR_USAGE, E8002, "%s: '%s' is no length of time", what, text);
        return err_hint(err, "Write seconds, or such as 30s, 5m, 1h30m, or `none`.");
    }
    if (v == 0) {
        err_set(err, ERR_USAGE, E8002, "%s: it must be more than zero", what);
        return err_hint(err, "`none` means that there is no limit.");
    }
    *ms = v;
    return true;
}

bool values_seconds(const char *what, const char *text, int64_t *s, Err *err)
{
    int64_t ms;

    if (!values_duration(what, text, &ms, err))
        return false;
    *s = ms < 0 ? -1 : ms / 1000 + (ms % 1000 != 0);
    return true;
}

bool values_number(const char *what, const char *text, int64_t low, int64_t high, int64_t *out, Err *err)
{
    int64_t v;

    if (!num_i64(str_from(text), &v) || v < low || v > high) {
        if (high == INT64_MAX)
            return err_set(err, ERR_USAGE, E8002, "%s: '%s' is no number from %lld on", what, text, (long long)low);
        return err_set(err, ERR_USAGE, E8002, "%s: '%s' is no number from %lld to %lld", what, text, (long long)low,
                       (long long)high);
    }
    *out = v;
    return true;
}

/* Cut "KEY=VALUE"; *value is NULL without a '='. */
static bool values__pair(const char *option, const char *text, Arena *a, abx_pair *out, Err *err)
{
    Str    all = str_from(text);
    size_t cut = str_find(all, '=');

    if (cut == 0 || all.n == 0)
        return err_set(err, ERR_USAGE, E8002, "--%s: nothing stands before the '='", option);
    out->key = arena_cstr(a, (Str){text, cut});
    out->value = cut < all.n ? text + cut + 1 : NULL;
    return true;
}

bool values_pairs(const Args *args, const char *option, Arena *a, ValuesPairs *out, Err *err)
{
    const char *const *given;
    size_t    n = args_list(args, option, a, &given);
    abx_pair *pairs = arena_array(a, n + 1, sizeof *pairs);

    for (size_t i = 0; i < n; i++) {
        if (!values__pair(option, given[i], a, &pairs[i], err))
            return false;
        if (!pairs[i].value)
            return err_set(err, ERR_USAGE, E8002, "--%s: '%s' is not KEY=VALUE", option, given[i]);
    }
    *out = (ValuesPairs){pairs, n};
    return true;
}

static bool values__is_secret(const char *key)
{
    static const char *const tails[] = {"key", "token", "secret", "password"};

    for (size_t i = 0; i < COUNT_OF(tails); i++)
        if (str_ends(str_from(key), str_from(tails[i])))
            return true;
    return false;
}

/* All of a descriptor into text, whose limit is one byte more than may come. */
static bool values__drain(int fd, int cancel_fd, const char *what, const char *name, Buf *text, Err *err)
{
    size_t most = text->limit - 1;
    char  *room = buf_room(text, most + 1);

    while (text->n <= most) {
        if (!poll_one(fd, POLLIN, cancel_fd, DEADLINE_NONE, err))
            return false;
        ssize_t n = read(fd, room + text->n, most + 1 - text->n);
        if (n == 0)
            return true;
        if (n > 0)
            buf_grew(text, (size_t)n);
        else if (errno != EINTR && errno != EAGAIN)
            return err_sys(err, errno, E8002, "%s: cannot read %s", what, name);
    }
    return err_set(err, ERR_LIMIT, E8002, "%s: %s holds more than %zu bytes", what, name, most);
}

/* Its text, without the line end that editors and echo leave. */
static bool values__read(int fd, int cancel_fd, const char *what, const char *name, Arena *a, const char **out,
                         Err *err)
{
    Buf  text = buf_make(LIMIT_SETTING + 1);
    bool ok = values__drain(fd, cancel_fd, what, name, &text, err);
    Str  all = str_trim(buf_str(&text));

    if (ok && (str_has(all, '\0') || !utf8_valid(all)))
        ok = err_set(err, ERR_INPUT, E8002, "%s: %s is no text", what, name);
    if (ok)
        *out = arena_cstr(a, all);
    mem_wipe(text.p, text.n);
    buf_free(&text);
    return ok;
}

/* Not to wait for a writer of a named pipe where no signal is seen. */
static int values__open(const char *path, const char *what, Err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        err_sys(err, errno, E8002, "%s: cannot open %s", what, path);
    return fd;
}

static bool values__from_file(const char *path, int cancel_fd, const char *what, Arena *a, const char **out,
                              Err *err)
{
    int fd = values__open(path, what, err);

    if (fd < 0)
        return false;
    bool ok = values__read(fd, cancel_fd, what, path, a, out, err);
    close(fd);
    return ok;
}

bool values_take_input(const Args *args, Arena *a)
{
    const char *const *given;

    for (size_t i = args_list(args, "option", a, &given); i > 0; i--)
        if (str_ends(str_from(given[i - 1]), STR("=-")))
            return true;
    return false;
}

bool values_settings(const Args *args, int cancel_fd, Arena *a, ValuesSettings *out, Err *err)
{
    const char *const *given;
    size_t    n = args_list(args, "option", a, &given);
    abx_pair *pairs = arena_array(a, n + 1, sizeof *pairs);
    const char **exposed = arena_array(a, n, sizeof *exposed);
    size_t    exposed_count = 0;
    bool      input = false;

    for (size_t i = 0; i < n; i++) {
        abx_pair *p = &pairs[i];
        if (!values__pair("option", given[i], a, p, err))
            return false;
        if (!p->value)
            return err_set(err, ERR_USAGE, E8002, "--option: '%s' is not KEY=VALUE", given[i]);
        if (strcmp(p->value, "-") == 0) {
            if (input)
                return err_set(err, ERR_USAGE, E8002, "--option: only one setting can be read from standard input");
            input = true;
            if (!values__read(STDIN_FILENO, cancel_fd, "--option", "standard input", a, &p->value, err))
                return false;
        } else if (p->value[0] == '@') {
            if (!values__from_file(p->value + 1, cancel_fd, "--option", a, &p->value, err))
                return false;
        } else if (values__is_secret(p->key)) {
            err_set(err, ERR_USAGE, E8002, "--option: %s is a secret, and a command line can be read by others", p->key);
            return err_hint(err, "Write %s=@FILE, or %s=- for standard input, or set it in the environment.", p->key,
                            p->key);
        } else {
            exposed[exposed_count++] = p->key;
        }
    }
    *out = (ValuesSettings){pairs, n, exposed, exposed_count};
    return true;
}

bool values_given(const char *what, const char *word, int cancel_fd, Arena *a, const char **out, bool *exposed, Err *err)
{
    *exposed = false;
    if (strcmp(word, "-") == 0)
        return values__read(STDIN_FILENO, cancel_fd, what, "standard input", a, out, err);
    if (word[0] == '@')
        return values__from_file(word + 1, cancel_fd, what, a, out, err);
    *exposed = true;
    *out = word;
    return true;
}

/* ---- variables ---- */

typedef struct ValuesEnv {
    Arena    *a;
    abx_pair *v;
    size_t    n;
} ValuesEnv;

/* "NAME=VALUE", or "NAME". `where`: what the line belongs to, for messages. Of a
 * name given twice the last counts. */
static bool values__variable(ValuesEnv *e, const char *where, const char *text, Err *err)
{
    size_t      cut = str_find(str_from(text), '='), i = 0;
    const char *key = arena_cstr(e->a, (Str){text, cut}), *value = text[cut] ? text + cut + 1 : getenv(key);

    if (cut == 0)
        return err_set(err, ERR_USAGE, E8002, "%s: nothing stands before the '='", where);
    if (!value) {
        err_set(err, ERR_USAGE, E8002, "%s: %s is not set in the environment of abx", where, key);
        return err_hint(err, "Write NAME=VALUE, or set it; NAME= is an empty value.");
    }
    if (!utf8_valid(str_from(value)))
        return err_set(err, ERR_USAGE, E8002, "%s: the value of %s is not UTF-8", where, key);
    while (i < e->n && strcmp(e->v[i].key, key) != 0)
        i++;
    if (i == LIMIT_AGENT_ENV)
        return err_set(err, ERR_LIMIT, E8002, "%s: more than %d variables are given", where, LIMIT_AGENT_ENV);
    e->v[i] = (abx_pair){key, value};
    e->n += i == e->n;
    return true;
}

static bool values__env_line(ValuesEnv *e, const char *where, Str line, Err *err)
{
    if (str_has(line, '\0') || !utf8_valid(line))
        return err_set(err, ERR_USAGE, E8002, "%s: it is no text", where);
    if (str_ends(line, STR("\r")))
        line.n--;
    while (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
        str_skip(&line, 1);
    if (line.n == 0 || line.p[0] == '#')
        return true;
    Str key = {line.p, str_find(line, '=')};
    if (str_has(key, ' ') || str_has(key, '\t')) {
        err_set(err, ERR_USAGE, E8002, "%s: there is a blank in the name of the variable", where);
        return err_hint(err, "A line is NAME=VALUE, taken as it is: no quotes, no `export`.");
    }
    return values__variable(e, where, arena_cstr(e->a, line), err);
}

static bool values__env_text(ValuesEnv *e, const char *path, Str text, Err *err)
{
    if (str_starts(text, STR("\xef\xbb\xbf")))
        str_skip(&text, 3);
    for (size_t number = 1; text.n; number++) {
        Str line = {text.p, str_find(text, '\n')};
        if (!values__env_line(e, arena_fmt(e->a, "--env-file: %s:%zu", path, number).p, line, err))
            return false;
        str_skip(&text, line.n < text.n ? line.n + 1 : line.n);
    }
    return true;
}

static bool values__env_file(ValuesEnv *e, const char *path, int cancel_fd, Err *err)
{
    int fd = values__open(path, "--env-file", err);
    Buf text = buf_make(LIMIT_ENV_FILE + 1);

    if (fd < 0)
        return false;
    bool ok = values__drain(fd, cancel_fd, "--env-file", path, &text, err) && values__env_text(e, path, buf_str(&text), err);
    close(fd);
    mem_wipe(text.p, text.n);
    buf_free(&text);
    return ok;
}

bool values_env(const Args *args, int cancel_fd, Arena *a, ValuesPairs *out, Err *err)
{
    const char *const *files, *const *given;
    size_t    file_count = args_list(args, "env-file", a, &files), n = args_list(args, "env", a, &given);
    ValuesEnv e = {.a = a};

    *out = (ValuesPairs){0};
    if (file_count + n == 0)
        return true;
    e.v = arena_array(a, LIMIT_AGENT_ENV, sizeof *e.v);
    for (size_t i = 0; i < file_count; i++)
        if (!values__env_file(&e, files[i], cancel_fd, err))
            return false;
    for (size_t i = 0; i < n; i++)
        if (!values__variable(&e, "--env", given[i], err))
            return false;
    *out = (ValuesPairs){e.v, e.n};
    return true;
}
