/* consent.h - a plan of the installer, as abx.h shows it to whoever is asked. */
#ifndef ABX_CONSENT_H
#define ABX_CONSENT_H

#include "abx.h"
#include "host/install.h"

typedef struct Consent {
    abx_consent *ask;
    void        *ctx;
} Consent;

/* An InstallHost's consent; `ctx` is a Consent. */
ABX_FN bool consent_ask(void *ctx, const InstallPlan *plan);

#endif
