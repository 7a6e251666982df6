/* consented.h - the consent summary of a manifest: what a person agrees to, and
 * what a receipt remembers of it (specification of the provider host, 1.3,
 * `consented`).
 *
 * It is made of the manifest alone, so what was agreed to and what is installed
 * are compared by comparing two of them.
 *
 * Memory: scratch while it is written.
 */
#ifndef ABX_CONSENTED_H
#define ABX_CONSENTED_H

#include "data/json.h"
#include "host/manifest.h"

/* One object: `sorted` as receipts hold it, else in the order in which it is
 * printed. */
ABX_FN void consented_put(const Manifest *m, JsonOut *w, bool sorted);

#endif
