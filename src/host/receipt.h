/* receipt.h - .abx-install.json: what was installed, from where, and to what
 * the person agreed (specification of the provider host, 1.3).
 *
 * Written to the byte as the other hosts write it: keys sorted at every level,
 * two spaces, one line feed at the end.
 *
 * Memory: what is read lives in the arena; what is written in the Buf.
 */
#ifndef ABX_RECEIPT_H
#define ABX_RECEIPT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "data/json.h"
#include "host/manifest.h"

#define RECEIPT_FILE ".abx-install.json"

typedef enum ReceiptTrust { TRUST_LOCAL, TRUST_PINNED, TRUST_UNPINNED, TRUST_LINK } ReceiptTrust;
typedef enum ReceiptType { RECEIPT_LOCAL, RECEIPT_GIT, RECEIPT_LINK, RECEIPT_CATALOG } ReceiptType;

typedef struct ReceiptSource {
    ReceiptType type;
    Str path;                                   /* local, link */
    Str url, ref, commit, subdir;               /* git */
    Str id, registry, archive_sha256;           /* catalog; an empty archive_sha256 is left out */
} ReceiptSource;

/* What a new receipt is made of. */
typedef struct ReceiptNew {
    const Manifest *manifest;
    ReceiptSource   source;
    ReceiptTrust    trust;
    Str             tree_sha256;                /* empty for a link */
    Str             installed_at;               /* YYYY-MM-DDTHH:MM:SSZ */
    const Json     *installed_by;               /* kept by an update; NULL, or no object with something in it: this host */
} ReceiptNew;

/* The document in the order in which `install` prints it. */
ABX_FN void receipt_print(const ReceiptNew *r, JsonOut *w);

/* The same as the file holds it. */
ABX_FN void receipt_write(const ReceiptNew *r, Arena scratch, Buf *to);

/* An old document with another source.archive_sha256, as the file holds it;
 * its source is an object (3.8, catalog). */
ABX_FN void receipt_rewrite(const Json *doc, Str archive_sha256, Arena scratch, Buf *to);

/* The source alone, as an object. */
ABX_FN void receipt_source(const ReceiptSource *s, JsonOut *w);

typedef struct Receipt {
    const Json   *doc;                          /* the whole object */
    Str           text;                         /* its bytes, as they lay on the disk */
    Str           id, version, tree_sha256, trust;
    ReceiptSource source;                       /* of a type that nobody knows: RECEIPT_LOCAL */
    const Json   *consented;
} Receipt;

/* False: it is none (not UTF-8, no JSON, no object). Fields are not checked:
 * what is not there is empty. */
ABX_FN bool receipt_parse(Str text, Arena *a, Receipt *out);

/* The one in a folder. False: there is none, also when it cannot be read. */
ABX_FN bool receipt_read(const char *folder, Arena *a, Receipt *out);

/* "local", "pinned", "unpinned", "link" */
ABX_FN Str receipt_trust_word(ReceiptTrust trust);

#endif
