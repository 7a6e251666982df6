/* kit.h - the contract kit: 18 tests that a provider has to pass.
 *
 * They are those of the other hosts (specification of the provider host, 7.5),
 * in their order and under their names, on abx.h. A test is skipped when the
 * provider does not declare a feature that the test needs, and for no other
 * reason. Each creates what it needs and removes it, failed or not; each create,
 * connect, list and kill by id is a session of its own.
 *
 *     KitCount n;
 *     if (!kit_run(&options, "opensandbox", print_it, ctx, &n, &e)) ...
 */
#ifndef ABX_KIT_H
#define ABX_KIT_H

#include "abx.h"
#include "base/base.h"

typedef enum KitOutcome { KIT_PASSED, KIT_FAILED, KIT_SKIPPED } KitOutcome;

typedef struct KitResult {
    const char *name;           /* "lifecycle" */
    KitOutcome  outcome;
    const char *detail;         /* why it failed or was skipped; "" */
} KitResult;

typedef struct KitCount { int of[3]; } KitCount;    /* by KitOutcome */

/* Run them all; `each` is called after each one. `options` are those of the
 * sessions, but for the provider. False: *e says why they could not be run, or
 * not to the end: E8001, ABX_CANCELLED. */
ABX_FN bool kit_run(const abx_options *options, const char *id, void (*each)(void *ctx, const KitResult *r), void *ctx,
                    KitCount *count, abx_error *e) ABX_CHECK;

/* "passed", "failed", "skipped" */
ABX_FN const char *kit_word(KitOutcome outcome);

#endif
