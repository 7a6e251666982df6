/* metrics.h - GET /metrics and /metrics/watch: processors and memory, as the
 * kernel shows them: the machine's, not the sandbox's limits.
 *
 * The share of busy processor time is that since the last look at it; the
 * first look is since the machine started.
 */
#ifndef ABX_METRICS_H
#define ABX_METRICS_H

#include "net/httpd.h"

ABX_FN void metrics_once(HttpdCall *c);
ABX_FN void metrics_watch(HttpdCall *c);        /* the same every two seconds, a line each */

#endif
