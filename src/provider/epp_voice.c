#include "provider/epp_voice.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/clean.h"

/* The cleaned text in one line, in an arena of its own. */
static Str epp_voice__clean(const EppVoice *v, Str text, Arena *own)
{
    size_t room = 3 * text.n + 64;      /* U+FFFD has three bytes */

    room *= v->secret_count + 3;
    for (size_t i = 0; i < v->secret_count; i++)
        room += 3 * v->secrets[i].n + 64;
    *own = arena_make(room);
    return clean_message(text, v->secrets, v->secret_count, own);
}

/* The filter works on copies of the secrets. */
static void epp_voice__free(Arena *own)
{
    mem_wipe(own->p, own->used);
    arena_free(own);
}

static size_t epp_voice__longest(const EppVoice *v)
{
    size_t n = 0;

    for (size_t i = 0; i < v->secret_count; i++)
        if (v->secrets[i].n > n)
            n = v->secrets[i].n;
    return n;
}

static bool epp_voice__inside(Str s, size_t at)
{
    return at < s.n && ((unsigned char)s.p[at] & 0xc0) == 0x80;
}

Str epp_voice_line(const EppVoice *v, Str text, Arena *a)
{
    bool  cut = text.n > LIMIT_EPP_SPOKEN;
    Arena own;

    if (cut)
        text.n = LIMIT_EPP_SPOKEN;
    Str    line = epp_voice__clean(v, text, &own);
    size_t keep = line.n, longest = epp_voice__longest(v);
    if (cut)
        keep = keep > longest ? keep - longest : 0;
    if (keep > LIMIT_EPP_VOICE)
        keep = LIMIT_EPP_VOICE;
    while (keep && epp_voice__inside(line, keep))
        keep--;
    Str out = arena_str(a, utf8_trim((Str){line.p, keep}));
    epp_voice__free(&own);
    return out;
}

Str epp_voice_tail(const EppVoice *v, Str text, bool cut, size_t chars, Arena *a)
{
    Arena  own;
    Str    line = epp_voice__clean(v, text, &own);
    size_t from = cut ? epp_voice__longest(v) : 0, at;

    if (from > line.n)
        from = line.n;
    while (epp_voice__inside(line, from))
        from++;
    line = utf8_trim(str_from_to(line, from, line.n));
    for (at = line.n; at > 0 && chars > 0; chars -= !epp_voice__inside(line, at))
        at--;
    Str out = arena_str(a, str_from_to(line, at, line.n));
    epp_voice__free(&own);
    return out;
}
