/* cmd_plugin.h - abx as a plugin, and plugins put to the test:
 * `abx provider serve`, `export` and `test`. */
#ifndef ABX_CMD_PLUGIN_H
#define ABX_CMD_PLUGIN_H

#include "cli/run.h"

ABX_FN int cmd_plugin_serve(Run *r);
ABX_FN int cmd_plugin_export(Run *r);
ABX_FN int cmd_plugin_test(Run *r);

#endif
