/* vectors.h - the recorded answers of another host, in tests/vectors. */
#ifndef ABX_TEST_VECTORS_H
#define ABX_TEST_VECTORS_H

#include "data/json.h"

/* The array in tests/vectors/NAME.json. */
static const Json *vectors_open(const char *name, Arena *a);

#endif
