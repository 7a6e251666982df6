#include "cli/commands.h"

#include "cli/cmd_about.h"
#include "cli/cmd_config.h"
#include "cli/cmd_copy.h"
#include "cli/cmd_doctor.h"
#include "cli/cmd_exec.h"
#include "cli/cmd_file.h"
#include "cli/cmd_forward.h"
#include "cli/cmd_job.h"
#include "cli/cmd_look.h"
#include "cli/cmd_plugin.h"
#include "cli/cmd_install.h"
#include "cli/cmd_provider.h"
#include "cli/cmd_run.h"
#include "cli/cmd_sandbox.h"
#include "cli/cmd_shell.h"

static const ArgOption commands__globals[] = {
    {0, ARG_FLAG, false, "json", NULL, NULL, "print JSON, errors too; the same as -o json"},
    {'o', ARG_VALUE, false, "output", NULL, "FORM", "text or json"},
    {0, ARG_VALUE, false, "provider", NULL, "ID", "the backend to use: `abx help providers`"},
    {0, ARG_LIST, true, "option", NULL, "KEY=VALUE", "a setting of the provider; KEY=@FILE or KEY=- (standard input) for "
     "secrets, which are refused on the command line"},
    {0, ARG_VALUE, true, "ca-file", NULL, "FILE", "certificates to trust instead of the usual ones"},
    {0, ARG_FLAG, false, "allow-cwd-env", NULL, NULL, "let an address from ./.env be used with a key from elsewhere"},
    {0, ARG_VALUE, false, "agent", NULL, "MODE", "auto: carry abx into the sandbox where that makes commands exact; "
     "never: the backend's own calls alone"},
    {'v', ARG_FLAG, false, "verbose", NULL, NULL, "say more on standard error"},
    {0, ARG_FLAG, false, "debug", NULL, NULL, "show requests and answers on standard error, without secrets"},
    {'q', ARG_FLAG, false, "quiet", NULL, NULL, "no notices; `create` and the lists print ids only"},
    {0, ARG_FLAG, false, "no-color", NULL, NULL, "no colours (there are none)"},
    {0, ARG_FLAG, false, "no-input", NULL, NULL, "never ask; what would be asked is a no"},
    {'h', ARG_FLAG, false, "help", NULL, NULL, "help on the command at hand"},
    {0, ARG_FLAG, false, "version", NULL, NULL, "as `abx version`, where no command is named"},
};

#define COMMANDS_ENV \
    {'e', ARG_LIST, false, "env", NULL, "NAME=VALUE", "set a variable in the sandbox; NAME alone takes the value from " \
     "the environment of abx"}, \
    {0, ARG_LIST, true, "env-file", NULL, "FILE", "set the variables of a file, a line each; -e wins"}

#define COMMANDS_TEMPLATE \
    {0, ARG_VALUE, false, "template", NULL, "NAME", "what to start from: a template or an image; `base`"}
#define COMMANDS_BOX \
    {'m', ARG_LIST, false, "metadata", NULL, "KEY=VALUE", "a label, to find it by"}, \
    {0, ARG_LIST, false, "entrypoint", NULL, "WORD", "a word of the program that keeps it running; again for each word"}, \
    {0, ARG_VALUE, false, "cpu", NULL, "AMOUNT", "limit, such as 500m or 2"}, \
    {0, ARG_VALUE, false, "memory", NULL, "AMOUNT", "limit, such as 512Mi"}, \
    {'y', ARG_FLAG, false, "yes", NULL, NULL, "accepted; nothing is asked"}
#define COMMANDS_WORKDIR \
    {'w', ARG_VALUE, false, "workdir", "cwd", "DIR", "the folder in the sandbox to run in"}
#define COMMANDS_USER \
    {'u', ARG_VALUE, false, "user", NULL, "USER", "run as this user of the sandbox: a name or a number"}
/* What exec, shell-stream and run have in common. */
#define COMMANDS_EXEC \
    {'i', ARG_FLAG, false, "interactive", NULL, NULL, "send standard input also where it is a terminal"}, \
    {'T', ARG_FLAG, false, "no-tty", NULL, NULL, "without a terminal, which is the rule"}, \
    COMMANDS_ENV, \
    COMMANDS_WORKDIR, \
    COMMANDS_USER, \
    {0, ARG_VALUE, false, "timeout", NULL, "TIME", "kill the command and all it started after this time; none"}

#define COMMANDS_TTY \
    {'t', ARG_FLAG, false, "tty", NULL, NULL, "with a terminal there; with -i too, what is typed goes to it"}
