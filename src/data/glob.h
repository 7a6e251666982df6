/* glob.h - shell patterns for names (POSIX.1-2017, XCU 2.13.1), character by
 * character in UTF-8: `*` any run, `?` one character, `[a-z]` one of a set,
 * `[!a-z]` or `[^a-z]` one that is not in it, `\x` the character x. A slash and
 * a first dot are like any other; classes such as [:alpha:] are not known. A
 * bracket that no bracket closes is itself. libc's fnmatch() brings sixteen
 * kilobytes of tables for its classes.
 *
 *     if (glob_match(STR("*.[ch]"), name))
 *
 * Takes pattern times name steps at most. Memory: none.
 */
#ifndef ABX_GLOB_H
#define ABX_GLOB_H

#include "base/base.h"

/* Whether the whole of `name` is what `pattern` says. */
ABX_FN bool glob_match(Str pattern, Str name);
/* The same for the names in a folder: a first dot is matched by a dot alone (2.13.3). */
ABX_FN bool glob_name(Str pattern, Str name);

#endif
