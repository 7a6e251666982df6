/* epp.h - a provider that is a plugin process, spoken to over EPP/1
 * (specification, section 4).
 *
 * The process is started at the first call that needs it, in a session of its
 * own, with a scrubbed environment and three pipes; ended by the ladder of 4.7,
 * with every process it left behind. Its answers, its output and its errors are
 * hostile input. After E8020 to E8022 a kill (and the clean-up of a create)
 * starts a fresh one.
 *
 * Memory: epp_open() copies what it keeps.
 */
#ifndef ABX_EPP_H
#define ABX_EPP_H

#include "provider/provider.h"

typedef struct EppSpec {
    Str         id, name;
    const char *files;          /* the plugin's folder */
    const char *data_dir;       /* absolute; it is there */
    Strs     command;        /* the manifest's */
    Strs     env_passthrough;
    int64_t     startup_ms, call_ms;
    Strs     features, cli, python, inputs, startups;    /* the manifest's, to be compared with the handshake */
    const ProviderField *fields;    /* types of the settings, and which are secret */
    size_t      field_count;
    Strs     inherit;        /* core keys that go into `core` */
    Str         credential;     /* the variable to name when a key is refused */
    const char *const *environ; /* of this process */
    /* Called before every start: whether what would run is what was installed. */
    bool      (*check)(void *ctx, Err *err);
    void       *check_ctx;
} EppSpec;

ABX_FN bool epp_open(const EppSpec *spec, Settings s, const ProviderHost *host, Provider **out, Err *err) ABX_CHECK;

/* Start it, shake hands, and end it: what doctor and an install do. `hint` of
 * the error is its stderr. */
ABX_FN bool epp_handshake(Provider *p, Deadline d, Err *err) ABX_CHECK;

#endif