#define COMMANDS_KEYS_OPTION \
    {0, ARG_VALUE, false, "detach-keys", NULL, "KEYS", "what to type to leave it running: ctrl-p,ctrl-q; none"}

static const ArgOption commands__create[] = {
    COMMANDS_TEMPLATE,
    {0, ARG_VALUE, false, "timeout", NULL, "TIME", "how long it lives: 300, 90s, 5m, 1h30m, none; 5m"},
    COMMANDS_ENV,
    COMMANDS_BOX,
};

static const ArgOption commands__list[] = {
    {'m', ARG_LIST, false, "metadata", NULL, "KEY=VALUE", "only those with this label; all must match"},
    {0, ARG_VALUE, false, "limit", NULL, "N", "stop after so many"},
};

static const ArgOption commands__exec[] = {
    COMMANDS_TTY,
    COMMANDS_EXEC,
    COMMANDS_KEYS_OPTION,
    {'d', ARG_FLAG, false, "detach", NULL, NULL, "leave it running as a job, and print the job's name"},
};

static const ArgOption commands__stream[] = {
    {0, ARG_VALUE, false, "command", NULL, "LINE", "the command, as a line for the shell"},
    COMMANDS_EXEC,
};

static const ArgOption commands__run[] = {
    COMMANDS_TEMPLATE,
    COMMANDS_TTY,
    COMMANDS_EXEC,
    {0, ARG_VALUE, false, "lifetime", NULL, "TIME", "how long the sandbox may live; --timeout and 5m, or 1h"},
    {0, ARG_FLAG, false, "keep", NULL, NULL, "do not remove the sandbox; its name is printed on standard error"},
    COMMANDS_BOX,
};

static const ArgOption commands__logs[] = {
    {'f', ARG_FLAG, false, "follow", NULL, NULL, "go on until the job has ended"},
};

static const ArgOption commands__job_kill[] = {
    {'s', ARG_VALUE, false, "signal", NULL, "SIGNAL", "which one, such as INT or 2; TERM"},
};

static const ArgOption commands__agent_remove[] = {
    {0, ARG_FLAG, false, "force", NULL, NULL, "end the jobs that still need it"},
};

static const ArgOption commands__shell[] = {
    COMMANDS_ENV,
    COMMANDS_WORKDIR,
    COMMANDS_USER,
    COMMANDS_KEYS_OPTION,
};

static const ArgOption commands__forward[] = {
    {0, ARG_VALUE, false, "address", NULL, "ADDRESS", "where to listen: 127.0.0.1 and ::1"},
};

static const ArgOption commands__attach[] = {
    COMMANDS_KEYS_OPTION,
};

static const ArgOption commands__kill[] = {
    {'y', ARG_FLAG, false, "yes", NULL, NULL, "accepted; nothing is asked"},
};

static const ArgOption commands__test[] = {
    {'o', ARG_LIST, true, "option", NULL, "KEY=VALUE", "a setting of the provider; KEY=@FILE or KEY=- for secrets"},
};

static const ArgOption commands__config[] = {
    {0, ARG_FLAG, false, "show-secrets", NULL, NULL, "print secrets as they are, and not as stars"},
};

#define COMMANDS_POLICY \
    {'y', ARG_FLAG, false, "yes", NULL, NULL, "agreed; nothing is asked. A branch or a tag is not agreed to by it"}, \
    {0, ARG_FLAG, false, "allow-unpinned", NULL, NULL, "take a branch or a tag, which can be another commit tomorrow"}, \
    {0, ARG_FLAG, false, "allow-insecure-transport", NULL, NULL, "take http: and file: sources"}, \
    {0, ARG_FLAG, false, "allow-unverified", NULL, NULL, "take files that cannot be proved to be the commit's"}, \
    {0, ARG_FLAG, false, "no-verify", NULL, NULL, "do not start the plugin once to see that it works"}

static const ArgOption commands__install[] = {
    {0, ARG_VALUE, false, "ref", NULL, "COMMIT", "what to fetch from git; a full commit id pins it"},
    {0, ARG_VALUE, false, "subdir", NULL, "DIR", "the folder of the plugin in the source"},
    {0, ARG_VALUE, false, "sha256", NULL, "HASH", "what tree_sha256 must be: the strong pin"},
    {0, ARG_VALUE, false, "archive-sha256", NULL, "HASH", "what the archive file must hash to"},
    {0, ARG_FLAG, false, "link", NULL, NULL, "do not copy: run it from its folder, unchecked; for developing one"},
    {0, ARG_FLAG, false, "force", NULL, NULL, "replace what is installed under that id"},
    COMMANDS_POLICY,
};

