/* format.c - printf() and its kin, strtod(), strtol() and strtoul() in place of
 * musl's: the part of them that abx, Mbed TLS and musl itself use, 16 KB smaller.
 * Only what is linked with musl uses it; tests/unit/format_test.c holds it to what
 * another libc prints and reads.
 *
 * Conversions: d i u x X o c s p e f g %; flags - 0 + and blank, widths and
 * precisions, also as * (of e, f and g up to 300); lengths hh h l ll z j t. No locale,
 * no wide characters, no %n, no long double, and none read in hexadecimal. What is not
 * among these is printed as it stands, and takes no argument: tools/check-calls names
 * such a format. Numbers are printed and read exactly: every digit that a double has
 * is computed, and rounded half to even, as IEEE 754 wants.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the decimal digits of a double ------------------------------------------------ */

enum {
    FORMAT_LIMB = 1000000000,   /* a bignum's digits, the lowest first */
    FORMAT_LIMBS = 88,          /* 2^53 * 5^1076 and 2^1024 are shorter */
    FORMAT_DIGITS = 9 * FORMAT_LIMBS,
};

/* 0.DIGITS * 10^point; the first and the last digit are none that is 0. */
typedef struct FormatReal {
    char digits[FORMAT_DIGITS + 2];
    int  count;
    int  point;
} FormatReal;

/* m * 2^e. A half is five tenths: below 1 the bignum is multiplied by 5, and the point moves. */
static void format__digits(uint64_t m, int e, FormatReal *out)
{
    uint32_t limbs[FORMAT_LIMBS] = {(uint32_t)(m % FORMAT_LIMB), (uint32_t)(m / FORMAT_LIMB % FORMAT_LIMB),
                                    (uint32_t)(m / FORMAT_LIMB / FORMAT_LIMB)};
    int      n = 3, shift = e < 0 ? e : 0;

    while (e != 0) {
        uint64_t factor = 1, carry = 0;
        for (int i = 0; i < 12 && e != 0; i++, e += e < 0 ? 1 : -1)
            factor *= e < 0 ? 5 : 2;
        for (int i = 0; i < n; i++) {
            carry += limbs[i] * factor;
            limbs[i] = (uint32_t)(carry % FORMAT_LIMB);
            carry /= FORMAT_LIMB;
        }
        if (carry)
            limbs[n++] = (uint32_t)carry;
    }
    out->count = 0;
    for (int i = n - 1; i >= 0; i--)
        for (uint32_t unit = FORMAT_LIMB / 10; unit > 0; unit /= 10)
            if (out->count || limbs[i] / unit)
                out->digits[out->count++] = (char)('0' + limbs[i] / unit % 10);
    out->point = out->count + shift;
    while (out->count && out->digits[out->count - 1] == '0')
        out->count--;
}

/* A positive, finite double as m * 2^e; its place among the doubles is its bits. */
static void format__take(double v, uint64_t *m, int *e)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    *e = (int)(bits >> 52 & 0x7ff);
    *m = (bits & (UINT64_MAX >> 12)) | (uint64_t)(*e > 0) << 52;
    *e = (*e ? *e : 1) - 1075;
}

/* Keep n digits. Nothing stands behind the last one, so a tie shows itself. */
static void format__round(FormatReal *r, int n)
{
    bool up = false;

    if (n < 0 || n >= r->count) {
        if (n < 0)
            r->count = 0;
        return;
    }
    if (r->digits[n] != '5' || n + 1 < r->count)
        up = r->digits[n] >= '5';
    else
        up = n > 0 && (r->digits[n - 1] - '0') % 2;
    r->count = n;
    while (r->count && r->digits[r->count - 1] == (up ? '9' : '0'))
        r->count--;
    if (!up)
        return;
    if (r->count)
        r->digits[r->count - 1]++;
    else {
        r->digits[r->count++] = '1';
        r->point++;
    }
}

static char format__digit(const FormatReal *r, int i)
{
    return i >= 0 && i < r->count ? r->digits[i] : '0';
}

/* --- printf ------------------------------------------------------------------------- */

typedef struct FormatOut {
    char  *p;
    size_t size;
    size_t n;           /* what it all comes to, also when it does not fit */
} FormatOut;

static void format__put(FormatOut *o, const char *p, size_t n)
{
    if (o->n < o->size)
        memcpy(o->p + o->n, p, n < o->size - o->n ? n : o->size - o->n);
    o->n += n;
}

static void format__fill(FormatOut *o, char c, long n)
{
    for (; n > 0; n--)
        format__put(o, &c, 1);
}

