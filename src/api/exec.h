/* exec.h - a running command as abx.h has it. */
#ifndef ABX_API_EXEC_H
#define ABX_API_EXEC_H

#include "abx.h"
#include "provider/provider.h"

/* Owns the call from here on. */
ABX_FN abx_exec *exec_over(Provider *p, ExecCall *call);

#endif
