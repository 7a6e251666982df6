#include "data/armor.h"

#include "base/base64.h"
#include "base/num.h"
#include "base/str.h"

Armor armor_make(const char tag[static ARMOR_TAG + 1])
{
    Armor a = {.line = buf_make(ARMOR_LINE_MAX), .bytes = buf_make(ARMOR_LINE_MAX)};

    memcpy(a.tag, tag, sizeof a.tag);
    return a;
}

void armor_free(Armor *a)
{
    buf_free(&a->line);
    buf_free(&a->bytes);
}

void armor_put(Armor *a, Buf *to, Str bytes, size_t piece)
{
    if (!piece)
        piece = ARMOR_BYTES;
    while (bytes.n) {
        Str part = {bytes.p, bytes.n < piece ? bytes.n : piece};
        buf_addf(to, "%s %llu ", a->tag, (unsigned long long)a->seq++);
        base64_put(to, part);
        buf_addc(to, '\n');
        str_skip(&bytes, part.n);
    }
}

/* One whole line, without its LF. */
static Step armor__line(Armor *a, Str line, Str *bytes, Err *err)
{
    Str      tag, seq;
    uint64_t number;

    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (!str_cut(&line, ' ', &tag) || !line.p || !str_eq(tag, str_from(a->tag)))
        return STEP_MORE;
    buf_clear(&a->bytes);
    if (!str_cut(&line, ' ', &seq) || !num_u64(seq, &number) || (seq.n > 1 && seq.p[0] == '0') ||
        number != a->seq) {
        err_set(err, ERR_INPUT, E8020, "the agent's conversation: a line of it is missing or comes twice");
        return STEP_ERR;
    }
    char  *room = line.n ? buf_room(&a->bytes, line.n) : NULL;
    size_t n = 0;
    if (!room || !base64_decode_to(room, line, &n)) {
        err_set(err, ERR_INPUT, E8020, "the agent's conversation: a line of it is not base64");
        return STEP_ERR;
    }
    buf_grew(&a->bytes, n);
    a->seq++;
    *bytes = buf_str(&a->bytes);
    return STEP_DONE;
}

/* The next piece of *in that ends a line, joined with what was there before. */
static bool armor__cut(Armor *a, Str *in, Str *line)
{
    size_t n = str_find(*in, '\n');
    bool   whole = n < in->n;
    Str    part = {in->p, n};

    str_skip(in, whole ? n + 1 : n);
    if (whole && a->line.n == 0 && !a->skipping) {
        *line = part;
        return true;
    }
    if (!a->skipping)
        buf_add(&a->line, part);
    a->skipping = a->skipping || a->line.over;
    *line = a->skipping ? (Str){0} : buf_str(&a->line);
    return whole;
}

Step armor_next(Armor *a, Str *in, Str *bytes, Err *err)
{
    Str line;

    while (in->n) {
        if (!armor__cut(a, in, &line))
            continue;
        Step step = armor__line(a, line, bytes, err);
        /* What it carried was decoded into a buffer of its own. */
        buf_clear(&a->line);
        a->skipping = false;
        if (step != STEP_MORE)
            return step;
    }
    return STEP_MORE;
}
