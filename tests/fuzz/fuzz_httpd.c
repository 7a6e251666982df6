/* The server: whatever comes in on a connection, cut at any byte, it neither
 * falls over nor forgets to leave what it entered, and says the same. */
#include "base/str.h"
#include "net/httpd.h"
#include "os/signal.h"

#include <sys/socket.h>
#include <unistd.h>

static int fuzz_httpd__open;

static void fuzz_httpd__gone(HttpdCall *c, bool whole)
{
    (void)c, (void)whole;
    fuzz_httpd__open--;
}

static void fuzz_httpd__body(HttpdCall *c, Str piece)
{
    httpd_write(c, piece);
}

static void fuzz_httpd__collected(HttpdCall *c, Str body)
{
    httpd_answer(c, 200, "text/plain", body);
}

static void fuzz_httpd__begin(void *ctx, HttpdCall *c)
{
    static const HttpdHandler echo = {.body = fuzz_httpd__body, .end = httpd_finish, .gone = fuzz_httpd__gone};
    static const HttpdHandler plain = {.gone = fuzz_httpd__gone};

    (void)ctx;
    if (str_starts(c->head.target, STR("/c"))) {
        httpd_collect(c, 16, fuzz_httpd__collected);
        return;
    }
    fuzz_httpd__open++;
    c->handler = &plain;
    if (str_starts(c->head.target, STR("/e"))) {
        c->handler = &echo;
        httpd_start(c, 200, NULL, 0, httpd_length(c));
    } else if (str_starts(c->head.target, STR("/t"))) {
        c->handler = &echo;
        httpd_tunnel(c, NULL, 0);
    } else {
        httpd_answer(c, 200, "text/plain", c->head.target);
    }
}

static void fuzz_httpd__tick(LoopWatch *w, short revents)
{
    (void)w, (void)revents;
}

static void fuzz_httpd__work(Loop *l, int client, Buf *got)
{
    for (int quiet = 0; quiet < 3; quiet++) {
        Err     err;
        ssize_t n;
        if (!loop_turn(l, &err))
            __builtin_trap();
        while ((n = recv(client, buf_room(got, 4096), 4096, MSG_DONTWAIT)) > 0) {
            buf_grew(got, (size_t)n);
            quiet = 0;
        }
    }
}

static void fuzz_httpd__run(Str a, Str b, Buf *got)
{
    Loop      loop = {0};
    LoopWatch tick = {.fd = -1, .wake = fuzz_httpd__tick};
    int       fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        __builtin_trap();
    Httpd *h = httpd_make(&loop, fuzz_httpd__begin, NULL);
    loop_add(&loop, &tick);
    httpd_adopt(h, fds[1]);
    if (a.n)
        send(fds[0], a.p, a.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    fuzz_httpd__work(&loop, fds[0], got);
    if (b.n)
        send(fds[0], b.p, b.n, MSG_DONTWAIT | MSG_NOSIGNAL);
    fuzz_httpd__work(&loop, fds[0], got);
    shutdown(fds[0], SHUT_WR);
    fuzz_httpd__work(&loop, fds[0], got);
    httpd_free(h);
    loop_free(&loop);
    close(fds[0]);
    if (fuzz_httpd__open != 0)
        __builtin_trap();
}

/* Statuses in order: how bodies come in pieces, and Date, differ. */
static uint64_t fuzz_httpd__statuses(Str got)
{
    uint64_t hash = 0;

    for (; got.n > 12; str_skip(&got, 1))
        if (str_starts(got, STR("HTTP/1.1 ")))
            hash = hash * 31 + (uint64_t)(unsigned char)got.p[9] * 100 + (unsigned char)got.p[11];
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 32768)
        return 0;
    Str    all = {(const char *)data + 2, size - 2};
    size_t cut = (size_t)(data[0] << 8 | data[1]) % (all.n + 1);
    Buf    whole = buf_make((size_t)1 << 22), two = buf_make((size_t)1 << 22);

    signal_ignore_writes();
    fuzz_httpd__run(all, (Str){0}, &whole);
    fuzz_httpd__run((Str){all.p, cut}, (Str){all.p + cut, all.n - cut}, &two);
    /* An echo of "HTTP/1.1 " is cut elsewhere, a 100 may come or not. */
    if (!memmem(all.p, all.n, "HTTP/1.1 ", 9) && !memmem(all.p, all.n, "xpect", 5) && !memmem(all.p, all.n, "XPECT", 5) &&
        fuzz_httpd__statuses(buf_str(&whole)) != fuzz_httpd__statuses(buf_str(&two)))
        __builtin_trap();
    buf_free(&whole);
    buf_free(&two);
    return 0;
}
