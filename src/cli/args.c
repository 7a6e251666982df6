#include "cli/args.h"

#include "base/str.h"
#include "base/utf8.h"

typedef struct ArgsReader {
    const ArgTable *table;
    Args  *out;
    Arena *a;
    Err   *err;
    char **next;                /* the words that are left, NULL at the end */
    const char *verb;           /* as it was given, where no noun was */
    bool   again;               /* its namesake is meant */
    bool   literal;             /* `--` or the first word of a remote command was read */
} ArgsReader;

/* ---- looking things up ---- */

static const ArgOption *args__in(const ArgOption *options, size_t count, Str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(name, str_from(options[i].name)) ||
            (options[i].alias && str_eq(name, str_from(options[i].alias))))
            return &options[i];
    return NULL;
}

static const ArgOption *args__letter_in(const ArgOption *options, size_t count, char letter)
{
    for (size_t i = 0; i < count; i++)
        if (options[i].letter == letter)
            return &options[i];
    return NULL;
}

static const ArgOption *args__option(const Args *args, Str name)
{
    const ArgCommand *c = args->command;
    const ArgOption  *own = c ? args__in(c->options, c->option_count, name) : NULL;

    return own ? own : args__in(args->table->globals, args->table->global_count, name);
}

static const ArgOption *args__letter(const Args *args, char letter)
{
    const ArgCommand *c = args->command;
    const ArgOption  *own = c ? args__letter_in(c->options, c->option_count, letter) : NULL;

    return own ? own : args__letter_in(args->table->globals, args->table->global_count, letter);
}

static bool args__is_verb(const ArgCommand *c, const char *verb)
{
    return strcmp(c->verb, verb) == 0 || (c->alias && strcmp(c->alias, verb) == 0);
}

const ArgCommand *args_command(const ArgTable *table, const char *noun, const char *verb)
{
    if (!noun) {
        const ArgCommand *alone = args_command(table, "", verb);
        if (!alone && !args_is_noun(table, verb))
            alone = args_command(table, ARG_SHORT_NOUN, verb);
        return alone || args_is_noun(table, verb) ? alone : args_command(table, ARG_SHORT_NEXT, verb);
    }
    for (size_t i = 0; i < table->command_count; i++)
        if (strcmp(table->commands[i].noun, noun) == 0 && args__is_verb(&table->commands[i], verb))
            return &table->commands[i];
    return NULL;
}

bool args_is_noun(const ArgTable *table, const char *word)
{
    for (size_t i = 0; i < table->command_count; i++)
        if (*word && strcmp(table->commands[i].noun, word) == 0)
            return true;
    return false;
}

/* ---- guessing what was meant ---- */

enum { ARGS_GUESS = 24 };       /* longer words are not guessed: no command or option is as long */

/* How many letters must be changed, put in, taken out or swapped with their
 * neighbour to make one word of the other. */
static size_t args__distance(Str a, Str b)
{
    size_t rows[3][ARGS_GUESS + 1], *older = rows[0], *old = rows[1], *row = rows[2];

    if (a.n > ARGS_GUESS || b.n > ARGS_GUESS)
        return ARGS_GUESS;
    for (size_t j = 0; j <= b.n; j++)
        old[j] = older[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t best = old[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            if (old[j] + 1 < best)
                best = old[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] && older[j - 2] + 1 < best)
                best = older[j - 2] + 1;
            row[j] = best;
        }
        size_t *spare = older;
        older = old;
        old = row;
        row = spare;
    }
    return old[b.n];
}

typedef struct ArgsGuess {
    Str         word;
    size_t      distance;
    const char *best;
} ArgsGuess;

/* A third of the letters may be wrong. */
static ArgsGuess args__guess(Str word)
{
    return (ArgsGuess){.word = word, .distance = word.n / 3 + 1};
}

static void args__guess_try(ArgsGuess *g, const char *candidate)
{
    size_t d = args__distance(g->word, str_from(candidate));

    if (d < g->distance || (d == g->distance && !g->best && d < g->word.n)) {
        g->distance = d;
        g->best = candidate;
    }
}

/* ---- mistakes ---- */

