#include "net/url.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include <arpa/inet.h>

enum { URL_HOST_MAX = 253 };        /* a domain name in text (RFC 1035, 2.3.4) */

static const struct { Str name; bool tls; int port; } url__schemes[] = {
    {{"http", 4}, false, 80}, {{"https", 5}, true, 443}, {{"ws", 2}, false, 80}, {{"wss", 3}, true, 443},
};

static bool url__bad(Err *err, const char *what)
{
    return err_set(err, ERR_USAGE, E8002, "not a URL that can be used: %s", what);
}

static bool url__alnum(char c)
{
    char lower = (char)(c | 0x20);

    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');
}

static bool url__unreserved(char c)
{
    return url__alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static Str url__lower(Str s, Arena *a)
{
    char *p = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        if (p[i] >= 'A' && p[i] <= 'Z')
            p[i] = (char)(p[i] | 0x20);
    return (Str){p, s.n};
}

size_t url_address(Str host, unsigned char out[static 16])
{
    ABX_UNSET char text[INET6_ADDRSTRLEN];
    Str  address = {host.p, str_find(host, '%')};

    if (address.n == 0 || address.n >= sizeof text)
        return 0;
    memcpy(text, address.p, address.n);
    text[address.n] = 0;
    if (address.n == host.n && inet_pton(AF_INET, text, out) == 1)
        return 4;
    return inet_pton(AF_INET6, text, out) == 1 ? 16 : 0;
}

/* "fe80::1%25eth0" and "fe80::1%eth0" are both taken, and kept as the second. */
static bool url__ipv6(Str inside, Arena *a, Url *out, Err *err)
{
    unsigned char address[16];
    size_t          percent = str_find(inside, '%');
    Str             zone = str_from_to(inside, percent, inside.n);

    if (str_starts(zone, STR("%25")))
        str_skip(&zone, 3);
    else if (zone.n)
        str_skip(&zone, 1);
    if (percent < inside.n && (zone.n == 0 || zone.n > 64))
        return url__bad(err, "the zone behind the IPv6 address is empty or too long");
    for (size_t i = 0; i < zone.n; i++)
        if (!url__unreserved(zone.p[i]))
            return url__bad(err, "the zone behind the IPv6 address holds other characters than letters and digits");
    inside.n = percent;
    if (url_address(inside, address) != 16)
        return url__bad(err, "what stands in brackets is not an IPv6 address");
    out->ipv6 = true;
    out->host = url__lower(inside, a);
    if (zone.n)
        out->host = arena_fmt(a, "%.*s%%%.*s", STR_ARG(out->host), STR_ARG(zone));
    return true;
}

/* A last label of digits makes libraries read the name as an address, each in
 * its own way ("127.1", "0x7f000001"): only the dotted form is let through. */
static bool url__looks_numeric(Str host)
{
    Str last = host;

    if (last.n && last.p[last.n - 1] == '.')
        last.n--;
    for (size_t i = last.n; i > 0; i--)
        if (last.p[i - 1] == '.') {
            str_skip(&last, i);
            break;
        }
    return last.n && last.p[0] >= '0' && last.p[0] <= '9' &&
           (last.n == 1 || (last.p[1] >= '0' && last.p[1] <= '9') || (last.p[1] | 0x20) == 'x');
}

static bool url__name(Str host, Arena *a, Url *out, Err *err)
{
    unsigned char address[16];

    if (host.n == 0)
        return url__bad(err, "there is no host in it");
    if (host.n > URL_HOST_MAX)
        return url__bad(err, "its host is longer than 253 characters");
    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];
        if (!url__alnum(c) && c != '-' && c != '_' && c != '.')
            return url__bad(err, "its host holds other characters than letters, digits, dots and dashes");
        if (c == '.' && (i == 0 || host.p[i - 1] == '.'))
            return url__bad(err, "its host has an empty part");
    }
    if (url__looks_numeric(host) && url_address(host, address) != 4)
        return url__bad(err, "its host looks like an IPv4 address and is none");
    out->host = url__lower(host, a);
    return true;
}

