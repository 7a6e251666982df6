/* cmd_install.h - abx provider install|update|rollback|uninstall */
#ifndef ABX_CMD_INSTALL_H
#define ABX_CMD_INSTALL_H

#include "cli/run.h"

ABX_FN int cmd_install_add(Run *r);
ABX_FN int cmd_install_update(Run *r);
ABX_FN int cmd_install_rollback(Run *r);
ABX_FN int cmd_install_remove(Run *r);

#endif