Str args_usage(const ArgCommand *c, Arena *a)
{
    static const char *const shapes[] = {
        [PLACE_ONE] = " %s", [PLACE_MAYBE] = " [%s]", [PLACE_MANY] = " %s...", [PLACE_ANY] = " [%s...]",
        [PLACE_WORDS] = " [--] %s...", [PLACE_DASHED] = " [-- %s...]",
    };
    Str line = arena_fmt(a, "abx %s%s%s%s", c->noun, *c->noun ? " " : "", c->verb, c->option_count ? " [options]" : "");

    for (size_t i = 0; i < ARG_PLACES && c->places[i].count != PLACE_NONE; i++) {
        const char *shape = shapes[c->places[i].count], *at = strstr(shape, "%s");
        line = arena_fmt(a, "%.*s%.*s%s%s", STR_ARG(line), (int)(at - shape), shape, c->places[i].name, at + 2);
    }
    return line;
}

/* The hint of a mistake whose nature is already said. */
static bool args__usage_hint(const ArgsReader *r)
{
    const Args *args = r->out;

    if (args->command) {
        const ArgCommand *c = args->command;
        return err_hint(r->err, "Usage: %.*s; `abx help %s%s%s` says more.", STR_ARG(args_usage(c, r->a)), c->noun,
                        *c->noun ? " " : "", c->verb);
    }
    if (args->noun)
        return err_hint(r->err, "`abx help %s` lists what can be done.", args->noun);
    return err_hint(r->err, "`abx help` lists the commands.");
}

/* The command that has such an option: the one named further on, if it is one. */
static const ArgCommand *args__owner(const ArgsReader *r, Str name)
{
    const ArgTable   *t = r->table;
    const ArgCommand *owner = NULL;
    const char       *noun = r->out->noun;

    for (size_t i = 0; i < t->command_count; i++)
        if (!owner && args__in(t->commands[i].options, t->commands[i].option_count, name))
            owner = &t->commands[i];
    for (char **word = r->next; *word; word++) {
        const ArgCommand *c = args_command(t, noun, *word);
        if (c && args__in(c->options, c->option_count, name))
            return c;
        if (args_is_noun(t, *word))
            noun = *word;
    }
    return owner;
}

/* `abx ls` lists sandboxes; with words behind it, or with -l, files. */
static const ArgCommand *args__namesake(const ArgsReader *r)
{
    return r->verb && r->out->command->places[0].count == PLACE_NONE ? args_command(r->table, ARG_SHORT_NEXT, r->verb) : NULL;
}

/* An option that stands before its verb is the likeliest mistake of all: say
 * where it belongs. */
static bool args__no_option(ArgsReader *r, Str name, const char *shown)
{
    const ArgTable   *t = r->table;
    const ArgCommand *c = r->out->command, *owner = c ? NULL : args__owner(r, name);
    ArgsGuess guess = args__guess(name);
    const ArgCommand *other = args__namesake(r);

    if (other && (shown[1] == '-' ? args__in(other->options, other->option_count, name)
                                  : args__letter_in(other->options, other->option_count, *name.p)))
        r->again = true;
    err_set(r->err, ERR_USAGE, E8002, "No such option '%s'", shown);
    if (owner)
        return err_hint(r->err, "It is an option of the verb and stands behind it: `abx %s %s %s`.", owner->noun,
                        owner->verb, shown);
    for (size_t i = 0; c && i < c->option_count; i++)
        args__guess_try(&guess, c->options[i].name);
    for (size_t i = 0; i < t->global_count; i++)
        args__guess_try(&guess, t->globals[i].name);
    if (guess.best && name.n > 1)
        return err_hint(r->err, "Did you mean --%s?", guess.best);
    return args__usage_hint(r);
}

static bool args__no_command(ArgsReader *r, const char *word)
{
    const ArgTable *t = r->table;
    const char     *noun = r->out->noun;
    ArgsGuess guess = args__guess(str_from(word));

    if (noun)
        err_set(r->err, ERR_USAGE, E8002, "No such command 'abx %s %s'", noun, word);
    else
        err_set(r->err, ERR_USAGE, E8002, "No such command 'abx %s'", word);
    for (size_t i = 0; i < t->command_count; i++) {
        const ArgCommand *c = &t->commands[i];
        if (strcmp(c->noun, noun ? noun : "") == 0 || (!noun && strcmp(c->noun, ARG_SHORT_NOUN) == 0))
            args__guess_try(&guess, c->verb);
        else if (!noun && args__is_verb(c, word))
            return err_hint(r->err, "Did you mean `abx %s %s`?", c->noun, c->verb);
        if (!noun && *c->noun)
            args__guess_try(&guess, c->noun);
    }
    if (guess.best)
        return err_hint(r->err, "Did you mean `abx %s%s%s`?", noun ? noun : "", noun ? " " : "", guess.best);
    return args__usage_hint(r);
}

