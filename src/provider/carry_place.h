/* carry_place.h - the folder in a sandbox that the carried program lies in, and
 * the line of shell that looks at it and starts the program.
 *
 * The line is a constant but for names that we make: no quote, no user's text.
 * It enters the folder before it checks it, so that nothing can be put in its
 * place between the check and the start, and starts nothing unless the folder
 * is a real one, of this user, with mode 0700. What it cannot start it says in
 * one line, a marker:
 *
 *     ABX1 need FOLDER        the program is not there; FOLDER is good
 *     ABX1 noexec FOLDER      nothing can be started there (a mount's option)
 *     ABX1 nowrite FOLDER     nothing can be written there
 *     ABX1 nodir FOLDER       it is not there and cannot be made
 *     ABX1 unsafe FOLDER      it is there and not what it should be
 *     ABX1 port N             the program's own: it listens there
 *
 * Markers come from a hostile place: one that does not name just the folder
 * that was asked about is a lie.
 */
#ifndef ABX_CARRY_PLACE_H
#define ABX_CARRY_PLACE_H

#include "base/buf.h"

enum { CARRY_PLACE_HEX = 16, CARRY_PLACE_PATH = 1024, CARRY_PLACE_BASES = 4 };

typedef struct CarryPlace {
    int      base;                              /* which of /tmp, /var/tmp, $HOME, /run: 0 to CARRY_PLACE_BASES - 1 */
    char     own[CARRY_PLACE_HEX + 1];          /* not "": a folder of this call's own, `.abx-` and this */
    char     fresh[CARRY_PLACE_HEX + 1];        /* not "": put this upload under the program's name first, */
    uint64_t size;                              /* if it has so many bytes */
} CarryPlace;

typedef enum CarryMark {
    CARRY_MARK_NONE,        /* not a marker: noise */
    CARRY_MARK_NEED, CARRY_MARK_NOEXEC, CARRY_MARK_NOWRITE, CARRY_MARK_NODIR, CARRY_MARK_UNSAFE,
    CARRY_MARK_PORT,
    CARRY_MARK_LIE,
} CarryMark;

/* The line. `name` is the program's file; `mode` "listen", "pipe" or "lines";
 * NULL: start nothing, say `need` for a good folder whatever is in it. */
ABX_FN void carry_place_line(const CarryPlace *at, const char *name, const char *mode, Buf *to);

/* What a line of output says. NEED and its like: *folder, a view into it. PORT: *port. */
ABX_FN CarryMark carry_place_mark(const CarryPlace *at, Str line, Str *folder, int *port);

ABX_FN const char *carry_place_base(const CarryPlace *at);      /* for a person: "/tmp" */

#endif