typedef struct FormatSpec {
    bool left, zero, plus, blank;
    int  width, precision;      /* -1: none */
    char length;                /* 'l': 64 bits; 'h', 'H': 16, 8; 0: an int */
} FormatSpec;

/* Sign and digits, filled up to the width: with zeros behind the sign, or blanks. */
static void format__number(FormatOut *o, const FormatSpec *s, const char *sign, const char *p, size_t n, int zeros)
{
    long room = (long)s->width - (long)(strlen(sign) + n) - zeros;

    if (!s->left && !s->zero)
        format__fill(o, ' ', room);
    format__put(o, sign, strlen(sign));
    if (!s->left && s->zero)
        format__fill(o, '0', room);
    format__fill(o, '0', zeros);
    format__put(o, p, n);
    if (s->left)
        format__fill(o, ' ', room);
}

static void format__integer(FormatOut *o, FormatSpec *s, char kind, uint64_t v, const char *sign)
{
    char     text[24], *p = text + sizeof text;
    unsigned base = kind == 'o' ? 8 : kind == 'x' || kind == 'X' ? 16 : 10;

    for (; v; v /= base)
        *--p = (kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[v % base];
    int n = (int)(text + sizeof text - p);
    if (s->precision >= 0)
        s->zero = false;
    int least = s->precision < 0 ? 1 : s->precision;
    format__number(o, s, sign, p, (size_t)n, n < least ? least - n : 0);
}

/* d.ddde+xx, or ddd.ddd. %g chooses, and drops the zeros at the end. */
static void format__real(FormatOut *o, FormatSpec *s, char kind, double v)
{
    FormatReal  r = {.count = 0};
    const char *sign = __builtin_signbit(v) ? "-" : s->plus ? "+" : s->blank ? " " : "";
    uint64_t    m;
    int         e, places = s->precision < 0 ? 6 : s->precision;
    char        text[FORMAT_DIGITS + 400];
    size_t      n = 0;

    if (!__builtin_isfinite(v)) {
        s->zero = false;
        format__number(o, s, sign, v != v ? "nan" : "inf", 3, 0);
        return;
    }
    if (places > 300)
        places = 300;
    format__take(v < 0 ? -v : v, &m, &e);
    format__digits(m, e, &r);
    if (kind == 'g') {
        places = places ? places : 1;
        format__round(&r, places);
        int power = r.count ? r.point - 1 : 0;
        kind = power < -4 || power >= places ? 'e' : 'f';
        places = kind == 'e' ? r.count - 1 : r.count - r.point;
        if (places < 0 || r.count == 0)
            places = 0;
    }
    format__round(&r, kind == 'e' ? places + 1 : r.point + places);
    if (r.count == 0)
        r.point = kind == 'e';
    int whole = kind == 'e' ? 1 : r.point > 0 ? r.point : 1, first = kind == 'e' || r.point > 0 ? 0 : r.point - 1;
    for (int i = 0; i < whole + places; i++) {
        if (i == whole)
            text[n++] = '.';
        text[n++] = format__digit(&r, first + i);
    }
    if (kind == 'e') {
        int power = r.point - 1, size = power < 0 ? -power : power;
        text[n++] = 'e';
        text[n++] = power < 0 ? '-' : '+';
        if (size >= 100)
            text[n++] = (char)('0' + size / 100);
        text[n++] = (char)('0' + size / 10 % 10);
        text[n++] = (char)('0' + size % 10);
    }
    format__number(o, s, sign, text, n, 0);
}

static int format__count(const char **fmt, va_list *ap)
{
    int n = 0;

    if (**fmt == '*') {
        ++*fmt;
        return va_arg(*ap, int);
    }
    for (; **fmt >= '0' && **fmt <= '9'; ++*fmt)
        if (n < 100000)
            n = n * 10 + (**fmt - '0');
    return n;
}

static FormatSpec format__spec(const char **fmt, va_list *ap)
{
    FormatSpec s = {.precision = -1};

    for (;; ++*fmt) {
        if (**fmt == '-')
            s.left = true;
        else if (**fmt == '0')
            s.zero = true;
        else if (**fmt == '+')
            s.plus = true;
        else if (**fmt == ' ')
            s.blank = true;
        else
            break;
    }
    s.width = format__count(fmt, ap);
    if (s.width < 0) {
        s.left = true;
        s.width = (int)-(unsigned)s.width;
    }
    if (**fmt == '.') {
        ++*fmt;
        s.precision = format__count(fmt, ap);
    }
    for (; **fmt && strchr("hlzjt", **fmt); ++*fmt)
        s.length = **fmt != 'h' ? 'l' : s.length == 'h' ? 'H' : 'h';
    return s;
}

static void format__convert(FormatOut *o, FormatSpec *s, char kind, va_list *ap)
{
    int64_t v;

    switch (kind) {
    case 'd':
    case 'i':
        v = s->length == 'l' ? va_arg(*ap, long) : va_arg(*ap, int);
        v = s->length == 'h' ? (short)v : s->length == 'H' ? (signed char)v : v;
        format__integer(o, s, kind, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0 ? "-" : s->plus ? "+" : s->blank ? " " : "");
        return;
    case 'p':
        format__integer(o, s, 'x', (uintptr_t)va_arg(*ap, void *), "0x");
        return;
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
        uint64_t u = s->length == 'l' ? va_arg(*ap, unsigned long) : va_arg(*ap, unsigned);
        format__integer(o, s, kind, s->length == 'h' ? (uint16_t)u : s->length == 'H' ? (uint8_t)u : u, "");
        return;
    }
    case 'e':
    case 'f':
    case 'g':
        format__real(o, s, kind, va_arg(*ap, double));
        return;
    case 'c': {
        char c = (char)va_arg(*ap, int);
        s->zero = false;
        format__number(o, s, "", &c, 1, 0);
        return;
    }
    case 's': {
        const char *p = va_arg(*ap, const char *);
        p = p ? p : "(null)";
        s->zero = false;
        format__number(o, s, "", p, s->precision < 0 ? strlen(p) : strnlen(p, (size_t)s->precision), 0);
        return;
    }
    default:            /* %%, or the end behind a single one */
        format__put(o, &kind, kind != '\0');
    }
}

