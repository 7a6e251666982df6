/* limits.h - every number that says "no more than this", with its reason.
 *
 * A test stands on both sides of each. Times are in milliseconds.
 */
#ifndef ABX_LIMITS_H
#define ABX_LIMITS_H

/* Memory */
#define ARENA_COMMAND       ((size_t)256 << 20) /* reserved, not used: pages come as they are touched */
#define LIMIT_COPY_BLOCK    ((size_t)64 << 10)  /* one piece of a transfer: large enough that calls do not count */

/* JSON */
#define LIMIT_JSON_BYTES    ((size_t)128 << 20) /* one document in memory; callers have smaller limits of their own */
#define LIMIT_JSON_DEPTH    128                 /* nesting; the deepest real document has 7 */
#define LIMIT_JSON_VALUES   1000000             /* in one document, so that it fits an arena; 200 sandboxes have 8000 */

/* TOML */
#define LIMIT_TOML_BYTES    ((size_t)1 << 20)   /* one document: a config.toml; a manifest has 256 KiB */
#define LIMIT_TOML_DEPTH    128                 /* levels of tables and arrays; a schema in a manifest has 16 */
#define LIMIT_TOML_VALUES   100000              /* with the tables, so that it fits an arena */
#define LIMIT_TOML_DIGITS   4300                /* of one integer, as the other host has it */

/* HTTP */
#define LIMIT_HEAD          ((size_t)256 << 10) /* a status or request line with all its headers */
#define LIMIT_HEADERS       256                 /* fields in one head */
#define LIMIT_CHUNK_LINE    ((size_t)4 << 10)   /* a chunk's size with its extensions */
#define LIMIT_TRAILERS      ((size_t)16 << 10)  /* what may follow the last chunk */
#define LIMIT_INTERIM       16                  /* 1xx answers before the real one */
#define LIMIT_ERROR_BODY    ((size_t)64 << 10)  /* how much of a refusal is read to find its message */
#define LIMIT_ANSWER        ((size_t)8 << 20)   /* a JSON answer: 200 sandboxes are about 200 KB */
#define LIMIT_URL           ((size_t)32 << 10)  /* paths of 4096 bytes, percent-encoded, twice */
#define LIMIT_REDIRECTS     5

/* The HTTP server of the agent */
#define LIMIT_HTTPD_READ    ((size_t)128 << 10) /* taken from a connection at once; also what may wait unread */
#define LIMIT_HTTPD_OUT     ((size_t)4 << 20)   /* an answer that waits for its reader: the longest event twice */
#define LIMIT_HTTPD_ROOM    ((size_t)128 << 10) /* a handler is asked for more when less than this waits */
#define LIMIT_HTTPD_ARENA   ((size_t)1 << 20)   /* reserved for a request: its head, twice, and small answers */
#define LIMIT_HTTPD_DRAIN   ((size_t)256 << 10) /* a body nobody wants is read to its end up to this, to keep the connection */
#define LIMIT_HTTPD_HEAD_MS 30000               /* from the first byte of a head to its last */
#define LIMIT_HTTPD_KEEP_MS 120000              /* between two requests; clients drop theirs after 20 to 60 s */
#define LIMIT_HTTPD_BODY_MS 60000               /* a body of which not a byte comes */
#define LIMIT_HTTPD_SEND_MS 600000              /* an answer of which not a byte is taken: a person may read a page of it */
#define LIMIT_HTTPD_PROBE_S 75                  /* to ask a silent client's kernel whether it is there: past its 60 s of FIN-WAIT */
#define LIMIT_HTTPD_LINGER_MS 5000              /* to let a client read a refusal while it still sends */

/* The agent */
#define LIMIT_AGENT_JSON    ((size_t)1 << 20)   /* a request in JSON; one argument of exec can be 128 KiB */
#define LIMIT_AGENT_ARENA   ((size_t)64 << 20)  /* reserved while one is looked at */
#define LIMIT_AGENT_LINE    ((size_t)256 << 10) /* of output in one event; a longer line goes out in pieces */
#define LIMIT_AGENT_ENV     4096                /* variables; execve has room for less than 2 MiB of them */
#define LIMIT_AGENT_ENDED   1000                /* commands whose result is remembered, */
#define LIMIT_AGENT_TEXTS   ((size_t)8 << 20)   /* as long as their texts are no longer than this, */
#define LIMIT_AGENT_LOGS    200                 /* with the output of these, each an open file */
#define LIMIT_AGENT_NAMES   ((size_t)64 << 20)  /* the names in one folder: a million of them */
#define LIMIT_AGENT_TERMINALS 200               /* sessions of /pty, each with a ring of 1 MiB once it has begun */
#define LIMIT_AGENT_PING_MS 3000                /* on a silent event stream; clients wait 10 to 20 s */
#define LIMIT_AGENT_TERM_MS 3000                /* from SIGTERM to SIGKILL, as the stock daemon has it */

