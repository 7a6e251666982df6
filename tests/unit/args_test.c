#include "cli/args.h"
#include "cli/commands.h"
#include "cli/topics.h"

/* A command line, cut at blanks; "" stands for an empty word. */
static int args_test_split(char *line, char **argv)
{
    int n = 0;

    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        argv[n++] = strcmp(word, "\"\"") == 0 ? word + 2 : word;
    argv[n] = NULL;
    return n;
}

/* What was understood, as text: noun verb, options in order, words, dashed. */
static const char *args_test_show(const Args *args, Arena *a)
{
    Str s = arena_fmt(a, "%s/%s", args->command ? args->command->noun : args->noun ? args->noun : "",
                      args->command ? args->command->verb : "");

    for (size_t i = 0; i < args->given_count; i++)
        s = arena_fmt(a, "%s %s%s%s", s.p, args->given[i].option->name, args->given[i].value ? "=" : "",
                      args->given[i].value ? args->given[i].value : "");
    for (size_t i = 0; i < args->word_count; i++)
        s = arena_fmt(a, "%s %s[%s]", s.p, i == args->dashed ? "-- " : "", args->words[i]);
    return s.p;
}

static void args_test_parse(void **state)
{
    static const struct { const char *line, *want, *hint; } cases[] = {
        /* global options anywhere */
        {"abx", "/", ""},
        {"abx --json sandbox info x", "sandbox/info json [x]", ""},
        {"abx sandbox --json info x", "sandbox/info json [x]", ""},
        {"abx sandbox info x --json", "sandbox/info json [x]", ""},
        {"abx sandbox info --json x -o text", "sandbox/info json output=text [x]", ""},
        {"abx --provider opensandbox sandbox list", "sandbox/list provider=opensandbox", ""},
        {"abx --provider=a=b sandbox list", "sandbox/list provider=a=b", ""},
        {"abx --provider= sandbox list", "sandbox/list provider=", ""},
        {"abx sandbox ls", "sandbox/list", ""},
        {"abx sandbox rm a b --yes", "sandbox/kill yes [a] [b]", ""},
        {"abx sandbox", "sandbox/", ""},
        {"abx --version", "/ version", ""},
        /* letters */
        {"abx -qv sandbox list", "sandbox/list quiet verbose", ""},
        {"abx -qojson sandbox list", "sandbox/list quiet output=json", ""},
        {"abx sandbox list -ma=b -m c=d", "sandbox/list metadata=a=b metadata=c=d", ""},
        {"abx sandbox list -m --limit", "sandbox/list metadata=--limit", ""},
        /* a verb's own options, and only behind it */
        {"abx --yes sandbox kill x", "No such option '--yes'", "`abx sandbox kill --yes`"},
        {"abx sandbox --yes kill x", "No such option '--yes'", "`abx sandbox kill --yes`"},
        {"abx --yes", "No such option '--yes'", "behind it"},
        {"abx -y sandbox kill x", "No such option '-y'", ""},
        {"abx sandbox kill x -y", "sandbox/kill yes [x]", ""},
        {"abx --timeout 5 sandbox create", "No such option '--timeout'", "abx sandbox create --timeout"},
        {"abx sandbox info x --yes", "No such option '--yes'", ""},
        /* names are whole */
        {"abx --js version", "No such option '--js'", ""},
        {"abx --jsno version", "No such option '--jsno'", "--json"},
        {"abx -json version", "No such option '-json'", "--json"},
        {"abx sandbox create --tmeplate x", "No such option '--tmeplate'", "--template"},
        {"abx sandbox create --cpus 1", "No such option '--cpus'", "--cpu"},
        {"abx sandbox list --limit=x=y=z", "sandbox/list limit=x=y=z", ""},
        {"abx --json=1 version", "Option '--json' takes no value", ""},
        {"abx version --output", "Option '--output' needs a value (FORM)", ""},
        {"abx version -o", "Option '-o' needs a value (FORM)", ""},
        {"abx version -qo", "Option '-o' needs a value (FORM)", ""},
        {"abx version -1", "No such option '-1'", ""},
        {"abx version ---", "No such option '---'", ""},
        {"abx -- version", "No such option '--'", ""},
        /* commands */
        {"abx sandbx list", "No such command 'abx sandbx'", "`abx sandbox`"},
        {"abx sandbox lst", "No such command 'abx sandbox lst'", "`abx sandbox list`"},
        {"abx kill x", "sandbox/kill [x]", ""},
        {"abx rm x", "sandbox/kill [x]", ""},
        {"abx ls", "sandbox/list", ""},
        {"abx ls -m a=b -q", "sandbox/list metadata=a=b quiet", ""},
        {"abx ls x", "file/ls [x]", ""},
        {"abx -q ls -lR x /y --json", "file/ls quiet long recursive json [x] [/y]", ""},
        {"abx ls --long", "Missing argument ID", "abx file ls"},
        {"abx ls -m a=b x", "No such option '-m'", "abx file ls"},
        {"abx ls --limi 1", "No such option '--limi'", "--limit"},
        {"abx sandbox ls x", "Unexpected argument 'x'", ""},
        {"abx rm -r x", "No such option '-r'", "abx sandbox kill"},
        {"abx file rm -rf x /y", "file/rm recursive force [x] [/y]", ""},
        {"abx cat x y", "file/cat [x] [y]", ""},
        {"abx ca x y", "No such command 'abx ca'", ""},
        {"abx install x", "No such command 'abx install'", "`abx provider install`"},
        {"abx versoin", "No such command 'abx versoin'", "`abx version`"},
        {"abx xyzzy", "No such command 'abx xyzzy'", "`abx help`"},
        {"abx \"\"", "No such command 'abx '", ""},
        {"abx sandbox \"\"", "No such command 'abx sandbox '", ""},
        /* arguments */
        {"abx sandbox info", "Missing argument ID", "abx sandbox info ID"},
        {"abx sandbox info a b", "Unexpected argument 'b'", ""},
        {"abx sandbox info -", "sandbox/info [-]", ""},
        {"abx sandbox info -- -x", "sandbox/info -- [-x]", ""},
        {"abx sandbox upload x", "Missing argument LOCAL", ""},
        {"abx sandbox upload x a", "Missing argument REMOTE", ""},
        {"abx sandbox download x", "Missing argument REMOTE", ""},
        {"abx sandbox download x a", "sandbox/download [x] [a]", ""},
        {"abx sandbox kill", "Missing argument ID", ""},
        {"abx sandbox timeout x -5", "No such option '-5'", ""},
        {"abx sandbox timeout x -- -5", "sandbox/timeout [x] -- [-5]", ""},
        {"abx version x", "Unexpected argument 'x'", ""},
        {"abx sandbox info \"\"", "sandbox/info []", ""},
        /* what belongs to the remote command */
        {"abx sandbox exec x ls -la --json", "sandbox/exec [x] [ls] -- [-la] [--json]", ""},
        {"abx sandbox exec x --json ls -la", "sandbox/exec json [x] [ls] -- [-la]", ""},
        {"abx sandbox exec x -- ls --json", "sandbox/exec [x] -- [ls] [--json]", ""},
        {"abx sandbox exec x -- --json", "sandbox/exec [x] -- [--json]", ""},
        {"abx sandbox exec x ls -- -a", "sandbox/exec [x] [ls] -- [--] [-a]", ""},
        {"abx sandbox exec -- x ls -e A=B", "sandbox/exec -- [x] [ls] [-e] [A=B]", ""},
        {"abx sandbox exec -e A=B x --cwd /tmp ls", "sandbox/exec env=A=B workdir=/tmp [x] [ls]", ""},
        {"abx sandbox exec x -w/tmp --timeout 5m ls", "sandbox/exec workdir=/tmp timeout=5m [x] [ls]", ""},
        {"abx sandbox exec x - y --json", "sandbox/exec [x] [-] -- [y] [--json]", ""},
        {"abx sandbox shell-stream x --command ls", "sandbox/shell-stream command=ls [x]", ""},
        {"abx sandbox shell-stream x echo --command ls", "sandbox/shell-stream [x] [echo] -- [--command] [ls]", ""},
        {"abx sandbox create -- tail -f", "sandbox/create -- [tail] [-f]", ""},
        {"abx sandbox upload x a", "Missing argument REMOTE", "upload [options] ID LOCAL... REMOTE"},
        {"abx cp a", "Missing argument DEST", ""},
        {"abx sandbox create tail", "Unexpected argument 'tail'", ""},
        {"abx sandbox create --entrypoint tail --entrypoint -f", "sandbox/create entrypoint=tail entrypoint=-f", ""},
        /* help stops the counting */
        {"abx sandbox info --help", "sandbox/info help", ""},
        {"abx -h", "/ help", ""},
        {"abx --help sandbox kill", "sandbox/kill help", ""},
        {"abx sandbox exec x ls --help", "sandbox/exec [x] [ls] -- [--help]", ""},
        /* bytes */
        {"abx sandbox info \xff", "An argument is not UTF-8: '\xff'", ""},
        {"abx sandbox create --template \xc3", "An argument is not UTF-8: '\xc3'", ""},
        {"abx sandbox exec x echo \xed\xa0\x80", "An argument is not UTF-8: '\xed\xa0\x80'", ""},
        {"abx sandbox upload x \xff /y", "sandbox/upload [x] [\xff] [/y]", ""},
        {"abx sandbox upload x y /\xff", "An argument is not UTF-8: '/\xff'", ""},
        {"abx sandbox download x /y \xff", "sandbox/download [x] [/y] [\xff]", ""},
        {"abx sandbox download x /\xff y", "An argument is not UTF-8: '/\xff'", ""},
        {"abx sandbox download x /y \xff z", "An argument is not UTF-8: '\xff'", ""},
        {"abx sandbox download x \xff", "An argument is not UTF-8: '\xff'", ""},
        {"abx sandbox upload x \xff y -r \xfe /z", "sandbox/upload recursive [x] [\xff] [y] [\xfe] [/z]", ""},
        {"abx sandbox upload x a b /\xff", "An argument is not UTF-8: '/\xff'", ""},
        {"abx cp -R \xff b -- -c", "sandbox/cp recursive [\xff] [b] -- [-c]", ""},
        {"abx --ca-file \xff version", "/version ca-file=\xff", ""},
        {"abx -\xff version", "No such option '-\xff'", ""},
        {"abx sandbox info x\x1b[31m", "sandbox/info [x\x1b[31m]", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena a = arena_make(ARENA_COMMAND);
        char *argv[16];
        int   argc = args_test_split(arena_cstr(&a, str_from(cases[i].line)), argv);
        Args  args;
        Err   err = {0};
        bool  ok = args_parse(argc, argv, commands_table(), &a, &args, &err);
        const char *got = ok ? args_test_show(&args, &a) : err.text;
        if (strcmp(got, cases[i].want) != 0 || !strstr(err.hint, cases[i].hint))
            fail_msg("%s: %s / %s", cases[i].line, got, err.hint);
        if (!ok && (err.kind != ERR_USAGE || err.code != E8002 || !*err.hint))
            fail_msg("%s: kind %d code %d hint '%s'", cases[i].line, err.kind, err.code, err.hint);
        arena_free(&a);
    }
}

static void args_test_asking(void **state)
{
    Arena a = arena_make(ARENA_COMMAND);
    char  line[] = "abx -q sandbox exec x -e A=1 --env B=2 --timeout 1 --timeout 2 ls", *argv[16];
    int   argc = args_test_split(line, argv);
    Args  args;
    Err   err;
    const char *const *list;

    (void)state;
    assert_true(args_parse(argc, argv, commands_table(), &a, &args, &err));
    assert_true(args_flag(&args, "quiet"));
    assert_false(args_flag(&args, "json"));
    assert_string_equal(args_value(&args, "timeout"), "2");
    assert_null(args_value(&args, "workdir"));
    assert_int_equal(args_list(&args, "env", &a, &list), 2);
    assert_string_equal(list[0], "A=1");
    assert_string_equal(list[1], "B=2");
    assert_int_equal(args_list(&args, "option", &a, &list), 0);
    arena_free(&a);
}

static void args_test_mention(void **state)
{
    static const struct { const char *line; bool want; } cases[] = {
        {"abx x --json", true}, {"abx -o json", true}, {"abx -ojson", true}, {"abx --output json", true},
        {"abx --output=json", true}, {"abx -- --json", false}, {"abx -o text json", false}, {"abx", false},
        {"abx x -o", false}, {"abx --jsonx", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char line[64], *argv[16];
        strcpy(line, cases[i].line);
        args_test_split(line, argv);
        if (args_mention_json(argv) != cases[i].want)
            fail_msg("%s", cases[i].line);
    }
}

/* Each command and noun has examples, each topic a page, and a page ends where the next begins. */
static void args_test_pages(void **state)
{
    const ArgTable *t = commands_table();
    size_t          topics;
    const Topic    *topic = topics_all(&topics);
    Buf             pages;

    (void)state;
    for (size_t i = 0; i < t->command_count; i++) {
        const ArgCommand *c = &t->commands[i];
        Str text = topics_page('$', c->noun, c->verb, &pages);
        assert_true(str_starts(text, STR("  ")));
        assert_true(str_ends(text, STR("\n")) && !memmem(text.p, text.n, "\n= ", 3) && !memmem(text.p, text.n, "\n$ ", 3));
        buf_free(&pages);
        assert_true(!*c->noun || topics_page('$', c->noun, "", &pages).n);
        buf_free(&pages);
    }
    for (size_t i = 0; i < topics; i++) {
        assert_true(topics_has(topic[i].name) && topics_page('=', "", topic[i].name, &pages).n > 300);
        buf_free(&pages);
    }
    assert_false(topics_has("nothing"));
    assert_int_equal(topics_page('=', "", "nothing", &pages).n, 0);
    buf_free(&pages);
    assert_int_equal(topics_page('=', "sandbox", "pause", &pages).n, 0);
    buf_free(&pages);
}

/* No two options of a verb, its own and the global ones, share a name or a
 * letter, and rows say all that help needs. */
static void args_test_table(void **state)
{
    const ArgTable *t = commands_table();

    (void)state;
    for (size_t i = 0; i < t->command_count; i++) {
        const ArgCommand *c = &t->commands[i];
        assert_true(*c->verb && *c->summary && c->run);
        assert_ptr_equal(args_command(t, c->noun, c->verb), c);
        for (size_t k = 0; k < c->option_count + t->global_count; k++) {
            const ArgOption *o = k < c->option_count ? &c->options[k] : &t->globals[k - c->option_count];
            assert_true(*o->help);
            assert_int_equal(o->kind == ARG_FLAG, o->value == NULL);
            for (size_t n = 0; n < k; n++) {
                const ArgOption *p = n < c->option_count ? &c->options[n] : &t->globals[n - c->option_count];
                /* As on the other hosts -o is --option there; its own comes first. */
                if (strcmp(c->verb, "test") == 0 && n < c->option_count && k >= c->option_count)
                    continue;
                /* Two letters of one option. */
                if (strcmp(o->name, p->name) == 0 && strcmp(o->help, "the same") == 0 && o->letter != p->letter)
                    continue;
                if (strcmp(o->name, p->name) == 0 || (o->letter && o->letter == p->letter) ||
                    (p->alias && strcmp(o->name, p->alias) == 0))
                    fail_msg("%s %s: --%s twice", c->noun, c->verb, o->name);
            }
        }
    }
}

static void args_test_distance(void **state)
{
    static const struct { const char *a, *b; size_t want; } cases[] = {
        {"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1},
        {"kitten", "sitting", 3}, {"list", "lsit", 1}, {"aaaaaaaaaaaaaaaaaaaaaaaaa", "b", ARGS_GUESS},
        {"aaaaaaaaaaaaaaaaaaaaaaaa", "", 24},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(args__distance(guard_copy(str_from(cases[i].a)), str_from(cases[i].b)),
                         cases[i].want);
}

static const struct CMUnitTest args_tests[] = {
    cmocka_unit_test(args_test_parse),
    cmocka_unit_test(args_test_asking),
    cmocka_unit_test(args_test_mention),
    cmocka_unit_test(args_test_pages),
    cmocka_unit_test(args_test_table),
    cmocka_unit_test(args_test_distance),
};
