#include "cli/topics.h"

static const char topics__exit_codes[] =
    "  0  done; for `kill` also when the sandbox was gone already\n"
    "  1  failed\n"
    "  2  wrong usage, a setting that is wrong, or something abx refuses to do\n"
    "  3  authentication: the key is missing or not accepted\n"
    "  4  not found: a sandbox, a file in it, a provider\n"
    "  5  a time limit passed\n"
    "  6  a quota is used up\n"
    "130  Ctrl-C (143, 129 and 131: SIGTERM, SIGHUP and SIGQUIT)\n"
    "141  the reader of the output went away, as for any program that SIGPIPE ends\n"
    "\n"
    "`exec`, `run`, `shell`, `shell-stream`, `job attach` and `job wait` without\n"
    "--json end as the remote command did:\n"
    "  0-255  its own exit status, 128+N when signal N ended it\n"
    "    124  --timeout ended it\n"
    "    125  abx itself failed, so the result is not known; or a signal ended the\n"
    "         command and the backend does not say which\n"
    "    126  the command was found but could not be run\n"
    "    127  the command was not found\n"
    "    2    wrong usage\n"
    "A remote command may end with 124 to 127 by itself: only standard error and\n"
    "--json tell the two apart. A signal that abx got decides in the end, whatever\n"
    "the command made of it: 130, 143, 129 or 131.\n"
    "\n"
    "With --json they end with 0 whenever the remote result is known; `exit_code`\n"
    "or `signal` in the document says what it was. Otherwise the first table holds.\n";

static const char topics__environment[] =
    "A setting is looked for in this order: options (--provider, --option), the\n"
    "environment, .env in the working directory, .env and config.toml in the home of\n"
    "abx, defaults. `abx config explain` shows where each comes from.\n"
    "\n"
    "  ABX_PROVIDER             the provider, as --provider\n"
    "  ABX_OPENSANDBOX_BASE_URL, ABX_OPENSANDBOX_API_KEY, ABX_OPENSANDBOX_IMAGE, ...\n"
    "                           a setting of the provider opensandbox; other\n"
    "                           providers have ABX_<PROVIDER>_<SETTING>\n"
    "  ABX_SANDBOX_API_KEY      the key of alicloud-express, which other providers do\n"
    "                           not see; theirs are ABX_<PROVIDER>_API_KEY\n"
    "  ABX_DEFAULT_TEMPLATE     the template of `sandbox create`\n"
    "  ABX_HTTP_TIMEOUT         seconds that one small request may take\n"
    "What else `abx config list` shows is for other hosts, and for plugins that\n"
    "inherit it.\n"
    "\n"
    "Read from the environment alone, never from a .env file:\n"
    "  ABX_HOME                 the home of abx instead of ~/.abx\n"
    "  ABX_CA_FILE              certificates to trust, as --ca-file\n"
    "  SSL_CERT_FILE, SSL_CERT_DIR\n"
    "                           the same, where ABX_CA_FILE is not set\n"
    "  ABX_PROVIDER_REGISTRY    the catalog that registry:ID is looked up in: the\n"
    "                           path or the address of its index\n"
    "  PATH                     where ssh and the programs of plugins are found\n"
    "  HOME, SSH_AUTH_SOCK, SSH_AGENT_PID\n"
    "                           for ssh, which fetches plugins from ssh addresses\n"
    "  ABX_ALLOW_CWD_ENV        1: as --allow-cwd-env\n"
    "\n"
    "An address from .env in the working directory is not used with a key from\n"
    "elsewhere (E8012): such a file may come from a stranger.\n"
    "\n"
    "A plugin gets PATH, HOME, TMPDIR, TEMP, TMP, LANG, LC_*, and the variables that\n"
    "its manifest names (`abx provider info ID`, receipt, env_passthrough).\n";