static bool args__check_text(ArgsReader *r, const char *word, bool raw)
{
    if (raw || utf8_valid(str_from(word)))
        return true;
    err_set(r->err, ERR_USAGE, E8002, "An argument is not UTF-8: '%s'", word);
    return err_hint(r->err, "Only names of local files may hold other bytes.");
}

/* ---- reading ---- */

static bool args__give(ArgsReader *r, const ArgOption *o, const char *value)
{
    if (value && !args__check_text(r, value, o->raw))
        return false;
    if (strcmp(o->name, "help") == 0)
        r->out->help = true;
    r->out->given[r->out->given_count++] = (ArgGiven){o, value};
    return true;
}

static bool args__needs_value(ArgsReader *r, const ArgOption *o, const char *shown)
{
    err_set(r->err, ERR_USAGE, E8002, "Option '%s' needs a value (%s)", shown, o->value);
    return args__usage_hint(r);
}

/* "--name" or "--name=value" */
static bool args__long(ArgsReader *r, const char *word)
{
    Str  name = str_from(word + 2);
    size_t cut = str_find(name, '=');
    const char *value = cut < name.n ? word + 2 + cut + 1 : NULL;

    name.n = cut;
    const char *shown = arena_cstr(r->a, (Str){word, cut + 2});
    const ArgOption *o = args__option(r->out, name);
    if (!o)
        return args__no_option(r, name, shown);
    if (o->kind == ARG_FLAG) {
        if (!value)
            return args__give(r, o, NULL);
        err_set(r->err, ERR_USAGE, E8002, "Option '%s' takes no value", shown);
        return args__usage_hint(r);
    }
    if (!value && !*r->next)
        return args__needs_value(r, o, shown);
    return args__give(r, o, value ? value : *r->next++);
}

/* "-q", "-qv", "-ofoo", "-o foo" */
static bool args__short(ArgsReader *r, const char *word)
{
    for (const char *p = word + 1; *p; p++) {
        const ArgOption *o = args__letter(r->out, *p);
        /* The whole word when its first letter is unknown: it may be a long
         * option with a dash too few. */
        const char *shown = p == word + 1 && !o ? word : arena_fmt(r->a, "-%c", *p).p;
        if (!o)
            return args__no_option(r, str_from(p == word + 1 ? word + 1 : p), shown);
        if (o->kind == ARG_FLAG) {
            if (!args__give(r, o, NULL))
                return false;
            continue;
        }
        if (!p[1] && !*r->next)
            return args__needs_value(r, o, shown);
        return args__give(r, o, p[1] ? p + 1 : *r->next++);
    }
    return true;
}

/* The place that the word number `index` of `count` falls into; NULL: there is
 * none. Of several words where another place follows, the last is for that. */
static const ArgPlace *args__place(const Args *args, size_t index, size_t count, bool dashed)
{
    const ArgCommand *c = args->command;
    size_t            last = count - index - 1;

    for (size_t i = 0; i < ARG_PLACES; i++) {
        switch (c->places[i].count) {
        case PLACE_NONE:
            return NULL;
        case PLACE_ONE:
        case PLACE_MAYBE:
            if (index-- == 0)
                return &c->places[i];
            break;
        case PLACE_DASHED:
            return dashed ? &c->places[i] : NULL;
        case PLACE_MANY:
        case PLACE_ANY:
        case PLACE_WORDS:
            return &c->places[i] + (index > 0 && last == 0 && i + 1 < ARG_PLACES && c->places[i + 1].count != PLACE_NONE);
        }
    }
    return NULL;
}

