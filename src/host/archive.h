/* archive.h - a tar archive, plain or compressed by gzip, as a plugin's files.
 *
 * Specification of the provider host, 3.9 "Archive" and 1.8, with row 25 of
 * docs/differences.md. Read once, from its first byte to its last, into a Tree;
 * what is too much is refused before it is read.
 *
 * - Names lose leading slashes, `.` and empty parts; `..` is refused, and so are
 *   devices and FIFOs, wherever they lie.
 * - Where the manifest does not lie on top and there is exactly one folder on
 *   top, that folder is the plugin.
 * - Of that folder, `.git` and `.abx-install.json` are passed over; a link is
 *   refused. What lies beside it does not count.
 * - Of the mode bits the owner's execute bit counts.
 *
 * Memory: the Tree's, and what unpack.h says. A .git folder that may turn out to
 * be none of the plugin's own is held, too, up to the limits of a tree.
 */
#ifndef ABX_ARCHIVE_H
#define ABX_ARCHIVE_H

#include "base/flow.h"
#include "host/tree.h"

typedef struct ArchiveAsk {
    Str  subdir;        /* the folder of the plugin's folder that is meant; empty: it itself */
    Str  sha256;        /* of all bytes of the archive, 64 lower-case digits; empty: any */
    Code mismatch;      /* where it is another */
} ArchiveAsk;

/* Sealed. False: E8010, `mismatch`, or what `bytes` said. The digest is looked at
 * first, so that a wrong file is called that. */
ABX_FN bool archive_read(Source bytes, const ArchiveAsk *ask, Tree *out, Err *err) ABX_CHECK;

/* The same of a local file; the error names it. */
ABX_FN bool archive_file(const char *path, const ArchiveAsk *ask, Tree *out, Err *err) ABX_CHECK;

#endif