/* A terminal here and a command there */
#define LIMIT_CONSOLE_OUT   ((size_t)64 << 10)  /* what waits for the terminal, or for the connection, before no more is taken */
#define LIMIT_CONSOLE_HELD  ((size_t)8 << 20)   /* with what was on its way: the largest window twice */
#define LIMIT_CONSOLE_HOLD_S 600                /* without a connection it lives on: time to find another network */
#define LIMIT_CONSOLE_AGAIN_MS 60000            /* to connect again by itself, before somebody is asked to */
#define LIMIT_CONSOLE_LEAVE_MS 2000             /* from a signal to the end of what did not end by itself */

/* The carried helper */
#define LIMIT_CARRY_QUEUE   ((size_t)256 << 10) /* frames for a client that the kernel does not take yet */
#define LIMIT_CARRY_INPUT   ((size_t)2 << 20)   /* the window of DATA, 50 MB/s at 40 ms: what waits for a program that does not read */
#define LIMIT_CARRY_START   ((size_t)64 << 20)  /* reserved while a START of 4 MiB is looked at */
#define LIMIT_CARRY_FIRST   ((size_t)5 << 20)   /* the client's first bytes, in a variable or a file: a START and a little */
#define LIMIT_CARRY_WAIT_MS 10000               /* for a connection, a HELLO, a START, each */
#define LIMIT_CARRY_KILL_MS 2000                /* from HUP or TERM to KILL, and as long again until it is given up */
#define LIMIT_CARRY_ENDED_MS 5000               /* the end of a held command waits for one who asks for it */
#define LIMIT_CARRY_STEP_MS 1000                /* a step of the loop counts as no more: a paused sandbox does not age */
#define LIMIT_CARRY_SIGNALLED_MS 5000           /* a program that ends so soon after a client's signal ended by it */
#define LIMIT_CARRY_KNOCKS  8                   /* connections that have not shown the token; the oldest makes room */
#define LIMIT_CARRY_WATCHERS 8                  /* who reads what a job prints */
#define LIMIT_CARRY_JOBS    256                 /* jobs that are listed, each a connection */
#define LIMIT_CARRY_LIST_MS 2000                /* for their keepers to answer */
#define LIMIT_CARRY_COMMAND 200                 /* bytes of a command in the list */

/* multipart/form-data */
#define LIMIT_PARTS         1000                /* in one body, as the stock daemon has it */
#define LIMIT_PART_HEAD     ((size_t)16 << 10)  /* the fields of one part: a name and a file name */

/* TLS */
#define LIMIT_ROOTS_FILE    ((size_t)4 << 20)   /* a bundle of root certificates; those of systems have 220 KB */
#define LIMIT_ROOTS         2048                /* certificates; those of systems have 144 */

/* Event streams: one event carries at most one line of output, and a line of
 * 20 MB must pass; JSON can write a byte as six. */
#define LIMIT_EVENT         ((size_t)120 << 20)

/* Configuration files */
#define LIMIT_DOTENV        ((size_t)1 << 20)
#define LIMIT_DOTENV_VALUES ((size_t)4 << 20)   /* all its values together, since ${NAME} can double each line */
#define LIMIT_CONFIG        ((size_t)1 << 20)   /* config.toml; a full one has 2 KB */
#define LIMIT_SETTINGS_MS   10000               /* to wait for somebody else who is changing them */

/* Plugin trees: the first three are the other hosts', to the file and the byte */
#define LIMIT_TREE_FILES    2000
#define LIMIT_TREE_FILE     ((int64_t)10 << 20)
#define LIMIT_TREE_BYTES    ((int64_t)50 << 20)
#define LIMIT_TREE_PATHS    ((size_t)8 << 20)   /* all paths together: 2000 as long as Linux takes them */
#define LIMIT_TREE_DEPTH    200                 /* folders in folders, each an open descriptor while it is read; 1024 are usual */
#define LIMIT_TREE_ENTRIES  65536               /* names in a folder that is read, since folders are no files */

