/* catalog.h - `registry:ID`: plugins by the name that an index gives them.
 *
 * Specification of the provider host, 3.9. The index is a JSON file: a path,
 * `file:` and a path, or an http(s) URL. A row of it names a folder, which is
 * used in place, or an https archive with the SHA-256 of its bytes.
 *
 * A row of an index that came from the network names no folder of this machine
 * (row 69 of docs/differences.md).
 *
 * Memory: strings in the arena, files in the tree.
 */
#ifndef ABX_CATALOG_H
#define ABX_CATALOG_H

#include "host/source.h"

/* ref->location is the id. E8010: no index; E8001: no such id in it; E8002: what
 * its row names cannot be had, or is not what it says. */
ABX_FN bool catalog_fetch(const SourceRef *ref, const SourceHost *host, Arena *a, SourceGot *out, Err *err) ABX_CHECK;

#endif