static const char topics__output[] =
    "The result goes to standard output, everything else to standard error.\n"
    "\n"
    "With --json (the same as -o json) the result is one JSON object or array, and a\n"
    "failure is one line on standard error:\n"
    "  {\"error\": {\"code\": \"E2009\", \"message\": \"...\", \"suggestion\": \"...\",\n"
    "             \"docs_url\": \"\", \"retryable\": false}}\n"
    "\n"
    "  create, info, pause, resume, timeout   sandbox_id, provider, template, status,\n"
    "      metadata, started_at, end_at, timeout, region; `list` is an array of them\n"
    "  exec, run     exit_code or signal (null: not known which), stdout, stderr,\n"
    "                duration_ms; timed_out when --timeout ended it\n"
    "  exec -d       job, sandbox_id\n"
    "  job list      an array of job, state (running, ended, lost), command, pid,\n"
    "                started_at, ended_at, tty, attached, exit_code or signal,\n"
    "                timed_out, printed and kept_from (bytes of output in all, and\n"
    "                the first that is still there)\n"
    "  job wait      exit_code or signal, timed_out\n"
    "  job logs      lines as of shell-stream\n"
    "  job kill, rm  job, signal; an array when several were named\n"
    "  agent remove  sandbox_id, removed\n"
    "  shell-stream  lines {\"stream\":\"stdout\",\"data\":\"...\"}; the last has exit_code\n"
    "                or signal\n"
    "  upload        path (in the sandbox), size\n"
    "  download      path (here), size\n"
    "  file ls, find    an array of path, type (file, folder, link, other), size,\n"
    "                   mode (octal), modified\n"
    "  file stat        one of them; an array when several were named\n"
    "  file write       path, size\n"
    "  file mkdir, mv, rm   an array of the paths that it did\n"
    "  kill          sandbox_id, killed; an array when several were named\n"
    "  url           url, headers\n"
    "  provider install, rollback   the receipt, which `info` has as `receipt`\n"
    "  provider update   an array of id, installed, available, changes, status\n"
    "  provider doctor   id, ok, checks: an array of name, ok, detail, suggestion\n"
    "  provider verify   id, ok, trust, tree_sha256, detail, changed, added, missing;\n"
    "                    an array without ID\n"
    "\n"
    "What is not known is left out. Output that is not UTF-8 is in stdout_b64,\n"
    "stderr_b64 and data_b64 instead. Names are only ever added; `abx version --json`\n"
    "has output_version, which changes when one must change its meaning.\n"
    "\n"
    "On a terminal, characters that could steer it are shown as \\u001b and the like;\n"
    "the output of exec, run, shell, shell-stream, job logs, job attach and\n"
    "`download ID FILE -` is not.\n";

static const char topics__providers[] =
    "A provider is the backend that sandboxes run on. --provider, ABX_PROVIDER or the\n"
    "default chooses one; `abx provider list` shows all.\n"
    "\n"
    "opensandbox: an OpenSandbox server. Settings, each as --option KEY=VALUE, as\n"
    "ABX_OPENSANDBOX_<KEY>, or by `abx config set providers.opensandbox.KEY VALUE`:\n"
    "  base_url            the server; http://127.0.0.1:8080\n"
    "  api_key             its key; never on the command line: --option api_key=@FILE\n"
    "  image               the image of template `base`; python:3.12-slim. Any other\n"
    "                      template name is the name of an image\n"
    "  entrypoint          what keeps a sandbox running; automatic\n"
    "  use_server_proxy    true: reach sandboxes through the server alone\n"
    "  cpu, memory         limits of a sandbox, such as 500m and 512Mi\n"
    "  ready_timeout       seconds in which a new sandbox must answer; 30\n"
    "\n"
    "A sandbox is named ID, or PROVIDER:ID to be sure.\n"
    "\n"
    "Plugins are providers that are installed: a folder with a manifest\n"
    "(abx-provider.toml) and a program that abx starts and talks to. They lie in\n"
    "~/.abx/providers, where the other hosts of the same system (the Python SDK) find\n"
    "them, too; one that is installed goes before one that is compiled in.\n"
    "  abx provider install SOURCE     put one in: from a folder, an archive, git, a\n"
    "                                  catalog; what it may do is shown, and asked\n"
    "  abx provider info ID            what it declares, and its settings: each is\n"
    "                                  ABX_<ID>_<KEY>, or --option KEY=VALUE\n"
    "  abx provider doctor ID          whether it can be used, and if not, why\n"
    "  abx provider default ID         use it where nothing else is said\n"
    "  abx provider verify             whether the files are as they were installed\n"
    "  abx provider rollback ID        back to the one before the last change\n"
    "  abx provider uninstall ID\n"
    "A plugin runs with your rights. abx gives it an environment of its own and a\n"
    "folder for its data, hashes its files before every start, and confines nothing.\n";

static const Topic topics__rows[] = {
    {"exit-codes", "what the exit status means", topics__exit_codes},
    {"environment", "variables that abx reads", topics__environment},
    {"output", "what is printed, and the JSON documents", topics__output},
    {"providers", "backends and their settings", topics__providers},
};

const Topic *topics_all(size_t *count)
{
    *count = COUNT_OF(topics__rows);
    return topics__rows;
}

const Topic *topics_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(topics__rows); i++)
        if (strcmp(topics__rows[i].name, name) == 0)
            return &topics__rows[i];
    return NULL;
}
