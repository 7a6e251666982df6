/* Words, cut at line ends, as a command line. A word of one low byte stands
 * for a word that means something, so that the fuzzer gets deep at once. */
#include "base/arena.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/commands.h"

static const char *const fuzz_words[] = {
    "sandbox", "provider", "exec", "create", "kill", "list", "upload", "download", "help", "shell-stream", "--", "--json",
    "-o", "json", "--output=", "--timeout", "-e", "-qv", "-wx", "--help", "--entrypoint", "-m", "--yes", "-",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena a = arena_make((size_t)1 << 20);
    Str   rest = {(const char *)data, size < 4096 ? size : 4096}, word;
    char *argv[34] = {"abx"};
    int   argc = 1;
    Args  args;
    Err   err = {0};

    while (argc < 33 && str_cut(&rest, '\n', &word)) {
        bool known = word.n == 1 && (unsigned char)word.p[0] < COUNT_OF(fuzz_words);
        argv[argc++] = arena_cstr(&a, known ? str_from(fuzz_words[(unsigned char)word.p[0]]) : word);
    }
    if (!args_parse(argc, argv, commands_table(), &a, &args, &err) && (err.code != E8002 || !*err.text || !*err.hint))
        BUG("a mistake without a word");
    args_mention_json(argv);
    arena_free(&a);
    return 0;
}
