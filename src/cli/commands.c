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

#define COMMANDS_RECURSIVE(help) {'r', ARG_FLAG, false, "recursive", NULL, NULL, help}
#define COMMANDS_NUL {'0', ARG_FLAG, false, "null", NULL, NULL, "a NUL behind each path instead of a line feed"}

static const ArgOption commands__file_ls[] = {
    {'l', ARG_FLAG, false, "long", NULL, NULL, "with mode, size and time"},
    {'R', ARG_FLAG, false, "recursive", NULL, NULL, "with all that is below"},
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
    {0, ARG_VALUE, false, "mode", NULL, "MODE", "of a new file, in octal; 0644"},
};

static const ArgOption commands__file_mkdir[] = {
    {'p', ARG_FLAG, false, "parents", NULL, NULL, "its parents, too; one that is there already is fine"},
};

static const ArgOption commands__file_rm[] = {
    COMMANDS_RECURSIVE("folders, too, with all that is in them"),
    {'f', ARG_FLAG, false, "force", NULL, NULL, "what is not there is no failure"},
};

#define COMMANDS_OPTIONS(list) .options = commands__##list, .option_count = COUNT_OF(commands__##list)

#define COMMANDS_ONE_WORD \
    "One COMMAND is a line for the shell of the sandbox; several words are a program\n" \
    "and its arguments, which arrive exactly. Options may stand behind ID, too; they\n" \
    "end at the first word there that is none, or at `--`.\n"

#define COMMANDS_INPUT \
    "A standard input that is a pipe, a socket or a file is sent, with its end; a\n" \
    "terminal with -i alone; /dev/null is not. In a loop such as `while read` put\n" \
    "`</dev/null` behind the command, or it takes the lines that the loop reads.\n" \
    "Input never keeps abx from ending with the command. Where it cannot be sent\n" \
    "(--agent never), one that holds something, or any with -i, is refused: E8004.\n" \
    "A pipe that nobody has written to yet is not; if something comes before the\n" \
    "command ends, that is E8004 then.\n"

#define COMMANDS_PATHS "All are tried; the first failure decides the exit status.\n"

#define COMMANDS_KEYS \
    "KEY is a setting of abx (http_timeout, provider), one of the provider that is\n" \
    "used (base_url; --provider ID chooses), or providers.ID.KEY.\n"

#define COMMANDS_TERMINAL \
    "Ctrl-P Ctrl-Q leaves it running, and `abx job attach` comes back to it. When the\n" \
    "connection is lost, abx tries for a minute to connect again; it runs on alone\n" \
    "for ten minutes. The terminal here gets its mode back whatever happens, but\n" \
    "when abx is killed by SIGKILL: `stty sane` helps then.\n"

