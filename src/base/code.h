/* code.h - every E-code, its exit status and its hint, in one table.
 *
 * The codes are shared with the other hosts (specification of the provider
 * host, section 5); the sentences are ours. A hint here is what is said when
 * the place that failed said nothing better.
 */
#ifndef ABX_CODE_H
#define ABX_CODE_H

#include "base/base.h"

/* code, exit status, hint */
#define CODE_TABLE(X) \
    X(0000, 1, "") \
    X(1000, 3, "") \
    X(1001, 3, "Check the API key of the provider: `abx help environment` names where it is read from.") \
    X(1002, 3, "Get a fresh token and set it again.") \
    X(1003, 3, "Set the credentials that the provider asks for.") \
    X(1004, 3, "Check the access key, its secret and the clock of this machine.") \
    X(2000, 1, "") \
    X(2001, 4, "Check the template's name.") \
    X(2002, 6, "Kill sandboxes that are no longer needed, or ask for a larger quota.") \
    X(2003, 1, "Choose another region.") \
    X(2004, 1, "Check the template's definition.") \
    X(2009, 4, "It may have expired or been killed: `abx sandbox list` shows what there is.") \
    X(3000, 1, "") \
    X(3001, 5, "Give the command more time with --timeout.") \
    X(3002, 1, "") \
    X(3003, 1, "Look at the output of the code for its own error.") \
    X(3004, 1, "Use a template that has the capability.") \
    X(3005, 1, "Check the command's name.") \
    X(3006, 1, "") \
    X(4000, 1, "") \
    X(4001, 4, "Check the path.") \
    X(4002, 1, "Check the owner and the mode of the file and of its folder.") \
    X(4003, 1, "Ask for less, or allow more.") \
    X(5000, 1, "") \
    X(5001, 1, "Check that the server runs and that its address is right.") \
    X(6000, 1, "") \
    X(6001, 1, "Check the session's name.") \
    X(6002, 1, "Choose another name for the session.") \
    X(8000, 1, "") \
    X(8001, 4, "`abx provider list` shows the providers there are.") \
    X(8002, 2, "") \
    X(8003, 1, "") \
    X(8004, 1, "") \
    X(8005, 4, "") \
    X(8010, 1, "") \
    X(8011, 1, "") \
    X(8012, 2, "") \
    X(8013, 1, "") \
    X(8014, 1, "") \
    X(8020, 1, "") \
    X(8021, 1, "") \
    X(8022, 5, "") \
    X(8030, 2, "") \
    X(9000, 1, "") \
    X(9001, 3, "The sandbox's own server refuses the access token.") \
    X(9002, 1, "The server's policy forbids this.") \
    X(9003, 1, "Try again in a while.") \
    X(9004, 1, "Send less at once.") \
    X(9005, 1, "Wait before the next try.")

/* E1001 and so on; a value is the number behind the E. */
typedef enum Code {
#define CODE_ENUM(number, exit, hint) E##number = 1##number - 10000,
    CODE_TABLE(CODE_ENUM)
#undef CODE_ENUM
} Code;

ABX_FN void        code_name(Code code, char name[static 6]);  /* "E1001", NUL-terminated */
ABX_FN int         code_exit(Code code);                       /* the exit status of a failure with it */
ABX_FN const char *code_hint(Code code);                       /* "" when the table has none */

#endif