static const ArgOption commands__update[] = {
    {0, ARG_VALUE, false, "ref", NULL, "COMMIT", "fetch this instead of what was recorded"},
    {0, ARG_FLAG, false, "check", NULL, NULL, "look whether there is another version, and change nothing"},
    COMMANDS_POLICY,
};

static const ArgOption commands__rollback[] = {
    {'y', ARG_FLAG, false, "yes", NULL, NULL, "accepted; nothing is asked"},
    {0, ARG_FLAG, false, "no-verify", NULL, NULL, "do not start the plugin once to see that it works"},
};

static const ArgOption commands__uninstall[] = {
    {0, ARG_FLAG, false, "purge", NULL, NULL, "remove its data and its settings, too"},
    {'y', ARG_FLAG, false, "yes", NULL, NULL, "accepted; nothing is asked"},
};

static const ArgOption commands__doctor[] = {
    {0, ARG_FLAG, false, "no-handshake", NULL, NULL, "do not start the plugin"},
};

#define COMMANDS_RECURSIVE(letter, help) {letter, ARG_FLAG, false, "recursive", NULL, NULL, help}
#define COMMANDS_NUL {'0', ARG_FLAG, false, "null", NULL, NULL, "a NUL behind each path instead of a line feed"}

static const ArgOption commands__copy[] = {
    {0, ARG_FLAG, false, "verify", NULL, NULL, "compare the SHA-256 of each file; the rule for folders"},
    {0, ARG_FLAG, false, "no-verify", NULL, NULL, "compare sizes alone; the rule for one file"},
    {0, ARG_FLAG, false, "resume", NULL, NULL, "go on where a copy was interrupted; what is there already is left"},
    {'u', ARG_VALUE, false, "user", NULL, "USER", "read or write as this user of the sandbox: a name or a number"},
    {0, ARG_VALUE, false, "progress", NULL, "FORM", "auto, none, bar, or json: lines on standard error; auto is a bar on a "
     "terminal"},
    COMMANDS_RECURSIVE('r', "accepted; folders are copied whole in any case"),
    {'R', ARG_FLAG, false, "recursive", NULL, NULL, "the same"},
};

static const ArgOption commands__file_ls[] = {
    {'l', ARG_FLAG, false, "long", NULL, NULL, "with mode, size and time"},
    COMMANDS_RECURSIVE('R', "with all that is below"),
    {'a', ARG_FLAG, false, "all", NULL, NULL, "accepted; nothing is ever hidden"},
    COMMANDS_NUL,
};

static const ArgOption commands__file_find[] = {
    {0, ARG_VALUE, false, "name", NULL, "PATTERN", "only names that are like this: *, ?, [a-z], \\x"},
    {0, ARG_VALUE, false, "type", NULL, "LETTER", "f: files, d: folders, l: links, o: others"},
    {0, ARG_VALUE, false, "max-depth", NULL, "N", "go no deeper; 0 is PATH itself"},
    COMMANDS_NUL,
};

static const ArgOption commands__file_write[] = {
    {0, ARG_VALUE, false, "mode", NULL, "MODE", "that it gets, in octal; its own, or 0644"},
};

static const ArgOption commands__file_mkdir[] = {
    {'p', ARG_FLAG, false, "parents", NULL, NULL, "its parents, too; one that is there already is fine"},
};

static const ArgOption commands__file_rm[] = {
    COMMANDS_RECURSIVE('r', "folders, too, with all that is in them"),
    {'f', ARG_FLAG, false, "force", NULL, NULL, "what is not there is no failure"},
};

static const ArgOption commands__file_chmod[] = {
    COMMANDS_RECURSIVE('R', "with all that is in folders"),
};

static const ArgOption commands__file_watch[] = {
    COMMANDS_RECURSIVE('R', "also in all that is below"),
    COMMANDS_NUL,
};

#define COMMANDS_OPTIONS(list) .options = commands__##list, .option_count = COUNT_OF(commands__##list)

