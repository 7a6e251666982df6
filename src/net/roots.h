/* roots.h - the root certificates that TLS trusts: where they are found.
 *
 * The first of these that is set or there, and no other:
 *   the file that the caller names; ABX_CA_FILE; SSL_CERT_FILE; SSL_CERT_DIR
 *     (folders, with ':' between them): one that is set and cannot be used is
 *     an error, never passed over;
 *   the bundles of the distributions, at their places;
 *   the roots embedded in this program, if it has any.
 * A file holds PEM blocks, or one certificate as DER. Of a certificate only the
 * subject is looked at here: whoever verifies asks for those with the subject
 * it needs, and takes apart no others.
 *
 * Memory: all of it in the Roots, until roots_free().
 */
#ifndef ABX_ROOTS_H
#define ABX_ROOTS_H

#include "base/arena.h"
#include "base/err.h"

typedef struct RootsCert {
    Str der;
    Str subject;        /* the whole Name, as DER */
} RootsCert;

typedef struct Roots {
    RootsCert *certs;
    size_t     n;
    char      *from;    /* for the person: a path, or "the embedded roots" */
    Arena      a;
} Roots;

#ifndef ABX_TLS_NONE
/* False: ERR_UNSENT, E5001. */
ABX_FN bool roots_load(Str ca_file, Roots *out, Err *err) ABX_CHECK;
ABX_FN void roots_free(Roots *r);

/* The next certificate with that subject from *at on, which is moved behind
 * it; NULL when there is none left. */
ABX_FN const RootsCert *roots_next(const Roots *r, Str subject, size_t *at);
#endif

#endif
