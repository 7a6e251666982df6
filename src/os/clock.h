/* clock.h - what time it is, and until when to wait.
 *
 * A Deadline is an absolute time on the monotonic clock, in milliseconds; it
 * is handed down unchanged, so that no layer adds its own share of waiting.
 */
#ifndef ABX_CLOCK_H
#define ABX_CLOCK_H

#include "base/base.h"

typedef int64_t Deadline;
#define DEADLINE_NONE INT64_MAX

ABX_FN int64_t  clock_mono_ms(void);                    /* for intervals; does not run while the machine sleeps */
ABX_FN int64_t  clock_unix_ms(void);                    /* for stamps; may jump */
ABX_FN Deadline clock_after(int64_t ms);                /* from now; saturates, negative is now */
ABX_FN Deadline clock_sooner(Deadline a, Deadline b);
ABX_FN bool     clock_passed(Deadline d);

#endif
