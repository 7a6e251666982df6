/* args.h - reads the words of a command line against the table of commands.
 *
 * One table (cli/commands.c) feeds parsing, help and errors. The grammar:
 *
 *     abx [global options] NOUN VERB [options] [--] [arguments]
 *     abx [global options] VERB [options] [--] [arguments]
 *
 * A first word that is no noun is a verb: one that stands alone, else one of
 * ARG_SHORT_NOUN, else of ARG_SHORT_NEXT. One that is both stands alone, unless
 * a verb of it follows. A verb of ARG_SHORT_NOUN that takes no words makes room
 * for its namesake when there are some: `abx ls`, `abx ls ID`.
 * Global options may stand anywhere before the arguments of a remote command;
 * a verb's own only behind the verb. --name VALUE, --name=VALUE, -nVALUE, and
 * flags of one letter in a bunch (-qv). Names are never abbreviated. Of an
 * option given twice the last counts, but for ARG_LIST. Where a place is
 * PLACE_WORDS, options end at its first word: what follows belongs to the
 * remote command.
 *
 * Every word that is not a local file name must be UTF-8, because it travels
 * as JSON, which could only hold a damaged copy of it.
 *
 *     Args args;
 *     if (!args_parse(argc, argv, &commands_table, &a, &args, err)) ...
 *     const char *t = args_value(&args, "timeout");
 *
 * Memory: strings are argv's own; the lists live in the arena.
 */
#ifndef ABX_ARGS_H
#define ABX_ARGS_H

#include "base/arena.h"
#include "base/err.h"

typedef enum ArgKind {
    ARG_FLAG,
    ARG_VALUE,
    ARG_LIST,           /* may be given again and again */
} ArgKind;

typedef struct ArgOption {
    char        letter;     /* 0: none */
    ArgKind     kind;
    bool        raw;        /* the value may be any bytes: a local file name */
    const char *name;       /* "workdir" */
    const char *alias;      /* another name, or NULL */
    const char *value;      /* the value's name in help, NULL for a flag */
    const char *help;
} ArgOption;

typedef enum ArgCount {
    PLACE_NONE,         /* the end of the list */
    PLACE_ONE,
    PLACE_MAYBE,        /* one or none */
    PLACE_MANY,         /* one or more */
    PLACE_ANY,          /* any number */
    PLACE_WORDS,        /* any number, and the first ends the options */
    PLACE_DASHED,       /* any number, only behind `--` */
} ArgCount;

typedef struct ArgPlace {
    ArgCount    count;
    bool        raw;
    const char *name;
} ArgPlace;

enum { ARG_PLACES = 4 };

#define ARG_SHORT_NOUN "sandbox"
#define ARG_SHORT_NEXT "file"

struct Run;

typedef struct ArgCommand {
    const char *noun;           /* "sandbox"; "" for a verb that stands alone */
    const char *verb;
    const char *alias;          /* another word for the verb, or NULL */
    const char *summary;        /* one line */
    const ArgOption *options;
    size_t      option_count;
    ArgPlace    places[ARG_PLACES];
    int       (*run)(struct Run *r);    /* the exit status */
} ArgCommand;

typedef struct ArgTable {
    const ArgCommand *commands;
    size_t            command_count;
    const ArgOption  *globals;
    size_t            global_count;
} ArgTable;

typedef struct ArgGiven {
    const ArgOption *option;
    const char      *value;     /* NULL for a flag */
} ArgGiven;

typedef struct Args {
    const ArgTable   *table;
    const ArgCommand *command;  /* NULL: none was named */
    const char  *noun;          /* what was named without a verb, or NULL */
    bool         help;          /* --help or -h: the rest was not looked at closely */
    ArgGiven    *given;
    size_t       given_count;
    const char **words;         /* the arguments, in order */
    size_t       word_count;
    size_t       dashed;        /* how many of them, from the front, stood before `--` */
} Args;

/* False: ERR_USAGE, E8002, with what was wrong and the usage line as hint; *out
 * holds what was read before the mistake. No command at all is no mistake here. */
ABX_FN bool args_parse(int argc, char **argv, const ArgTable *table, Arena *a, Args *out, Err *err) ABX_CHECK;

/* JSON was asked for somewhere on a command line that could not be read. */
ABX_FN bool args_mention_json(char **argv);

/* Asking for an option that neither the command nor the globals have is BUG(). */
ABX_FN bool        args_flag(const Args *args, const char *name);
ABX_FN const char *args_value(const Args *args, const char *name);             /* NULL when it was not given */
ABX_FN size_t      args_list(const Args *args, const char *name, Arena *a, const char *const **values);

/* "abx sandbox exec [options] ID [--] COMMAND..." */
ABX_FN Str args_usage(const ArgCommand *c, Arena *a);

/* The command of that noun and verb (or the verb's other word), or NULL. `noun`
 * NULL: of a verb without a noun. */
ABX_FN const ArgCommand *args_command(const ArgTable *table, const char *noun, const char *verb);
ABX_FN bool args_is_noun(const ArgTable *table, const char *word);

#endif
