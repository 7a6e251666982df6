/* export.h - a provider that is compiled in, as a plugin in a folder.
 *
 * The folder holds abx-provider.toml and this program as `abx`; any host
 * installs it, and runs `./abx provider serve ID`.
 */
#ifndef ABX_EXPORT_H
#define ABX_EXPORT_H

#include "abx.h"
#include "base/buf.h"
#include "base/err.h"

/* There is a backend for it in this program. False: E8001 or E8004. */
ABX_FN bool export_known(const char *id, Err *err) ABX_CHECK;

/* The text of the manifest. Its lists are those that serve.c answers
 * `initialize` with, in their order. */
ABX_FN void export_manifest(const abx_details *d, Buf *to);

/* Writes the plugin. `program` is the file that becomes `abx`. `dir` must not be
 * there, or be an empty folder; what is there is whole, or not there at all.
 * False: E8001, E8004, E8010; the version goes to version[32]. */
ABX_FN bool export_write(const char *id, const char *dir, const char *program, char version[32], Err *err) ABX_CHECK;

#endif