static const ArgCommand commands__rows[] = {
    {"sandbox", "create", NULL, "make a sandbox that is ready for commands",
     "The result is the sandbox, as `info` shows it; with -q its id alone. A time\n"
     "below the backend's minimum is raised to it, which is said on standard error.\n"
     "When creating fails or is interrupted, what was made is removed again.\n",
     "  abx --provider opensandbox sandbox create --timeout 10m\n"
     "  abx create --template node:22 -e NODE_ENV=test -m project=demo\n"
     "  id=$(abx -q create -- tail -f /dev/null)\n",
     COMMANDS_OPTIONS(create), {{PLACE_DASHED, false, "ENTRYPOINT"}}, cmd_sandbox_create},
    {"sandbox", "list", "ls", "list sandboxes", "",
     "  abx sandbox list -m project=demo\n"
     "  abx -q sandbox list -m job=nightly | xargs -r abx sandbox kill\n",
     COMMANDS_OPTIONS(list), {{0}}, cmd_sandbox_list},
    {"sandbox", "info", NULL, "show what is known of a sandbox", "",
     "  abx --json sandbox info ID\n", NULL, 0, {{PLACE_ONE, false, "ID"}}, cmd_sandbox_info},
    {"sandbox", "exec", NULL, "run a command in a sandbox and end as it does",
     COMMANDS_ONE_WORD
     "\n"
     "Output is passed on as it comes and nothing is added. The exit status is the\n"
     "command's (`abx help exit-codes`). With --json both outputs are gathered, 64 MiB\n"
     "at most, and printed with the exit code as one document.\n"
     "\n"
     COMMANDS_INPUT
     "\n"
     "Ctrl-C, SIGTERM, SIGHUP and SIGQUIT go to the command and all that it started;\n"
     "what is not gone after 2 seconds is killed. A second one leaves at once. What\n"
     "the command leaves in the background when it ends by itself goes on. Ctrl-Z\n"
     "stops abx alone: after 20 seconds without abx the agent ends the command, and\n"
     "the result is unknown (125).\n"
     "\n"
     "With -d it goes on as a job, reading from /dev/null: `abx help job`.\n"
     "\n"
     "With -t it gets a terminal of this one's size, and TERM; all that it prints is\n"
     "standard output. -t -i is a session as of `shell`, where a standard input that\n"
     "is no terminal is refused; -t alone sends nothing, and Ctrl-C stays a signal.\n"
     "\n"
     "An --env-file has a NAME=VALUE to a line, taken as it is: no quotes, nothing is\n"
     "expanded. NAME alone takes the value from the environment of abx. Lines that are\n"
     "empty or start with # are passed over.\n"
     "\n"
     "All this is exact where abx can carry itself into the sandbox (docs/agent.md).\n"
     "Where it cannot, or with --agent never, the backend's own calls run the command,\n"
     "and these are not exact: daemons that report output line by line do not say\n"
     "whether the last line ended in a line feed: it is printed with one then, and\n"
     "bytes that are not UTF-8 arrive as U+FFFD. -u, -d and -t are refused there\n"
     "(E8004), but for -t where a plugin has terminals of its own.\n",
     "  abx exec ID 'ls /tmp | wc -l'\n"
     "  abx exec ID -e DEBUG=1 -w /srv python3 app.py --port 80\n"
     "  tar c src | abx exec ID tar x -C /srv\n"
     "  abx exec ID -u nobody --timeout 30s -- make test\n"
     "  job=$(abx exec -d ID make all)\n",
     COMMANDS_OPTIONS(exec), {{PLACE_ONE, false, "ID"}, {PLACE_WORDS, false, "COMMAND"}}, cmd_exec_run},
    {"sandbox", "shell-stream", NULL, "run a shell command and stream its output",
     COMMANDS_ONE_WORD
     "\n"
     "As exec, but with --json each piece of output is a line of JSON, as soon as it\n"
     "comes: {\"stream\":\"stdout\",\"data\":\"...\"}, data_b64 where it is not UTF-8; the\n"
     "last line has exit_code or signal.\n",
     "  abx sandbox shell-stream ID --command 'for i in 1 2 3; do date; sleep 1; done'\n"
     "  abx --json sandbox shell-stream ID --command 'make 2>&1'\n",
     COMMANDS_OPTIONS(stream), {{PLACE_ONE, false, "ID"}, {PLACE_WORDS, false, "COMMAND"}}, cmd_exec_stream},
    {"sandbox", "shell", NULL, "open a shell in a sandbox, or run a command in a terminal there",
     "Without COMMAND the shell is $SHELL of the sandbox, else bash, else sh; it is\n"
     "not a login shell, so PATH is the image's. TERM is handed on; LANG and LC_* are\n"
     "not, but by -e LANG. Every key goes there, Ctrl-C too; the size follows. A\n"
     "signal to abx is handed on and ends it within 2 seconds. Exit status: as exec.\n"
     "\n"
     COMMANDS_TERMINAL,
     "  abx shell ID\n"
     "  abx shell ID -u www-data -w /srv\n"
     "  abx shell ID -e LANG top\n",
     COMMANDS_OPTIONS(shell), {{PLACE_ONE, false, "ID"}, {PLACE_WORDS, false, "COMMAND"}}, cmd_shell_open},
    {"sandbox", "port-forward", NULL, "let ports of this machine lead to ports in a sandbox",
     "PORTS is LOCAL:REMOTE, one port for both, or ADDRESS:LOCAL:REMOTE; LOCAL 0 is a\n"
     "free one. Each connection here becomes one to 127.0.0.1 (or ::1) in the sandbox,\n"
     "by the agent: nothing is published there. All ports are listened at, or none;\n"
     "then each is printed, with --json as a line {\"local\", \"remote\"}. It goes on\n"
     "until Ctrl-C. A lost link is made anew. -v says what opens and closes.\n",
     "  abx port-forward ID 8080:80 5432\n  abx port-forward ID 0:3000\n"
     "  abx port-forward --address 0.0.0.0 ID 8080:80\n",
     COMMANDS_OPTIONS(forward), {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PORTS"}}, cmd_forward_run},
    {"sandbox", "upload", NULL, "copy a file into a sandbox",
     "The file is there whole or not at all: it is written under another name, its\n"
     "size is compared, and it is renamed. An existing file keeps its mode. LOCAL - is\n"
     "standard input; a REMOTE that ends in / is a folder.\n",
     "  abx sandbox upload ID unicode.txt '/tmp/\xe4\xbd\xa0\xe5\xa5\xbd \xe4\xb8\x96\xe7\x95\x8c.txt'\n"
     "  tar c src | abx sandbox upload ID - /tmp/src.tar\n",
     NULL, 0, {{PLACE_ONE, false, "ID"}, {PLACE_ONE, true, "LOCAL"}, {PLACE_ONE, false, "REMOTE"}}, cmd_copy_upload},
    {"sandbox", "download", NULL, "copy a file out of a sandbox",
     "Written beside LOCAL and renamed, so nothing half-written is seen under that\n"
     "name. LOCAL - is standard output; a folder takes the file's own name, and so\n"
     "does the working directory when LOCAL is left out.\n",
     "  abx sandbox download ID '/tmp/\xe4\xbd\xa0\xe5\xa5\xbd \xe4\xb8\x96\xe7\x95\x8c.txt' back.txt\n"
     "  abx sandbox download ID /var/log/app.log - | grep error\n",
     NULL, 0, {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "REMOTE"}, {PLACE_MAYBE, true, "LOCAL"}}, cmd_copy_download},
    {"file", "ls", "list", "list what is in folders of a sandbox",
     "PATH is / where it is left out; a file is listed itself. Nothing is hidden. With\n"
     "several PATHs, each line begins with its own. Links are not followed, but by\n"
     "PATH. Into a pipe go the bytes of names as they are: -0 where one may hold a\n"
     "line feed; a terminal is shown such characters as \\u000a. -l: size in bytes,\n"
     "time in UTC, - for what is not known.\n"
     COMMANDS_PATHS,
     "  abx ls ID /tmp\n  abx file ls -lR ID /srv\n  abx --json file ls ID /srv\n",
     COMMANDS_OPTIONS(file_ls), {{PLACE_ONE, false, "ID"}, {PLACE_ANY, false, "PATH"}}, cmd_look_ls},
    {"file", "find", NULL, "list what is below folders, and like a pattern",
     "PATH is / where it is left out, and is listed, too. A slash and a first dot are\n"
     "characters like any other for PATTERN. Links are not followed; the output is as\n"
     "of `ls`.\n",
     "  abx file find ID /srv --name '*.py' --type f\n  abx find -0 ID /srv --name '*.pyc' | xargs -0 abx file rm ID\n",
     COMMANDS_OPTIONS(file_find), {{PLACE_ONE, false, "ID"}, {PLACE_ANY, false, "PATH"}}, cmd_look_find},
    {"file", "stat", NULL, "show what lies at a path", "Of a link it is the link itself.\n" COMMANDS_PATHS,
     "  abx stat ID /etc/passwd\n", NULL, 0, {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_look_stat},
    {"file", "cat", NULL, "print files of a sandbox, one behind the other", "Bytes as they are.\n" COMMANDS_PATHS,
     "  abx cat ID /var/log/a.log /var/log/b.log | grep error\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_file_cat},
    {"file", "write", NULL, "write standard input to a file",
     "The file is there whole or not at all. Missing folders are made.\n",
     "  echo 'a = 1' | abx write ID /srv/settings.py\n", COMMANDS_OPTIONS(file_write),
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "PATH"}}, cmd_file_write},
    {"file", "mkdir", NULL, "make folders", COMMANDS_PATHS, "  abx mkdir -p ID /srv/app/data\n", COMMANDS_OPTIONS(file_mkdir),
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_file_mkdir},
    {"file", "mv", NULL, "move or rename a file or a folder",
     "TO is the new name, or a folder to move into. A file there is replaced, a folder\n"
     "never. Missing folders are made.\n",
     "  abx mv ID /tmp/new.conf /etc/app.conf\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "FROM"}, {PLACE_ONE, false, "TO"}}, cmd_file_mv},
    {"file", "rm", NULL, "remove files, and folders with -r",
     "A link is removed, and not what it leads to. `abx rm` is `abx sandbox kill`.\n" COMMANDS_PATHS,
     "  abx file rm ID /tmp/a /tmp/b\n  abx file rm -rf ID /srv/cache\n", COMMANDS_OPTIONS(file_rm),
     {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "PATH"}}, cmd_file_rm},
    {"sandbox", "pause", NULL, "freeze a sandbox", "", "  abx sandbox pause ID\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}}, cmd_sandbox_pause},
    {"sandbox", "resume", NULL, "let a paused sandbox go on", "", "  abx sandbox resume ID\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}}, cmd_sandbox_resume},
    {"sandbox", "timeout", NULL, "set how long a sandbox lives, from now on", "", "  abx sandbox timeout ID 30m\n", NULL,
     0, {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "DURATION"}}, cmd_sandbox_timeout},
    {"sandbox", "url", NULL, "show the address of a port of a sandbox",
     "The address comes first; lines behind it are headers that every request to it\n"
     "needs.\n",
     "  curl \"$(abx sandbox url ID 8000)/index.html\"\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "PORT"}}, cmd_sandbox_url},
    {"sandbox", "kill", "rm", "end sandboxes",
     "One that is gone already is no failure. All are tried; the first failure decides\n"
     "the exit status.\n",
     "  abx sandbox kill ID --yes\n", COMMANDS_OPTIONS(kill), {{PLACE_MANY, false, "ID"}}, cmd_sandbox_kill},
    {"", "run", NULL, "run a command in a sandbox of its own",
     "A sandbox is made, the command is run in it as by `exec`, and the sandbox is\n"
     "removed, whatever happens: a failure, Ctrl-C, a lost connection. A second Ctrl-C\n"
     "waits no longer for the command; one during the removal leaves at once, and the\n"
     "name of what is left is printed. An abx that is killed cannot do this: then the\n"
     "sandbox ends by itself, after --lifetime.\n"
     "\n"
     "The exit status is the command's; 125 where the sandbox could not be made, or\n"
     "not be removed behind a command that ended with 0.\n"
     "\n" COMMANDS_INPUT,
     "  abx run -- python3 -c 'print(6 * 7)'\n"
     "  abx run --template node:22 -e CI=1 --timeout 10m 'npm install && npm test'\n"
     "  abx run --keep true\n",
     COMMANDS_OPTIONS(run), {{PLACE_WORDS, false, "COMMAND"}}, cmd_run_once},
    {"job", "list", "ls", "list the jobs of a sandbox",
     "A job is a command that was started with `exec -d`, or a terminal that was left\n"
     "or lost. It stays in the list, with its result and the last MiB of its output,\n"
     "until `job rm` or the sandbox's end.\n",
     "  abx job list ID\n  abx --json job ls ID\n", NULL, 0, {{PLACE_ONE, false, "ID"}}, cmd_job_list},
    {"job", "logs", NULL, "print what a job has printed",
     "Its standard output and error come as they were. When more than a MiB was\n"
     "printed, the beginning is gone, which a notice says. With -f it goes on until\n"
     "the job has ended; Ctrl-C ends the looking on, not the job. With --json lines\n"
     "as of shell-stream.\n",
     "  abx job logs ID JOB\n  abx job logs -f ID JOB | grep -m1 ready\n",
     COMMANDS_OPTIONS(logs), {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "JOB"}}, cmd_job_logs},
    {"job", "wait", NULL, "wait until a job has ended, and end as it did",
     "The exit status is the job's, as that of `exec` is the command's; with --json a\n"
     "document says it. Nothing of the job's own output is printed. A job that has\n"
     "ended can be waited for again and again. Ctrl-C ends the waiting, not the job.\n",
     "  abx job wait ID JOB && abx download ID /tmp/result\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "JOB"}}, cmd_job_wait},
    {"job", "attach", NULL, "go back to a terminal that was left, or lost",
     "What it printed last is shown again, up to 1 MiB. Whoever has it loses it.\n"
     "\n"
     COMMANDS_TERMINAL,
     "  abx job attach ID JOB\n",
     COMMANDS_OPTIONS(attach), {{PLACE_ONE, false, "ID"}, {PLACE_ONE, false, "JOB"}}, cmd_shell_attach},
    {"job", "kill", NULL, "send a signal to a job and all that it started",
     "SIGTERM, unless -s names another. The job stays in the list.\n",
     "  abx job kill ID JOB\n  abx job kill -s KILL ID JOB\n",
     COMMANDS_OPTIONS(job_kill), {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "JOB"}}, cmd_job_kill},
    {"job", "rm", NULL, "forget jobs that have ended",
     "Result and output go. One that still runs is refused (E8003).\n",
     "  abx job rm ID JOB\n", NULL, 0, {{PLACE_ONE, false, "ID"}, {PLACE_MANY, false, "JOB"}}, cmd_job_forget},
    {"provider", "list", "ls", "list providers; * marks the default", "", "  abx --json provider list\n", NULL, 0, {{0}},
     cmd_provider_list},
    {"provider", "info", NULL, "show what a provider declares and where it came from",
     "The document is JSON in both forms. `receipt` is what was installed, from where,\n"
     "and what was agreed to; null for a provider that is compiled in.\n",
     "  abx provider info opensandbox\n", NULL, 0, {{PLACE_ONE, false, "ID"}}, cmd_provider_info},
    {"provider", "export", NULL, "write a provider that is compiled in as a plugin for any host",
     "DIR gets a manifest and this program; it must be new or empty. Install it from\n"
     "there, with this abx or another host.\n",
     "  abx provider export opensandbox ./opensandbox\n", NULL, 0,
     {{PLACE_ONE, false, "ID"}, {PLACE_ONE, true, "DIR"}}, cmd_plugin_export},
    {"provider", "test", NULL, "run the contract kit against a provider",
     "18 tests, each with a sandbox of its own that is removed again. One is skipped\n"
     "when the provider does not declare what it needs. The last line counts them;\n"
     "the exit status is 1 when one failed.\n",
     "  abx provider test opensandbox -o base_url=http://127.0.0.1:8080\n", COMMANDS_OPTIONS(test),
     {{PLACE_ONE, false, "ID"}}, cmd_plugin_test},
    {"provider", "serve", NULL, "be the plugin: speak EPP/1 on standard input and output",
     "For hosts, not for people. The configuration comes in the first request, and\n"
     "from nowhere else: no environment, no file, no option.\n",
     "  abx provider serve opensandbox\n", NULL, 0, {{PLACE_ONE, false, "ID"}}, cmd_plugin_serve},
    {"provider", "install", NULL, "put a plugin in",
     "SOURCE is a folder, a .tar or .tar.gz, OWNER/REPO[//DIR][@REF], the address of a\n"
     "git repository, or registry:ID. Its files are fetched once, hashed, shown to you\n"
     "with all that they may do, copied, and started once; when that fails the old\n"
     "state is back. A git source must be pinned to a full commit id, or agreed to by\n"
     "hand. A pin proves the content, byte by byte, and not that the commit belongs\n"
     "to a branch of that repository; it is as strong as SHA-1. --sha256 is stronger.\n",
     "  abx provider install ./my-plugin\n"
     "  abx provider install https://example.com/you/plugins.git --subdir demo --ref \\\n"
     "      7f095cbe30ac4c8a22abbb20945546185cd0151a --yes\n"
     "  abx provider install ./my-plugin --link --yes\n",
     COMMANDS_OPTIONS(install), {{PLACE_ONE, true, "SOURCE"}}, cmd_install_add},
    {"provider", "update", NULL, "fetch plugins anew from where they came from",
     "Without ID every installed plugin; the first failure ends it. What is pinned\n"
     "stays as it is: --ref moves the pin (what that proves: `abx help provider\n"
     "install`). A local plugin is installed again with `install --force`.\n",
     "  abx provider update --check\n"
     "  abx provider update demo --ref 7f095cbe30ac4c8a22abbb20945546185cd0151a\n",
     COMMANDS_OPTIONS(update), {{PLACE_MAYBE, false, "ID"}}, cmd_install_update},
    {"provider", "rollback", NULL, "go back to the plugin before the last change",
     "Its files and its receipt are those that were replaced; its data stays as it is.\n"
     "A second time goes forth again.\n",
     "  abx provider rollback demo\n", COMMANDS_OPTIONS(rollback), {{PLACE_ONE, false, "ID"}}, cmd_install_rollback},
    {"provider", "uninstall", "rm", "remove a plugin",
     "Its data stays for the next installation, unless --purge. If it was the default,\n"
     "alicloud-express is the default again.\n",
     "  abx provider uninstall demo --yes\n", COMMANDS_OPTIONS(uninstall), {{PLACE_ONE, false, "ID"}},
     cmd_install_remove},
    {"provider", "default", NULL, "show or set which provider is used",
     "Without ID: which one, and where that was said. With ID it is written to\n"
     "config.toml in the home of abx, where the other hosts read it; an environment\n"
     "variable still wins.\n",
     "  abx provider default\n  abx provider default opensandbox\n", NULL, 0, {{PLACE_MAYBE, false, "ID"}},
     cmd_provider_default},
    {"provider", "doctor", NULL, "check whether a provider can be used",
     "Is it installed, are its files as they were, are its settings there, does it\n"
     "start. Without ID the default provider. The exit status is 0 when all is well,\n"
     "else 2.\n",
     "  abx provider doctor opensandbox\n", COMMANDS_OPTIONS(doctor), {{PLACE_MAYBE, false, "ID"}}, cmd_doctor_check},
    {"provider", "verify", NULL, "compare a plugin's files with what was installed",
     "Names the files that changed, came or went. Without ID every installed plugin.\n"
     "The exit status is 0 when all are as they were, else 1.\n",
     "  abx provider verify\n", NULL, 0, {{PLACE_MAYBE, false, "ID"}}, cmd_doctor_verify},
    {"config", "list", "ls", "list settings and their values", COMMANDS_KEYS "With -q names alone, also of what is not set.\n",
     "  abx config list\n  abx --provider opensandbox --json config list\n", COMMANDS_OPTIONS(config), {{0}}, cmd_config_list},
    {"config", "get", NULL, "show the value of a setting", COMMANDS_KEYS "Nothing is printed for one that is not set.\n",
     "  abx config get http_timeout\n  abx config get providers.opensandbox.base_url\n", COMMANDS_OPTIONS(config),
     {{PLACE_ONE, false, "KEY"}}, cmd_config_get},
    {"config", "set", NULL, "set a setting, in ~/.abx",
     COMMANDS_KEYS
     "\n"
     "VALUE - is standard input, @FILE the content of a file. A secret must be given\n"
     "in one of these ways. It is kept in ~/.abx/.env, all else in ~/.abx/config.toml,\n"
     "where everything that is not changed stays as it is, comments included. Both are\n"
     "for you alone to read (mode 0600).\n",
     "  abx config set http_timeout 60\n"
     "  abx config set providers.opensandbox.base_url https://sandboxes.example.com\n"
     "  pass show sandboxes | abx config set providers.opensandbox.api_key -\n", NULL, 0,
     {{PLACE_ONE, false, "KEY"}, {PLACE_ONE, true, "VALUE"}}, cmd_config_set},
    {"config", "unset", NULL, "take a setting out of ~/.abx", COMMANDS_KEYS, "  abx config unset http_timeout\n", NULL, 0,
     {{PLACE_ONE, false, "KEY"}}, cmd_config_unset},
    {"config", "explain", NULL, "show where each setting comes from",
     "What comes first: options, the environment, ./.env, ~/.abx/.env, config.toml,\n"
     "what is derived from other settings, defaults.\n"
     "\n" COMMANDS_KEYS,
     "  abx config explain\n  abx --json config explain http_timeout\n", NULL, 0, {{PLACE_MAYBE, false, "KEY"}},
     cmd_config_explain},
    {"config", "path", NULL, "show the path of config.toml", "With --json that of the file with the secrets, too.\n",
     "  \"$EDITOR\" \"$(abx config path)\"\n", NULL, 0, {{0}}, cmd_config_path},
    {"", "agent", NULL, "the daemon inside a sandbox, by this same program",
     "Its words are its own, and it stands first: no global option goes in front.\n",
     "  abx agent serve --port 44772\n", NULL, 0, {{PLACE_WORDS, false, "WORD"}}, cmd_about_agent},
    {"agent", "remove", NULL, "take what abx carried into a sandbox out again",
     "The program, its folder, and what jobs left there (docs/agent.md). It comes back\n"
     "with the next command that needs it. Refused while there are jobs that were not\n"
     "removed with `job rm` (E8003), unless --force.\n",
     "  abx agent remove ID\n", COMMANDS_OPTIONS(agent_remove), {{PLACE_ONE, false, "ID"}}, cmd_job_remove_agent},
    {"", "version", NULL, "show the version and what abx was built with", "", "  abx version --json\n", NULL, 0, {{0}},
     cmd_about_version},
    {"", "help", NULL, "help on a command or a topic", "",
     "  abx help sandbox exec\n  abx help exit-codes\n", NULL, 0, {{PLACE_ANY, false, "WORD"}}, cmd_about_help},
};

static const ArgTable commands__table = {
    commands__rows, COUNT_OF(commands__rows), commands__globals, COUNT_OF(commands__globals),
};

const ArgTable *commands_table(void)
{
    return &commands__table;
}
