/* forge.h - the archives that forges make of a commit.
 *
 * A table of hosts that are known to serve `commit` as a tar archive, and how
 * its address is made. What comes is believed in nothing: whoever asks compares
 * each file with the id that the commit's trees give it.
 */
#ifndef ABX_FORGE_H
#define ABX_FORGE_H

#include "host/source.h"

/* The archive's address for a repository's URL, or an empty Str where the table
 * has no row. *other (may be empty) is the one further host to which an https
 * redirect is followed, without credentials. */
ABX_FN Str forge_archive(Str url, Str commit, Arena *a, Str *other);

/* A file of the archive: the first part of its path is taken off. Its bytes come
 * in pieces through content->read(). The callback may leave them unread; what
 * read() says it hands on. */
typedef struct ForgeFile { Str path; bool executable; int64_t size; } ForgeFile;
typedef bool ForgeEach(void *ctx, const ForgeFile *f, Source *content, Err *err);

/* Fetch it and hand out its regular files. False: what `each` said, or
 * ERR_CANCELLED. Whatever else goes wrong - a 404, a redirect to another host,
 * no archive, a damaged or too large one - is *missing, and no failure: what
 * was handed out so far may be used like all of it. */
ABX_FN bool forge_fetch(Str address, Str other, const SourceHost *host, ForgeEach *each, void *ctx, bool *missing,
                        Err *err) ABX_CHECK;

#endif
