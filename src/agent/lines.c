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

/* The length of the first line of s, terminator included (*end bytes of it);
 * 0 when s does not hold all of it, or may not. */
static size_t lines__whole(Str s, bool last, size_t *end)
{
    size_t lf = str_find(s, '\n');
    size_t n = str_find((Str){s.p, lf}, '\r');

    if (n == s.n || (n + 1 == s.n && s.p[n] == '\r' && !last))
        return 0;
    *end = n + 1 == lf && lf < s.n ? 2 : 1;
    return n + *end;
}

/* Move bytes into `part`: as many as cannot hold a whole line with it. */
static void lines__gather(Lines *l, Str *in)
{
    size_t room = LIMIT_AGENT_LINE - l->part.n;
    size_t n = str_find((Str){in->p, str_find(*in, '\n')}, '\r');

    n = n < in->n ? n + 1 : n;
    n = n < room ? n : room;
    buf_add(&l->part, (Str){in->p, n});
    str_skip(in, n);
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
    if (!cr && l->part.p[l->part.n - 1] == '\n') {
        l->given = true;
        return lines__piece(buf_str(&l->part), 1, piece);
    }
    if (l->part.p[l->part.n - 1] == '\r') {         /* what follows it decides */
        if (in->n == 0 && !last)
            return STEP_MORE;
        end = 1;
        if (in->n && in->p[0] == '\n' && l->part.n < LIMIT_AGENT_LINE) {
            lines__gather(l, in);
            end = 2;
        }
        l->given = true;
        return lines__piece(buf_str(&l->part), end, piece);
    }
    if (!last && l->part.n < LIMIT_AGENT_LINE)
        return STEP_MORE;
    l->given = true;
    return lines__piece(buf_str(&l->part), 0, piece);
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
        if (l->part.cap > 4096)
            buf_free(&l->part);
        buf_clear(&l->part);
        l->given = false;
    }
    return l->exact ? lines__next_exact(in, piece) : lines__next_line(l, in, last, piece);
}
