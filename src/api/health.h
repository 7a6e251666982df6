/* health.h - the doctor's checks, with the settings of a handle of abx.h. */
#ifndef ABX_HEALTH_H
#define ABX_HEALTH_H

#include "api/plugins.h"
#include "host/doctor.h"

ABX_FN bool health_doctor(abx_host *h, const Store *s, Str id, bool handshake, Arena *a, DoctorReport *out,
                          Err *err) ABX_CHECK;

#endif
