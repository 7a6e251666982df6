#include "serve/asks.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <unistd.h>

Asks asks_make(int fd)
{
    return (Asks){.fd = fd, .to = buf_make(LIMIT_SERVE_REQUEST)};
}

static void asks__close(Asks *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

void asks_free(Asks *a)
{
    asks__close(a);
    while (a->first)
        asks_answered(a, str_from(a->first->id));
    buf_free(&a->to);
}

bool asks_known(Str method)
{
    static const char *const methods[] = {"process.stdin", "process.signal", "pty.write", "pty.resize", "pty.close"};

    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (str_eq(method, str_from(methods[i])))
            return true;
    return false;
}

static void asks__put(Asks *a, Str id, Str line)
{
    buf_add(&a->to, id);
    buf_addc(&a->to, '\t');
    buf_add(&a->to, line);
    buf_addc(&a->to, '\n');
}

bool asks_add(Asks *a, Str id, Str line)
{
    Ask   **end = &a->first;
    size_t  n = 0;

    for (; *end; end = &(*end)->next)
        n++;
    if (n == LIMIT_SERVE_HELD || id.n + line.n + 2 > LIMIT_SERVE_REQUEST - a->to.n)
        return false;
    *end = mem_new(sizeof **end);
    **end = (Ask){.id = mem_str(id)};
    asks__put(a, id, line);
    return true;
}

void asks_hand_on(Asks *a)
{
    Str rest = buf_str(&a->to);

    while (rest.n) {
        ssize_t n = write(a->fd, rest.p, rest.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {            /* it has ended, which is seen elsewhere */
            asks__close(a);
            rest.n = 0;
            break;
        }
        str_skip(&rest, (size_t)n);
    }
    buf_drop(&a->to, a->to.n - rest.n);
}

void asks_answered(Asks *a, Str id)
{
    for (Ask **at = &a->first; *at; at = &(*at)->next) {
        Ask *ask = *at;
        if (!str_eq(str_from(ask->id), id))
            continue;
        *at = ask->next;
        mem_free(ask->id);
        mem_free(ask);
        return;
    }
}

void asks_cancel(Asks *a, Str id)
{
    for (const Ask *ask = a->first; ask; ask = ask->next)
        if (str_eq(str_from(ask->id), id) && id.n + 2 <= LIMIT_SERVE_REQUEST - a->to.n)
            asks__put(a, id, (Str){0});
}
