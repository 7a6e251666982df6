/* opensandbox.h - the OpenSandbox backend (server 1.1.1), compiled in.
 *
 * Its settings are the fields of the opensandbox plugin. It keeps one HTTP
 * client for the server and the daemons behind it.
 */
#ifndef ABX_OPENSANDBOX_H
#define ABX_OPENSANDBOX_H

#include "provider/provider.h"

ABX_FN const ProviderKind *opensandbox_kind(void);

#endif