int vsnprintf(char *to, size_t size, const char *fmt, va_list from)
{
    FormatOut o = {to, size ? size - 1 : 0, 0};
    va_list   ap;

    va_copy(ap, from);
    while (*fmt) {
        size_t plain = strcspn(fmt, "%");
        format__put(&o, fmt, plain);
        fmt += plain;
        if (*fmt) {
            fmt++;
            FormatSpec s = format__spec(&fmt, &ap);
            format__convert(&o, &s, *fmt, &ap);
            fmt += *fmt != '\0';
        }
    }
    va_end(ap);
    if (size)
        to[o.n < o.size ? o.n : o.size] = '\0';
    if (o.n > INT_MAX) {
        errno = EOVERFLOW;
        return -1;
    }
    return (int)o.n;
}

int snprintf(char *to, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(to, size, fmt, ap);
    va_end(ap);
    return n;
}

/* In one write, so that the lines of several processes do not mix. */
int vfprintf(FILE *file, const char *fmt, va_list ap)
{
    char  text[4096], *p = text;
    int   n = vsnprintf(text, sizeof text, fmt, ap);

    if (n >= (int)sizeof text) {
        p = malloc((size_t)n + 1);
        if (!p)
            return -1;
        vsnprintf(p, (size_t)n + 1, fmt, ap);
    }
    bool ok = n >= 0 && fwrite(p, 1, (size_t)n, file) == (size_t)n;
    if (p != text)
        free(p);
    return ok ? n : -1;
}

int fprintf(FILE *file, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vfprintf(file, fmt, ap);
    va_end(ap);
    return n;
}

int printf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vfprintf(stdout, fmt, ap);
    va_end(ap);
    return n;
}

/* --- numbers out of text ------------------------------------------------------------- */

/* Digits in a base, of which 0 means C's own; *over: there were more than an unsigned
 * long holds. *end stays where it was without a digit. */
static unsigned long format__unsigned(const char *p, int base, char **end, bool *negative, bool *over)
{
    unsigned long v = 0;
    bool          any = false;

    while (isspace((unsigned char)*p))
        p++;
    *negative = *p == '-';
    p += *p == '-' || *p == '+';
    if ((base == 0 || base == 16) && p[0] == '0' && (p[1] | 32) == 'x' && isxdigit((unsigned char)p[2])) {
        p += 2;
        base = 16;
    } else if (base == 0)
        base = *p == '0' ? 8 : 10;
    for (*over = false;; p++, any = true) {
        int digit = *p >= '0' && *p <= '9' ? *p - '0' : (*p | 32) >= 'a' && (*p | 32) <= 'z' ? (*p | 32) - 'a' + 10 : 36;
        if (digit >= base)
            break;
        *over |= __builtin_mul_overflow(v, (unsigned long)base, &v);
        *over |= __builtin_add_overflow(v, (unsigned long)digit, &v);
    }
    if (any)
        *end = (char *)p;
    return v;
}

unsigned long strtoul(const char *text, char **end, int base)
{
    char *stop = (char *)text;
    bool  negative, over;

    unsigned long v = format__unsigned(text, base, &stop, &negative, &over);
    if (end)
        *end = stop;
    if (over) {
        errno = ERANGE;
        return ULONG_MAX;
    }
    return negative ? -v : v;
}