static const ArgCommand commands__rows[] = {
    {"sandbox", "create", NULL, "make a sandbox that is ready for commands",
     COMMANDS_OPTIONS(create), {{PLACE_DASHED, false, "ENTRYPOINT"}}, cmd_sandbox_create},
    {"sandbox", "list", "ls", "list sandboxes",
     COMMANDS_OPTIONS(list), {{0}}, cmd_sandbox_list},
    {"sandbox", "info", NULL, "show what is known of a sandbox", NULL, 0, {{PLACE_ONE, false, "ID"}}, cmd_sandbox_info},
    {"sandbox", "exec", NULL, "run a command in a sandbox and end as it does",
     COMMANDS_OPTIONS(exec), {{PLACE_ONE, false, "ID"}, {PLACE_WORDS, false, "COMMAND"}}, cmd_exec_run},
    {"sandbox", "shell-stream", NULL, "run a shell command and stream its output",
     COMMANDS_OPTIONS(stream), {{PLACE_ONE, false, "ID"}, {PLACE_WORDS, false, "COMMAND"}}, cmd_exec_stream},
    {"sandbox", "shell", NULL, "open a shell in a sandbox, or run a command in a terminal there",
     COMMANDS_OPTIONS(shell), {{PLACE_ONE, false, "ID"}, {PLACE_WORDS, false, "COMMAND"}}, cmd_shell_open},
    {"sandbox", "port-forward", NULL, "let ports of this machine lead to ports in a sandbox",
     COMMANDS_OPTIONS(forward), {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PORTS"}}, cmd_forward_run},
    {"sandbox", "upload", NULL, "copy files and folders into a sandbox", COMMANDS_OPTIONS(copy),
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, true, "LOCAL"}, {PLACE_ONE, false, "REMOTE"}}, cmd_copy_upload},
    {"sandbox", "download", NULL, "copy files and folders out of a sandbox", COMMANDS_OPTIONS(copy),
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "REMOTE"}, {PLACE_MAYBE, true, "LOCAL"}}, cmd_copy_download},
    {"sandbox", "cp", NULL, "copy files and folders into, out of, or between sandboxes", COMMANDS_OPTIONS(copy),
     {{PLACE_MANY, true, "SRC"}, {PLACE_ONE, true, "DEST"}}, cmd_copy_between},
    {"file", "ls", "list", "list what is in folders of a sandbox",
     COMMANDS_OPTIONS(file_ls), {{PLACE_ONE, false, "ID"}, {PLACE_ANY, false, "PATH"}}, cmd_look_ls},
    {"file", "find", NULL, "list what is below folders, and like a pattern",
     COMMANDS_OPTIONS(file_find), {{PLACE_ONE, false, "ID"}, {PLACE_ANY, false, "PATH"}}, cmd_look_find},
    {"file", "stat", NULL, "show what lies at a path", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_look_stat},
    {"file", "cat", NULL, "print files of a sandbox, one behind the other", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_file_cat},
    {"file", "write", NULL, "write standard input to a file", COMMANDS_OPTIONS(file_write),
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "PATH"}}, cmd_file_write},
    {"file", "mkdir", NULL, "make folders", COMMANDS_OPTIONS(file_mkdir),
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_file_mkdir},
    {"file", "mv", NULL, "move or rename a file or a folder", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "FROM"}, {PLACE_ONE, false, "TO"}}, cmd_file_mv},
    {"file", "rm", NULL, "remove files, and folders with -r", COMMANDS_OPTIONS(file_rm),
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_file_rm},
    {"file", "chmod", NULL, "change the modes of files", COMMANDS_OPTIONS(file_chmod),
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "MODE"}, {PLACE_MANY, false, "PATH"}}, cmd_file_chmod},
    {"file", "watch", NULL, "tell what happens to a file, or in a folder", COMMANDS_OPTIONS(file_watch),
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "PATH"}}, cmd_file_watch},
    {"sandbox", "pause", NULL, "freeze a sandbox", NULL, 0,
     {{PLACE_ONE, false, "ID"}}, cmd_sandbox_pause},
    {"sandbox", "resume", NULL, "let a paused sandbox go on", NULL, 0,
     {{PLACE_ONE, false, "ID"}}, cmd_sandbox_resume},
    {"sandbox", "timeout", NULL, "set how long a sandbox lives, from now on", NULL,
     0, {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "DURATION"}}, cmd_sandbox_timeout},
    {"sandbox", "url", NULL, "show the address of a port of a sandbox", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "PORT"}}, cmd_sandbox_url},
    {"sandbox", "kill", "rm", "end sandboxes", COMMANDS_OPTIONS(kill), {{PLACE_MANY, false, "ID"}}, cmd_sandbox_kill},
    {"", "run", NULL, "run a command in a sandbox of its own",
     COMMANDS_OPTIONS(run), {{PLACE_WORDS, false, "COMMAND"}}, cmd_run_once},
    {"job", "list", "ls", "list the jobs of a sandbox", NULL, 0, {{PLACE_ONE, false, "ID"}}, cmd_job_list},
    {"job", "logs", NULL, "print what a job has printed",
     COMMANDS_OPTIONS(logs), {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "JOB"}}, cmd_job_logs},
    {"job", "wait", NULL, "wait until a job has ended, and end as it did", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "JOB"}}, cmd_job_wait},
    {"job", "attach", NULL, "go back to a terminal that was left, or lost",
     COMMANDS_OPTIONS(attach), {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "JOB"}}, cmd_shell_attach},
    {"job", "kill", NULL, "send a signal to a job and all that it started",
     COMMANDS_OPTIONS(job_kill), {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "JOB"}}, cmd_job_kill},
    {"job", "rm", NULL, "forget jobs that have ended", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "JOB"}}, cmd_job_forget},
    {"provider", "list", "ls", "list providers; * marks the default", NULL, 0, {{0}},
     cmd_provider_list},
    {"provider", "info", NULL, "show what a provider declares and where it came from", NULL, 0,
     {{PLACE_ONE, false, "ID"}}, cmd_provider_info},
    {"provider", "export", NULL, "write a provider that is compiled in as a plugin for any host", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, true, "DIR"}}, cmd_plugin_export},
    {"provider", "test", NULL, "run the contract kit against a provider", COMMANDS_OPTIONS(test),
     {{PLACE_ONE, false, "ID"}}, cmd_plugin_test},
    {"provider", "serve", NULL, "be the plugin: speak EPP/1 on standard input and output", NULL, 0,
     {{PLACE_ONE, false, "ID"}}, cmd_plugin_serve},
    {"provider", "install", NULL, "put a plugin in",
     COMMANDS_OPTIONS(install), {{PLACE_ONE, true, "SOURCE"}}, cmd_install_add},
    {"provider", "update", NULL, "fetch plugins anew from where they came from",
     COMMANDS_OPTIONS(update), {{PLACE_MAYBE, false, "ID"}}, cmd_install_update},
    {"provider", "rollback", NULL, "go back to the plugin before the last change", COMMANDS_OPTIONS(rollback),
     {{PLACE_ONE, false, "ID"}}, cmd_install_rollback},
    {"provider", "uninstall", "rm", "remove a plugin", COMMANDS_OPTIONS(uninstall), {{PLACE_ONE, false, "ID"}},
     cmd_install_remove},
    {"provider", "default", NULL, "show or set which provider is used", NULL, 0, {{PLACE_MAYBE, false, "ID"}},
     cmd_provider_default},
    {"provider", "doctor", NULL, "check whether a provider can be used", COMMANDS_OPTIONS(doctor),
     {{PLACE_MAYBE, false, "ID"}}, cmd_doctor_check},
    {"provider", "verify", NULL, "compare a plugin's files with what was installed", NULL, 0,
     {{PLACE_MAYBE, false, "ID"}}, cmd_doctor_verify},
    {"config", "list", "ls", "list settings and their values", COMMANDS_OPTIONS(config), {{0}}, cmd_config_list},
    {"config", "get", NULL, "show the value of a setting", COMMANDS_OPTIONS(config),
     {{PLACE_ONE, false, "KEY"}}, cmd_config_get},
    {"config", "set", NULL, "set a setting, in ~/.abx", NULL, 0,
     {{PLACE_ONE, false, "KEY"}, {PLACE_ONE, true, "VALUE"}}, cmd_config_set},
    {"config", "unset", NULL, "take a setting out of ~/.abx", NULL, 0,
     {{PLACE_ONE, false, "KEY"}}, cmd_config_unset},
    {"config", "explain", NULL, "show where each setting comes from", NULL, 0, {{PLACE_MAYBE, false, "KEY"}},
     cmd_config_explain},
    {"config", "path", NULL, "show the path of config.toml", NULL, 0, {{0}}, cmd_config_path},
    {"", "agent", NULL, "the daemon inside a sandbox, by this same program", NULL, 0,
     {{PLACE_WORDS, false, "WORD"}}, cmd_about_agent},
    {"agent", "remove", NULL, "take what abx carried into a sandbox out again", COMMANDS_OPTIONS(agent_remove),
     {{PLACE_ONE, false, "ID"}}, cmd_job_remove_agent},
    {"", "version", NULL, "show the version and what abx was built with", NULL, 0, {{0}},
     cmd_about_version},
    {"", "help", NULL, "help on a command or a topic", NULL, 0, {{PLACE_ANY, false, "WORD"}}, cmd_about_help},
};

static const ArgTable commands__table = {
    commands__rows, COUNT_OF(commands__rows), commands__globals, COUNT_OF(commands__globals),
};

const ArgTable *commands_table(void)
{
    return &commands__table;
}
