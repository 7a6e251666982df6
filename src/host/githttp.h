/* githttp.h - git's smart protocol over HTTP (gitprotocol-http), as a GitLink.
 *
 * No credentials are sent, no redirect is followed, and an answer that is not
 * of the type that was asked for is not read: a login page, or a server that
 * has only files.
 */
#ifndef ABX_GITHTTP_H
#define ABX_GITHTTP_H

#include "host/gitlink.h"

/* Asks for the advertisement of `url`, http or https. */
ABX_FN bool githttp_open(Str url, const SourceHost *host, GitLink **out, Err *err) ABX_CHECK;

#endif
