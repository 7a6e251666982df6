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

#include "provider/epp_plugin.h"

/* `open_stdin` is said as "stdin": true, which our own plugin knows. */
ABX_FN bool epp_exec_start(Provider *p, Str id, const ExecRequest *rq, ExecCall **out, Deadline d, Err *err);

/* For the standard input of such a command (epp_carrier.c). fed: the plugin
 * said that it takes the process_id for it, which put_id writes as it came.
 * lives: the process that runs it is still the same one. */
ABX_FN bool epp_exec_fed(const ExecCall *x);
ABX_FN void epp_exec_put_id(const ExecCall *x, JsonOut *w);
ABX_FN bool epp_exec_lives(const ExecCall *x);

#endif
