/* epp_voice.h - what a plugin says, before it is shown.
 *
 * The filter of data/clean.h with a plugin's secrets, for texts of any length:
 * what is too long to be looked at whole is cut first, and where the cut may
 * have gone through a secret, the rest of that goes, too.
 *
 * Memory: results in the arena, at most LIMIT_EPP_VOICE bytes each.
 */
#ifndef ABX_EPP_VOICE_H
#define ABX_EPP_VOICE_H

#include "base/arena.h"

typedef struct EppVoice {
    Str        id;              /* of the provider */
    Str        credential;      /* the variable that its key is read from; empty: none */
    const Str *secrets;
    size_t     secret_count;
} EppVoice;

/* One line: the text, or the front of it. */
ABX_FN Str epp_voice_line(const EppVoice *v, Str text, Arena *a);

/* One line: the last `chars` characters of it. `cut`: it began earlier, with
 * bytes that are not known any more. */
ABX_FN Str epp_voice_tail(const EppVoice *v, Str text, bool cut, size_t chars, Arena *a);

#endif