/* A plugin's manifest, as the other hosts have them */
#define LIMIT_MANIFEST      ((size_t)256 << 10)
#define LIMIT_DESCRIPTORS   128                 /* commands that a plugin may declare, */
#define LIMIT_DESCRIPTOR    ((size_t)64 << 10)  /* each as compact JSON */
#define LIMIT_DESCRIPTOR_DEPTH 16               /* values in values, the command itself being 0 */

/* The store of plugins */
#define LIMIT_RECEIPT       ((size_t)4 << 20)   /* a receipt repeats what a manifest of 256 KiB says, indented */
#define LIMIT_STORE_LOCK_MS 10000               /* to wait for somebody else's lock, as the other hosts do */
#define LIMIT_STORE_OLD_S   300                 /* a lock or a leftover is nobody's after this, as with the other hosts */
#define LIMIT_STORE_IDS     10000               /* plugins in a store that are listed */

/* The plugin server and what it writes */
#define LIMIT_SERVE_LINE    ((size_t)8 << 20)   /* one line to a host, its line feed included: the protocol's own limit */
#define LIMIT_SERVE_REQUEST ((size_t)64 << 20)  /* one line from it, and all that wait: hosts send a file as one line */
#define LIMIT_SERVE_BEGIN   ((size_t)64 << 10)  /* of a longer one, to find its id in */
#define LIMIT_SERVE_BACKLOG ((size_t)1 << 20)   /* for a host that does not read: then calls wait, */
#define LIMIT_SERVE_UNREAD  ((size_t)64 << 20)  /* and in the end nonsense is no longer answered */
#define LIMIT_SERVE_JOBS    128                 /* calls at once, each a process of about 1 MB; commands that run are some */
#define LIMIT_SERVE_SPARE   16                  /* of them never for commands, so that one can be signalled */
#define LIMIT_SERVE_HELD    1000                /* calls that wait for one of these to end */
#define LIMIT_SERVE_END_MS  2500                /* for clearing up at the end: hosts send SIGTERM after 3 s */
#define LIMIT_SERVE_EXPORT  (10 << 20)          /* a file of a plugin, as hosts have it */
/* Sources of plugins */
#define LIMIT_ARCHIVE       ((int64_t)50 << 20) /* compressed, as the other hosts have it */
#define LIMIT_ARCHIVE_BYTES ((int64_t)512 << 20)/* inflated: the tree's 50 MiB, headers, and what is passed over, such as .git */
#define LIMIT_ARCHIVE_NAMES 65536               /* entries of any kind: folders and what is passed over are no files */
#define LIMIT_TAR_EXTRA     ((size_t)256 << 10) /* a header for long names, or pax's: those with extended attributes have some KB */
#define LIMIT_CATALOG       ((size_t)8 << 20)   /* an index: 200 bytes for each of 40000 providers */
#define LIMIT_INDEX_MS      5000                /* its head, and a silence in it; */
#define LIMIT_INDEX_ALL_MS  30000               /* all of it */
#define LIMIT_CATALOG_MS    30000               /* the same of an archive */
#define LIMIT_DOWNLOAD_MS   600000              /* 50 MiB at 90 KB a second */
#define LIMIT_ERROR_URL     1024                /* an address in an error's text */
#define LIMIT_SOURCE        4096                /* SOURCE, a ref or a sub-folder: PATH_MAX; no URL is longer */

