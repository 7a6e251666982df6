/* epp_carrier.h - how this program is carried into a sandbox through a plugin
 * (provider/carry.h): lines of text, out in the notifications of exec.start, in
 * by process.stdin.
 *
 * A plugin needs exec.stream and files.rw for it, else E8004. It is told
 * "stdin": true; one that answers so, too, takes its own process_id for what is
 * fed. To others the process is named by the number that the agent says of
 * itself, if process.list knows that, and else by their process_id. Where that
 * is refused, or process.manage is not declared, there is no input: E8004.
 */
#ifndef ABX_EPP_CARRIER_H
#define ABX_EPP_CARRIER_H

#include "provider/carry.h"

ABX_FN const CarrierOps *epp_carrier_ops(void);

#endif
