/* Words, cut at line ends, as a command line. */
#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/commands.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena a = arena_make(ARENA_COMMAND);
    Str   rest = {(const char *)data, size}, word;
    char *argv[34] = {"abx"};
    int   argc = 1;
    Args  args;
    Err   err = {0};

    while (argc < 33 && str_cut(&rest, '\n', &word))
        argv[argc++] = arena_cstr(&a, word);
    if (!args_parse(argc, argv, commands_table(), &a, &args, &err) && (err.code != E8002 || !*err.text || !*err.hint))
        BUG("a mistake without a word");
    args_mention_json(argv);
    arena_free(&a);
    return 0;
}
