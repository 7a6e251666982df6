#include "provider/provider.h"

#include "base/str.h"

Str provider_state_word(SandboxState state)
{
    static const Str words[] = {
        [SANDBOX_UNKNOWN] = {"unknown", 7},   [SANDBOX_CREATING] = {"creating", 8},
        [SANDBOX_RUNNING] = {"running", 7},   [SANDBOX_PAUSING] = {"pausing", 7},
        [SANDBOX_PAUSED] = {"paused", 6},     [SANDBOX_RESUMING] = {"resuming", 8},
        [SANDBOX_STOPPING] = {"stopping", 8}, [SANDBOX_STOPPED] = {"stopped", 7},
        [SANDBOX_ERROR] = {"error", 5},
    };

    return words[state];
}

Str provider_setting(Settings s, const char *key)
{
    for (size_t i = 0; i < s.n; i++)
        if (str_eq(s.v[i].key, str_from(key)))
            return s.v[i].value;
    return (Str){0};
}

bool provider_plain(const ExecRequest *rq, Err *err)
{
    const char *what = rq->user.n ? "a user" : rq->tty ? "a terminal" : rq->input ? "standard input"
                       : rq->job ? "a name as a job" : NULL;

    return !what || err_set(err, ERR_USAGE, E8004, "the backend's own calls cannot give a command %s", what);
}
