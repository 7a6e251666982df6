/* gitpipe.h - git's protocol over the pipes of a program, as a GitLink: `ssh`,
 * which starts git-upload-pack on another machine, or git-upload-pack itself.
 *
 * These two are the only programs that are ever started for a source. They get
 * an environment made from nothing: PATH, LC_ALL=C, GIT_PROTOCOL, and for ssh
 * HOME, SSH_AUTH_SOCK and SSH_AGENT_PID. ssh asks no questions (BatchMode), so
 * the server's key must be known. What they say on stderr is quoted, cleaned,
 * when they fail.
 */
#ifndef ABX_GITPIPE_H
#define ABX_GITPIPE_H

#include "host/gitlink.h"

/* Behind "ssh://": [USER@]HOST[:PORT]/PATH, percent-encoded. */
ABX_FN bool gitpipe_ssh(Str rest, const SourceHost *host, GitLink **out, Err *err) ABX_CHECK;

/* [USER@]HOST:PATH, as it is. */
ABX_FN bool gitpipe_scp(Str source, const SourceHost *host, GitLink **out, Err *err) ABX_CHECK;

/* Behind "file://": an absolute path, percent-encoded. */
ABX_FN bool gitpipe_local(Str rest, const SourceHost *host, GitLink **out, Err *err) ABX_CHECK;

#endif