/* Git. A plugin has at most 2000 files and 50 MiB; its repository may have more. */
#define LIMIT_GIT_REFS      ((size_t)64 << 20)  /* an advertisement in which all refs come: 800,000 of them */
#define LIMIT_GIT_TREES     ((size_t)64 << 20)  /* a pack of one commit and its trees: Linux has 2.5 MB */
#define LIMIT_GIT_BLOBS     ((size_t)56 << 20)  /* a pack of the plugin's files: what does not shrink grows by little */
#define LIMIT_GIT_FULL      ((size_t)512 << 20) /* a pack of all files of a commit: Linux has 270 MB */
#define LIMIT_GIT_INFLATED  ((uint64_t)3 << 30) /* what such a pack may become; below 4 GiB. Linux: 1.5 GB */
#define LIMIT_GIT_SMALL     ((uint64_t)1 << 30) /* what the other two may become: 50 MiB, and bases of their deltas */
#define LIMIT_GIT_SPOOL     ((size_t)4 << 20)   /* of a pack in memory; more goes to a temporary file */
#define LIMIT_GIT_TREE      ((size_t)4 << 20)   /* one folder: 2000 files with the longest names are 600 KB */
#define LIMIT_GIT_FOLDERS   8192                /* folders that are walked; those without a file have no end otherwise */
#define LIMIT_GIT_PATH      4096                /* a path in a commit: PATH_MAX */
#define LIMIT_GIT_ARENA     ((size_t)48 << 20)  /* reserved: 8192 folders and 2000 files with the longest paths */
#define LIMIT_GIT_TAGS      8                   /* tags of tags */
#define LIMIT_GIT_STDERR    ((size_t)4 << 10)   /* the end of what ssh or git-upload-pack say */
#define LIMIT_GIT_MS        120000              /* one operation, as the other hosts have it */
#define LIMIT_GIT_SILENCE_MS 30000              /* of which not a byte comes: servers show life every 5 s */
#define LIMIT_PACK_OBJECTS  300000              /* in a pack: Linux has 90,000 */
#define LIMIT_PACK_OBJECT   ((size_t)10 << 20)  /* a content that is made by a delta, or is its base: the largest file */
#define LIMIT_PACK_KEEP     ((size_t)8 << 20)   /* contents kept while the deltas on them are resolved */
#define LIMIT_PACK_CHAIN    4095                /* deltas on deltas: the most that git makes */

/* Talking with the carried agent */
#define LIMIT_TALK_WINDOW   ((size_t)4 << 20)   /* output under way: 100 MB/s at 40 ms */
#define LIMIT_TALK_WINDOW_PIPE ((size_t)512 << 10)  /* below the MiB that execd's terminals keep */
#define LIMIT_TALK_WINDOW_LINES ((size_t)256 << 10) /* text, a third larger, held whole by some hosts */
#define LIMIT_TALK_ROOM     ((size_t)256 << 10) /* input that waits to go out, */
#define LIMIT_TALK_OUT      ((size_t)1 << 20)   /* with all else that does, but a START */
#define LIMIT_TALK_HELLO    256                 /* what the agent says of itself */
#define LIMIT_TALK_NAME     64                  /* of a job */
#define LIMIT_TALK_READS    64                  /* of which nothing is for the caller, in one call */
#define LIMIT_TALK_BYE_MS   2000                /* for the last word to go out */
#define LIMIT_TALK_TWO_MS   50                  /* between two looks where input and output have a descriptor each */
#define LIMIT_FORWARD_CONNS 1000                /* forwarded at once: each is a descriptor, of 1024 as a rule */
#define LIMIT_TALK_JOBS     ((size_t)4 << 20)   /* the list of jobs: 10,000 */

/* The command line */
#define LIMIT_SETTING       ((size_t)64 << 10)  /* a setting read from a file or standard input */
#define LIMIT_ENV_FILE      ((size_t)1 << 20)   /* a file with variables; a program can be given less than 2 MiB of them */
#define LIMIT_GATHER        ((size_t)64 << 20)  /* what a command prints, where --json holds it in memory */
#define LIMIT_DOCUMENT      ((size_t)512 << 20) /* a result on stdout: JSON can write one byte of the above as six */