long strtol(const char *text, char **end, int base)
{
    char *stop = (char *)text;
    bool  negative, over;

    unsigned long v = format__unsigned(text, base, &stop, &negative, &over);
    if (end)
        *end = stop;
    if (over || v > (unsigned long)LONG_MAX + negative) {
        errno = ERANGE;
        return negative ? LONG_MIN : LONG_MAX;
    }
    return negative ? (long)-v : (long)v;
}

/* For getaddrinfo(), which reads a scope by it. */
unsigned long long strtoull(const char *text, char **end, int base)
{
    return strtoul(text, end, base);
}

/* ddd.ddde+xx into digits: as many as the middle of two doubles can have, and what is
 * behind them is 0 or shows as one digit more. Where it ended; NULL: it is no number. */
static const char *format__decimal(const char *p, FormatReal *r)
{
    bool dot = false, any = false, more = false;
    long power = 0;

    r->count = r->point = 0;
    for (;; p++) {
        if (*p == '.' && !dot) {
            dot = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        any = true;
        if (r->count == 0 && *p == '0') {
            r->point -= dot;
            continue;
        }
        r->point += !dot;
        if (r->count < FORMAT_DIGITS)
            r->digits[r->count++] = *p;
        else
            more |= *p != '0';
    }
    if (!any)
        return NULL;
    if (more)
        r->digits[r->count++] = '1';
    if ((*p | 32) == 'e') {
        const char *q = p + 1;
        bool        negative = *q == '-';
        q += *q == '-' || *q == '+';
        if (*q >= '0' && *q <= '9') {
            for (; *q >= '0' && *q <= '9'; q++)
                power = power < 1000000 ? power * 10 + (*q - '0') : power;
            p = q;
            r->point += (int)(negative ? -power : power);
        }
    }
    while (r->count && r->digits[r->count - 1] == '0')
        r->count--;
    return p;
}

/* Less than, equal to or greater than 0, as r is to m * 2^e. */
static int format__compare(const FormatReal *r, uint64_t m, int e)
{
    FormatReal other;

    format__digits(m, e, &other);
    if (r->point != other.point)
        return r->point < other.point ? -1 : 1;
    for (int i = 0; i < r->count || i < other.count; i++)
        if (format__digit(r, i) != format__digit(&other, i))
            return format__digit(r, i) - format__digit(&other, i);
    return 0;
}

/* The double that is nearest: one near it by arithmetic with 64 bits, and then the
 * neighbour as long as the decimal number lies beyond the middle between the two. */
static double format__nearest(const FormatReal *r)
{
    long double near = 0, tens = 10;
    uint64_t    bits, m;
    int         e, power = r->point, used = 0;
    double      v;

    if (r->count == 0 || power < -330)
        return 0;
    if (power > 310)
        return __builtin_inf();
    for (; used < 19 && used < r->count; used++)
        near = near * 10 + (r->digits[used] - '0');
    power -= used;
    for (int n = power < 0 ? -power : power; n; n >>= 1, tens *= tens)
        if (n & 1)
            near = power < 0 ? near / tens : near * tens;
    v = (double)near;
    memcpy(&bits, &v, sizeof bits);
    bits -= !__builtin_isfinite(v);
    for (;;) {
        memcpy(&v, &bits, sizeof v);
        if (!__builtin_isfinite(v))
            return v;
        format__take(v, &m, &e);
        int up = format__compare(r, 2 * m + 1, e - 1);
        bool closer = m == (uint64_t)1 << 52 && e > -1074;      /* the one below is half as far */
        int down = bits == 0 ? 1 : closer ? format__compare(r, 4 * m - 1, e - 2) : format__compare(r, 2 * m - 1, e - 1);
        if (up > 0 || (up == 0 && bits % 2))
            bits++;
        else if (down < 0 || (down == 0 && bits % 2))
            bits--;
        else
            return v;
    }
}

double strtod(const char *text, char **end)
{
    FormatReal  r;
    const char *p = text, *stop;
    double      v = 0;

    while (isspace((unsigned char)*p))
        p++;
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    if (strncasecmp(p, "inf", 3) == 0) {
        v = __builtin_inf();
        stop = p + (strncasecmp(p, "infinity", 8) == 0 ? 8 : 3);
    } else if (strncasecmp(p, "nan", 3) == 0) {
        v = __builtin_nan("");
        stop = p + 3;
    } else if ((stop = format__decimal(p, &r)))
        v = format__nearest(&r);
    if (end)
        *end = (char *)(stop ? stop : text);
    return negative && stop ? -v : v;
}
