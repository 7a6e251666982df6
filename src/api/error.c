#include "api/error.h"

#include "base/num.h"
#include "base/str.h"

_Static_assert(sizeof((abx_error *)0)->message == sizeof((Err *)0)->text, "an error's text must fit");
_Static_assert(sizeof((abx_error *)0)->request_id == sizeof((Err *)0)->request_id, "a request id must fit");

static abx_kind error__kind(ErrKind kind)
{
    switch (kind) {
    case ERR_NONE:      return ABX_OK;
    case ERR_USAGE:     return ABX_USAGE;
    case ERR_NOT_FOUND: return ABX_NOT_FOUND;
    case ERR_DENIED:    return ABX_DENIED;
    case ERR_TIMEOUT:   return ABX_TIMED_OUT;
    case ERR_CANCELLED: return ABX_CANCELLED;
    case ERR_INPUT:
    case ERR_LIMIT:
    case ERR_UNSENT:
    case ERR_CLOSED:
    case ERR_REMOTE:
    case ERR_SYSTEM:    return ABX_FAILED;
    }
    return ABX_FAILED;
}

int error_give(abx_error *out, const Err *err)
{
    const char *hint = err->hint[0] ? err->hint : code_hint(err->code);

    memset(out, 0, sizeof *out);
    out->kind = error__kind(err->kind);
    code_name(err->code, out->code);
    out->exit_status = code_exit(err->code);
    memcpy(out->message, err->text, sizeof out->message);
    memcpy(out->suggestion, hint, strlen(hint) + 1);
    out->retryable = err->retryable;
    memcpy(out->request_id, err->request_id, sizeof out->request_id);
    return -1;
}

int abx_code_exit(const char *code)
{
    Str      digits = str_from(code);
    uint64_t number;

    if (digits.n != 5 || digits.p[0] != 'E')
        return 1;
    str_skip(&digits, 1);
    return num_u64(digits, &number) ? code_exit((Code)number) : 1;
}
