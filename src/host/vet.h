/* vet.h - whether what is configured may be used as it is.
 *
 * Kept apart from host/config.h because resolving is the same for all hosts,
 * and refusing is this one's own (rows 7, 24 and 42 of docs/differences.md).
 */
#ifndef ABX_VET_H
#define ABX_VET_H

#include "host/config.h"

/* The refusals of config_provider(). */
ABX_FN bool vet_provider(const Config *c, const ConfigSchema *s, Arena scratch, Err *err) ABX_CHECK;

#endif
