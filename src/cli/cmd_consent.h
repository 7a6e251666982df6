/* cmd_consent.h - what a person is shown, and asked, before a plugin is put in. */
#ifndef ABX_CMD_CONSENT_H
#define ABX_CMD_CONSENT_H

#include "cli/run.h"

/* Prints the plan to standard error (with --json as JSON), and asks where
 * somebody can answer: standard input is a terminal, and not --no-input. An
 * abx_consent; `ctx` is the Run. */
ABX_FN int cmd_consent_ask(void *ctx, const abx_plan *plan);

#endif
