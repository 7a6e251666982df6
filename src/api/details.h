/* details.h - what a provider declares, as abx.h shows it. */
#ifndef ABX_DETAILS_H
#define ABX_DETAILS_H

#include "abx.h"
#include "host/manifest.h"

ABX_FN const abx_field *details_fields(const Manifest *m, Arena *a);

#endif
