/* epp_exec.h - a command through a plugin: exec.start with its notifications,
 * or exec.run, whichever it declares (specification, 4.6 and 4.8).
 *
 * A command's own timeout is the plugin's to keep. When it has not reported the
 * end LIMIT_EPP_MARGIN_MS after that, it is asked to stop it, where it can be,
 * and the result is E3001 (exec.run: E8022). The protocol has no word for "no
 * timeout": LIMIT_EPP_TIMEOUT_S is sent then, and not kept here.
 */
#ifndef ABX_EPP_EXEC_H
#define ABX_EPP_EXEC_H

#include "provider/provider.h"

ABX_FN bool epp_exec_start(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);

#endif
