#include "abx.h"

#include "api/error.h"
#include "api/session.h"

/* Jobs are the agent's, and a backend without a carrier cannot be given one. */
static int jobs__can(abx_sandbox *b, abx_error *e)
{
    Err err;

    return session_can(b->session->provider, b->session->provider->kind->carrier != NULL, "the carried agent", &err)
               ? 0 : error_give(e, &err);
}

int abx_jobs(abx_sandbox *b, int (*each)(void *ctx, const abx_job *j), void *ctx, abx_error *e)
{
    (void)each, (void)ctx;
    return jobs__can(b, e);
}

abx_exec *abx_job_attach(abx_sandbox *b, const char *id, const abx_attach_options *o, abx_error *e)
{
    (void)id, (void)o;
    jobs__can(b, e);
    return NULL;
}

int abx_job_signal(abx_sandbox *b, const char *id, int number, abx_error *e)
{
    (void)id, (void)number;
    return jobs__can(b, e);
}

int abx_job_forget(abx_sandbox *b, const char *id, abx_error *e)
{
    (void)id;
    return jobs__can(b, e);
}

int abx_remove_agent(abx_sandbox *b, int force, int *removed, abx_error *e)
{
    (void)force;
    if (removed)
        *removed = 0;
    return jobs__can(b, e);
}