static bool args__word(ArgsReader *r, const char *word)
{
    Args *args = r->out;

    if (!args->command) {
        bool group = !args->noun && *r->next && args_command(r->table, word, *r->next);
        args->command = group ? NULL : args_command(r->table, args->noun, word);
        if (args->command) {
            r->verb = args->noun ? NULL : word;
            return true;
        }
        if (args->noun || !args_is_noun(r->table, word))
            return args__no_command(r, word);
        args->noun = word;
        return true;
    }
    const ArgPlace *place = args__place(args, args->word_count, SIZE_MAX, r->literal);
    if (!place) {
        r->again = args__namesake(r) != NULL;
        err_set(r->err, ERR_USAGE, E8002, "Unexpected argument '%s'", word);
        return args__usage_hint(r);
    }
    args->words[args->word_count++] = word;
    if (!r->literal)
        args->dashed = args->word_count;
    if (place->count == PLACE_WORDS)
        r->literal = true;
    return true;
}

static bool args__complete(ArgsReader *r)
{
    const ArgCommand *c = r->out->command;

    for (size_t i = 0; i < ARG_PLACES; i++)
        if ((c->places[i].count == PLACE_ONE || c->places[i].count == PLACE_MANY) && i >= r->out->word_count) {
            err_set(r->err, ERR_USAGE, E8002, "Missing argument %s", c->places[i].name);
            return args__usage_hint(r);
        }
    for (size_t i = 0; i < r->out->word_count; i++)
        if (!args__check_text(r, r->out->words[i],
                              args__place(r->out, i, r->out->word_count, i >= r->out->dashed)->raw))
            return false;
    return true;
}

static bool args__read(ArgsReader *r)
{
    Args *out = r->out;

    while (*r->next) {
        const char *word = *r->next++;
        bool ok;
        if (r->literal || word[0] != '-' || word[1] == '\0')
            ok = args__word(r, word);
        else if (strcmp(word, "--") == 0 && out->command)
            ok = r->literal = true;
        else
            ok = word[1] == '-' ? args__long(r, word) : args__short(r, word);
        if (!ok)
            return false;
    }
    return !out->command || out->help || args__complete(r);
}

bool args_parse(int argc, char **argv, const ArgTable *table, Arena *a, Args *out, Err *err)
{
    size_t most = 0;

    /* A word gives at most as many options as it has letters. */
    for (int i = 1; i < argc; i++)
        most += argv[i][0] == '-' && argv[i][1] != '-' ? strlen(argv[i]) : 1;
    *out = (Args){.table = table,
                  .given = arena_array(a, most + 1, sizeof *out->given),
                  .words = arena_array(a, (size_t)argc + 1, sizeof *out->words)};
    ABX_UNSET Err wrong;
    ArgsReader again = {.table = table, .out = out, .a = a, .err = err, .next = argv + (argc > 0)}, r = again;

    r.err = &wrong;
    if (args__read(&r))
        return true;
    if (!r.again) {
        *err = wrong;
        return false;
    }
    *out = (Args){.table = table, .noun = ARG_SHORT_NEXT, .given = out->given, .words = out->words};
    return args__read(&again);
}

bool args_mention_json(char **argv)
{
    for (char **word = argv; *word && strcmp(*word, "--") != 0; word++)
        if (strcmp(*word, "--json") == 0 || strcmp(*word, "-ojson") == 0 || strcmp(*word, "--output=json") == 0 ||
            (word[1] && strcmp(word[1], "json") == 0 && (strcmp(*word, "-o") == 0 || strcmp(*word, "--output") == 0)))
            return true;
    return false;
}

/* ---- asking ---- */

static const ArgOption *args__known(const Args *args, const char *name)
{
    const ArgOption *o = args__option(args, str_from(name));

    if (!o)
        BUG("no row of the command table has this option");
    return o;
}

bool args_flag(const Args *args, const char *name)
{
    const ArgOption *o = args__known(args, name);

    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == o)
            return true;
    return false;
}

const char *args_value(const Args *args, const char *name)
{
    const ArgOption *o = args__known(args, name);
    const char      *value = NULL;

    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == o)
            value = args->given[i].value;
    return value;
}

size_t args_list(const Args *args, const char *name, Arena *a, const char *const **values)
{
    const ArgOption *o = args__known(args, name);
    const char     **list = arena_array(a, args->given_count + 1, sizeof *list);
    size_t n = 0;

    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == o)
            list[n++] = args->given[i].value;
    *values = list;
    return n;
}
