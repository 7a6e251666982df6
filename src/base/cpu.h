/* cpu.h - what this processor can do beyond what every one of its kind can. */
#ifndef ABX_CPU_H
#define ABX_CPU_H

#include "base/base.h"

/* The instructions for SHA-1 and SHA-256, and SSE 4.1 with them. */
ABX_FN bool cpu_has_sha(void);

#endif