static bool url__authority(Str authority, Arena *a, Url *out, Err *err)
{
    Str      host = authority, port = {0};
    uint64_t number;

    if (str_has(authority, '@'))
        return url__bad(err, "it holds a user name or a password, which do not belong there");
    if (str_starts(authority, STR("["))) {
        size_t end = str_find(authority, ']');
        if (end == authority.n)
            return url__bad(err, "the bracket of its IPv6 address is not closed");
        host = str_from_to(authority, 1, end);
        port = str_from_to(authority, end + 1, authority.n);
        if (port.n && port.p[0] != ':')
            return url__bad(err, "something other than a port follows its IPv6 address");
        if (!url__ipv6(host, a, out, err))
            return false;
    } else {
        size_t colon = str_find(authority, ':');
        host = str_from_to(authority, 0, colon);
        port = str_from_to(authority, colon, authority.n);
        if (!url__name(host, a, out, err))
            return false;
    }
    if (port.n <= 1)        /* "host:" has the scheme's own port (RFC 3986, 3.2.3) */
        return true;
    str_skip(&port, 1);
    if (port.n > 5 || !num_u64(port, &number) || number < 1 || number > 65535)
        return url__bad(err, "its port is not a number from 1 to 65535");
    out->port = (int)number;
    return true;
}

static bool url__scheme(Str scheme, Url *out)
{
    for (size_t i = 0; i < COUNT_OF(url__schemes); i++)
        if (str_eq_nocase(scheme, url__schemes[i].name)) {
            out->scheme = url__schemes[i].name;
            out->tls = url__schemes[i].tls;
            out->port = url__schemes[i].port;
            return true;
        }
    return false;
}

bool url_parse(Str text, Arena *a, Url *out, Err *err)
{
    Url    url = {0};
    size_t colon = str_find(text, ':');

    if (text.n > LIMIT_URL)
        return url__bad(err, "it is too long");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return url__bad(err, "it holds a blank, a control character or a character beyond ASCII");
        if (text.p[i] == '\\')
            return url__bad(err, "it holds a backslash");
        if (text.p[i] == '#')
            return url__bad(err, "it holds a fragment (#)");
    }
    if (!url__scheme((Str){text.p, colon}, &url) || !str_starts(str_from_to(text, colon, text.n), STR("://")))
        return url__bad(err, "it does not begin with http://, https://, ws:// or wss://");
    str_skip(&text, colon + 3);
    size_t end = 0;
    while (end < text.n && text.p[end] != '/' && text.p[end] != '?')
        end++;
    if (!url__authority((Str){text.p, end}, a, &url, err))
        return false;
    str_skip(&text, end);
    size_t question = str_find(text, '?');
    url.path = question ? arena_str(a, (Str){text.p, question}) : STR("/");
    if (question < text.n)
        url.query = arena_str(a, str_from_to(text, question + 1, text.n));
    *out = url;
    return true;
}

Str url_authority(const Url *u, Arena *a)
{
    bool own = false;
    Str  host = u->host;

    for (size_t i = 0; i < COUNT_OF(url__schemes); i++)
        own = own || (str_eq(u->scheme, url__schemes[i].name) && u->port == url__schemes[i].port);
    if (u->ipv6)            /* a zone means something on this machine only (RFC 6874, 4) */
        host = arena_fmt(a, "[%.*s]", (int)str_find(host, '%'), host.p);
    return own ? host : arena_fmt(a, "%.*s:%d", STR_ARG(host), u->port);
}

Str url_text(const Url *u, Arena *a)
{
    Buf b = buf_make(2 * LIMIT_URL);

    buf_add(&b, u->scheme);
    buf_add(&b, STR("://"));
    buf_add(&b, url_authority(u, a));
    buf_add(&b, u->path);
    Str text = arena_str(a, buf_str(&b));
    buf_free(&b);
    return text;
}

