#include "agent/lines.h"

#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"

Lines lines_make(bool exact)
{
    return (Lines){.part = buf_make(LIMIT_AGENT_LINE), .exact = exact};
}

void lines_free(Lines *l)
{
    buf_free(&l->part);
}

/* `bytes`, whose last `end` are a line's terminator, as stock clients see it. */
static Step lines__piece(Str bytes, size_t end, LinesPiece *piece)
{
    Str text = {bytes.p, bytes.n - end};

    piece->bytes = bytes;
    piece->odd = end != 1 || bytes.p[bytes.n - 1] != '\n' || !utf8_valid(text);
    /* An empty line is a text of one LF: an empty text would be left out. */
    piece->text = text.n ? text : STR("\n");
    return STEP_DONE;
}

/* Where the first CR or LF of s stands; s.n: nowhere. The end of a short line
 * is found without looking at all that follows it. */
static size_t lines__end(Str s)
{
    size_t n = 0, step = 128;

    while (n < s.n) {
        step = step < s.n - n ? step : s.n - n;
        Str    part = {s.p + n, step};
        size_t at = str_find((Str){part.p, str_find(part, '\n')}, '\r');
        n += at;
        if (at < step)
            break;
        step *= 4;
    }
    return n;
}

/* The length of the first line of s, terminator included (*end bytes of it);
 * 0 when s does not hold all of it, or may not. */
static size_t lines__whole(Str s, bool last, size_t *end)
{
    size_t n = lines__end(s);

    if (n == s.n || (n + 1 == s.n && s.p[n] == '\r' && !last))
        return 0;
    *end = s.p[n] == '\r' && n + 1 < s.n && s.p[n + 1] == '\n' ? 2 : 1;
    return n + *end;
}

/* Move bytes into `part`: as many as cannot hold a whole line with it. */
static void lines__gather(Lines *l, Str *in)
{
    size_t room = LIMIT_AGENT_LINE - l->part.n;
    size_t n = lines__end(*in);

    n = n < in->n ? n + 1 : n;
    n = n < room ? n : room;
    buf_add(&l->part, (Str){in->p, n});
    str_skip(in, n);
}

/* Hand out `part`, whose last `end` bytes are a terminator. */
static Step lines__give(Lines *l, size_t end, LinesPiece *piece)
{
    l->given = l->part.n;
    /* A character is not cut where the line is for its length alone. */
    size_t good = end ? 0 : utf8_good(buf_str(&l->part));
    if (l->given == LIMIT_AGENT_LINE && good && l->given - good < 4)
        l->given = good;
    return lines__piece((Str){l->part.p, l->given}, end, piece);
}

static Step lines__next_line(Lines *l, Str *in, bool last, LinesPiece *piece)
{
    size_t end = 0, n;

    if (l->part.n == 0 && (n = lines__whole(*in, last, &end)) > 0 && n <= LIMIT_AGENT_LINE) {
        lines__piece((Str){in->p, n}, end, piece);
        str_skip(in, n);
        return STEP_DONE;
    }
    bool cr = l->part.n && l->part.p[l->part.n - 1] == '\r';
    if (!cr)
        lines__gather(l, in);
    if (l->part.n == 0)
        return STEP_MORE;
    if (!cr && l->part.p[l->part.n - 1] == '\n')
        return lines__give(l, 1, piece);
    if (l->part.p[l->part.n - 1] == '\r') {         /* what follows it decides */
        if (in->n == 0 && !last)
            return STEP_MORE;
        end = 1;
        if (in->n && in->p[0] == '\n' && l->part.n < LIMIT_AGENT_LINE) {
            lines__gather(l, in);
            end = 2;
        }
        return lines__give(l, end, piece);
    }
    if (!last && l->part.n < LIMIT_AGENT_LINE)
        return STEP_MORE;
    return lines__give(l, 0, piece);
}

/* Whole lines as one text, what follows the last LF by itself. */
static Step lines__next_exact(Str *in, LinesPiece *piece)
{
    size_t n = in->n;

    if (n == 0)
        return STEP_MORE;
    while (n > 0 && in->p[n - 1] != '\n')
        n--;
    Str bytes = {in->p, n ? n : in->n};
    *piece = (LinesPiece){.bytes = bytes, .odd = true};
    /* A text of nothing but one LF would be read as one empty line. */
    Str text = {bytes.p, bytes.n - 1};
    if (n && text.n && !str_eq(text, STR("\n")) && utf8_valid(text)) {
        piece->text = text;
        piece->odd = false;
    }
    str_skip(in, bytes.n);
    return STEP_DONE;
}

Step lines_next(Lines *l, Str *in, bool last, LinesPiece *piece)
{
    if (l->given) {
        buf_drop(&l->part, l->given);
        if (l->part.n == 0 && l->part.cap > 4096)
            buf_free(&l->part);
        l->given = 0;
    }
    return l->exact ? lines__next_exact(in, piece) : lines__next_line(l, in, last, piece);
}