/* Plugins (EPP) */
#define LIMIT_EPP_LINE      ((size_t)8 << 20)   /* one line, its line feed included: the protocol's own limit */
#define LIMIT_EPP_HELD      ((size_t)16 << 20)  /* lines that belong to commands that nobody has asked about yet */
#define LIMIT_EPP_STREAMS   256                 /* such commands */
#define LIMIT_EPP_LIST      ((size_t)64 << 20)  /* a list of sandboxes, all pages: 200,000 of them */
#define LIMIT_EPP_STDERR    ((size_t)64 << 10)  /* what is remembered of a plugin's stderr */
#define LIMIT_EPP_SPOKEN    ((size_t)256 << 10) /* of a message of one that is looked at */
#define LIMIT_EPP_VOICE     ((size_t)8 << 10)   /* and what is kept of it: more than an error holds */
#define LIMIT_EPP_TAIL      500                 /* characters of it that are shown */
#define LIMIT_EPP_FILE      6290000             /* a file in one line, in base64, with its name and what is around it */
#define LIMIT_EPP_TIMEOUT_S 86400               /* the longest life of a sandbox, and of a command, that can be asked for */
#define LIMIT_EPP_MARGIN_MS 5000                /* what a plugin has, past a command's own timeout, to report its end */
#define LIMIT_EPP_BYE_MS    2000                /* to answer `shutdown`, */
#define LIMIT_EPP_EXIT_MS   3000                /* to end when its input is closed, and again when SIGTERM came */
#define LIMIT_EPP_SOON_MS   300                 /* for one that reads no more to be seen to have died */
#define LIMIT_EPP_WATCH_MS  50                  /* between two looks at a plugin, where the kernel has no pidfd */

/* Copying trees (sync/) */
#define LIMIT_SYNC_DEPTH    200                 /* folders in folders: one descriptor each, of 1,024 that a process has */
#define LIMIT_SYNC_PATH     ((size_t)8192)      /* of an entry, in the copy; Linux takes 4,095 at once, and names of 255 */
#define LIMIT_SYNC_NAMES    ((size_t)64 << 20)  /* bytes of the names in folders that are open: 2 million of 30 */
#define LIMIT_SYNC_ROOTS    ((size_t)100000)    /* what one pattern may match */
#define LIMIT_WATCH_FOLDERS 100000              /* each about 1 KB of the kernel's memory, and a path of ours */
#define LIMIT_SYNC_HAVE     ((size_t)1000000)   /* files that a resumed copy knows of: 64 MB */
#define LIMIT_COPY_LISTED   ((size_t)1000)      /* entries that failed, named in the document of --json; all are counted */

/* Listing */
#define LIMIT_LISTING       ((size_t)32 << 20)  /* a folder's entries in JSON: 100,000 of 250 bytes, as many as LIMIT_JSON_VALUES lets in */
#define LIMIT_LIST_FOLDERS  ((size_t)64 << 20)  /* paths of folders that are still to be looked into: a million of them */
#define LIMIT_LIST_NAME     1024                /* bytes of one name: those of Linux have 255, and U+FFFD is three for one */

/* Copying between here and a sandbox (api/) */
#define LIMIT_COPY_DUE      ((size_t)16 << 20)  /* names of what is on its way: a MiB of entries, 512 bytes each at least */
#define LIMIT_COPY_BETWEEN  ((size_t)16 << 20)  /* from one sandbox, for another one: a window, a turn, and as much that was taken */
#define LIMIT_COPY_HAD      ((size_t)256 << 20) /* what a target has, as lines: a million files */

/* Showing plugins */
#define LIMIT_CONSENT       ((size_t)1 << 20)   /* one row of what a person is asked; a manifest has 256 KiB */

/* Waiting */
#define LIMIT_CONNECT_MS    10000               /* TCP and TLS together */
#define LIMIT_RESOLVE_MS    10000
#define LIMIT_NEAR_MS       1000                /* a sandbox whose state and address were asked is looked into without asking again */
#define LIMIT_CALL_MS       30000               /* one small call, unless `http_timeout` says otherwise */
#define LIMIT_SWITCH_MS     120000              /* until a pause or resume is done */
#define LIMIT_CREATE_MS     300000              /* the server may pull an image first */
#define LIMIT_READY_MS      30000               /* from running to the daemon's first answer */
#define LIMIT_SILENCE_MS    20000               /* a command's stream: the daemon pings every 3 s */
#define LIMIT_IDLE_MS       60000               /* a transfer in which not a byte moves */
#define LIMIT_STORE_SPEED   4096                /* and when it was sent, for the daemon to write it to disk: bytes a ms, */
#define LIMIT_STORE_MS      240000              /* and no longer than so */
#define LIMIT_KEEP_MS       20000               /* a kept connection; the server closes idle ones after 30 s */
#define LIMIT_CARRY_MS      120000              /* starting by the carried agent: it may have to be sent first, 1 MB */
#define LIMIT_CLEANUP_MS    5000                /* removing what a cancelled call left */

#endif