Url url_join(const Url *base, Str path, Str query, Arena *a)
{
    Url  url = *base;
    Str  left = base->path;

    while (left.n && left.p[left.n - 1] == '/')
        left.n--;
    bool  slash = path.n == 0 || path.p[0] != '/';
    char *p = arena_alloc(a, left.n + slash + path.n + 1);
    if (left.n)
        memcpy(p, left.p, left.n);
    if (slash)
        p[left.n] = '/';
    if (path.n)
        memcpy(p + left.n + slash, path.p, path.n);
    url.path = (Str){p, left.n + slash + path.n};
    url.query = query.p ? arena_str(a, query) : (Str){0};
    return url;
}

/* Without "." and ".." (RFC 3986, 5.2.4). The path begins with a slash. */
static Str url__no_dots(Str path, Arena *a)
{
    char  *p = arena_alloc(a, path.n + 2);
    size_t n = 0;
    Str    part;
    bool   last;

    str_skip(&path, 1);
    while (str_cut(&path, '/', &part)) {
        last = path.p == NULL;
        bool up = str_eq(part, STR("..")), here = str_eq(part, STR("."));
        while (up && n && p[--n] != '/')
            ;
        if (!up && !here) {
            p[n++] = '/';
            if (part.n)
                memcpy(p + n, part.p, part.n);
            n += part.n;
        } else if (last) {
            p[n++] = '/';
        }
    }
    return (Str){n ? p : "/", n ? n : 1};
}

static bool url__has_scheme(Str ref)
{
    size_t colon = str_find(ref, ':');

    for (size_t i = 0; i < colon; i++)
        if (!url__alnum(ref.p[i]) && ref.p[i] != '+' && ref.p[i] != '-' && ref.p[i] != '.')
            return false;
    return colon && colon < ref.n;
}

bool url_resolve(const Url *base, Str ref, Arena *a, Url *out, Err *err)
{
    Str path = base->path, query = {0}, whole = ref;

    if (ref.n > LIMIT_URL)
        return url__bad(err, "it is too long");
    if (!url__has_scheme(ref)) {
        size_t question = str_find(ref, '?');
        if (question < ref.n)
            query = str_from_to(ref, question, ref.n);
        ref.n = question;
        if (str_starts(ref, STR("//"))) {
            whole = arena_fmt(a, "%.*s:%.*s%.*s", STR_ARG(base->scheme), (int)ref.n, ref.p, (int)query.n, query.p ? query.p : "");
            return url_parse(whole, a, out, err);
        }
        size_t dir = path.n;
        while (dir && path.p[dir - 1] != '/')
            dir--;
        if (ref.n && ref.p[0] != '/')
            path = arena_fmt(a, "%.*s%.*s", (int)dir, path.p, (int)ref.n, ref.p);
        else if (ref.n)
            path = ref;
        else if (!query.p && base->query.p)
            query = arena_fmt(a, "?%.*s", (int)base->query.n, base->query.p);
        path = url__no_dots(path, a);
        whole = arena_fmt(a, "%.*s://%.*s%.*s%.*s", STR_ARG(base->scheme), STR_ARG(url_authority(base, a)), (int)path.n, path.p,
                          (int)query.n, query.p ? query.p : "");
    }
    return url_parse(whole, a, out, err);
}

Str url_encode(Str raw, Arena *a)
{
    static const char digits[] = "0123456789ABCDEF";
    char  *p = arena_array(a, raw.n + 1, 3);
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        if (url__unreserved(raw.p[i])) {
            p[n++] = raw.p[i];
            continue;
        }
        p[n++] = '%';
        p[n++] = digits[(unsigned char)raw.p[i] >> 4];
        p[n++] = digits[raw.p[i] & 15];
    }
    return (Str){p, n};
}

bool url_is_loopback(const Url *u)
{
    static const unsigned char loopback[16] = {[15] = 1}, mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned char bytes[16];
    Str           name = u->host;

    switch (url_address(u->host, bytes)) {
    case 4:
        return bytes[0] == 127;
    case 16:
        return memcmp(bytes, loopback, 16) == 0 || (memcmp(bytes, mapped, 12) == 0 && bytes[12] == 127);
    default:
        break;
    }
    if (name.n && name.p[name.n - 1] == '.')
        name.n--;
    return str_eq(name, STR("localhost")) || str_ends(name, STR(".localhost"));
}
