/* cmd_about.h - abx version, abx help, and help where it is asked for by --help. */
#ifndef ABX_CMD_ABOUT_H
#define ABX_CMD_ABOUT_H

#include "base/buf.h"
#include "cli/run.h"

ABX_FN int cmd_about_version(Run *r);
ABX_FN int cmd_about_help(Run *r);
ABX_FN int cmd_about_agent(Run *r);     /* reached only behind a global option, where `agent` cannot stand */

/* Help on what args say, however little: the command, the noun, or all. */
ABX_FN void cmd_about_text(const Run *r, Buf *to);

/* It printed as a result; with --json as {"help": …}. */
ABX_FN int cmd_about_print(const Run *r, Str text);

#endif
