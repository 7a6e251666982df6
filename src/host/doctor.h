/* doctor.h - whether a provider can be used, check by check (specification, 7.1).
 *
 * Memory: the arena's.
 */
#ifndef ABX_DOCTOR_H
#define ABX_DOCTOR_H

#include "host/config.h"
#include "host/store.h"

typedef struct DoctorCheck {
    const char *name;           /* installed, integrity, config, handshake */
    bool        ok;
    Str         detail;
    Str         hint;           /* the plugin's stderr, sanitised, where there is some; or empty */
    Code        code;           /* of a failure */
} DoctorCheck;

enum { DOCTOR_CHECKS = 5 };

typedef struct DoctorReport {
    Str         id;
    bool        ok;
    DoctorCheck v[DOCTOR_CHECKS];
    size_t      n;
} DoctorReport;

/* Never fails for what is wrong with the provider. There is no handshake with
 * what is compiled in, nor with a kind of plugin that this abx does not run. */
ABX_FN void doctor_run(const Store *s, const Config *c, Str id, bool handshake, const ProviderHost *host, Arena *a,
                       DoctorReport *out);

#endif
