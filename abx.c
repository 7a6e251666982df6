/* abx.c - the program, as a table of contents. Order is layer order. */
#define ABX_UNITY 1

/* base: words, memory, text */
#include "base/base.c"
#include "base/mem.c"
#include "base/code.c"
#include "base/err.c"
#include "base/arena.c"
#include "base/buf.c"
#include "base/str.c"
#include "base/num.c"
#include "base/utf8.c"
#include "base/base64.c"
#include "base/hex.c"
#include "base/sha256.c"
#include "base/time.c"
#include "base/flow.c"
/* os: the machine under us */
#include "os/clock.c"
#include "os/poll.c"
#include "os/env.c"
#include "os/fs.c"
#include "os/random.c"
/* data: formats, no I/O */
#include "data/json.c"
#include "data/dotenv.c"
#include "data/shell.c"
#include "data/clean.c"
/* net: one connection and what flows over it */
#include "net/url.c"
#include "net/stream.c"
#include "net/header.c"
#include "net/http.c"
#include "net/sse.c"
#include "net/events.c"
#include "net/pool.c"
#include "net/client.c"
#include "net/multipart.c"
/* host: what surrounds a provider */
#include "host/config.c"
#include "host/registry.c"
