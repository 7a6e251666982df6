/* cmd_doctor.h - abx provider doctor|verify */
#ifndef ABX_CMD_DOCTOR_H
#define ABX_CMD_DOCTOR_H

#include "cli/run.h"

ABX_FN int cmd_doctor_check(Run *r);
ABX_FN int cmd_doctor_verify(Run *r);

#endif
