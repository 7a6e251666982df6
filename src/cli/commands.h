/* commands.h - the command table: every verb, its options, its words, its help.
 *
 * To add a verb: a row here, and a function in cmd_NOUN.c that it names.
 * Parsing, help and errors follow from the row.
 */
#ifndef ABX_COMMANDS_H
#define ABX_COMMANDS_H

#include "cli/args.h"

ABX_FN const ArgTable *commands_table(void);

#endif
