/* What a plugin prints, through the lines, the messages and all that is made of
 * their parts. A pipe stands for the plugin, which has ended. */
#include "provider/epp_call.h"
#include "provider/epp_error.h"
#include "provider/epp_record.h"
#include <fcntl.h>
#include <unistd.h>

static void fuzz_parts(const EppVoice *voice, const Json *v, Arena a)
{
    SandboxInfo info;
    FileInfo    file;
    ProcessInfo process;
    PortUrl     port;
    ExecEvent   ev;
    const char *what;
    Err         err;
    bool        good = epp_record_sandbox(v, &a, &info, &what) && info.id.n == 0;

    good = epp_record_entry(v, (Str){"/a", 2}, v->count % 2, &a, &file, &what) && file.size < 0 ? true : good;
    good = epp_record_process(v, &a, &process, &what) && process.pid.p == NULL ? true : good;
    good = epp_record_port(v, &a, &port, &what) && port.url.n == 0 ? true : good;
    good = epp_record_exit(json_get(v, "exit_code"), &ev, &what) && ev.exit_code > 255 ? true : good;
    if (good)
        __builtin_trap();
    epp_error_set(voice, v, &err);
    for (size_t i = 0; i < 2 && json_at(v, i); i++)
        fuzz_parts(voice, json_at(v, i), a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const Str secrets[] = {{"abcd", 4}, {"s3cret", 6}};
    EppVoice     voice = {.id = {"demo", 4}, .secrets = secrets, .secret_count = 2};
    ProviderHost host = {.cancel_fd = -1};
    EppWait      w = {.number = 1, .line = buf_make(1 << 20)};
    EppCalls     c = {.voice = &voice, .host = &host, .waits = &w,
                      .link = {.voice = &voice, .ready = -1, .doom = DEADLINE_NONE, .in = buf_make((size_t)1 << 25),
                               .child = {.in = -1, .err = -1, .watch = -1}}};
    const Json  *result;
    Err          err;
    Arena        a = arena_make((size_t)8 << 20);
    EppStream   *s;
    Step         step;
    int          ends[2];

    if (size > 60000 || pipe2(ends, O_NONBLOCK) != 0)
        return 0;
    if (write(ends[1], data, size) != (ssize_t)size)
        __builtin_trap();
    close(ends[1]);
    c.link.child.out = ends[0];
    s = epp_call_stream(&c, (Str){"7", 1});
    while ((step = epp_call_poll(&c, &w, &result, &err)) == STEP_MORE)
        if (!epp_link_turn(&c.link, -1, DEADLINE_NONE, &err) && c.link.failed)
            break;
    if (step == STEP_DONE)
        fuzz_parts(&voice, result, a);
    while (epp_call_note(&c, s, &result, &err) == STEP_DONE)
        fuzz_parts(&voice, json_get(result, "params") ? json_get(result, "params") : result, a);
    epp_call_forget(&c, &w, false);
    epp_call_drop(&c);
    arena_free(&a);
    return 0;
}
