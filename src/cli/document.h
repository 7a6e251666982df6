/* document.h - the shapes of what abx prints, as JSON and as text.
 *
 * The names and their order are an interface (docs/cli.md); what is not known
 * is left out, never filled in with a default.
 */
#ifndef ABX_DOCUMENT_H
#define ABX_DOCUMENT_H

#include "abx.h"
#include "base/arena.h"
#include "base/buf.h"
#include "data/json.h"

/* sandbox_id, provider, template, status, metadata, started_at, end_at,
 * timeout, region: of create, info and each element of list. */
ABX_FN void document_info(JsonOut *w, const abx_info *i);

/* The same as lines "name: value", with the backend's reason behind status. */
ABX_FN void document_info_text(Buf *to, Arena *a, const abx_info *i);

/* A member of an object: a string, an array of strings, a flag, a document
 * that is a text itself (NULL, or no JSON: null). */
ABX_FN void document_string(JsonOut *w, const char *key, const char *text);
ABX_FN void document_strings(JsonOut *w, const char *key, abx_strings s);
ABX_FN void document_flag(JsonOut *w, const char *key, int on);
ABX_FN void document_text(JsonOut *w, const char *key, const char *text, Arena scratch);

/* A string that may be any bytes: `key` when it is UTF-8, else `key_b64`. */
ABX_FN void document_bytes(JsonOut *w, const char *key, Str bytes);

/* Rows of cells in columns as wide as their widest, two blanks between. Each
 * cell is put on one line first; `terminal` also makes it safe for one. */
typedef struct DocumentTable {
    Arena *a;
    bool   terminal;
    size_t columns;
    Str   *cells;       /* rows of `columns` */
    size_t count, room; /* cells */
} DocumentTable;

ABX_FN DocumentTable document_table(Arena *a, size_t columns, bool terminal);
ABX_FN void document_cell(DocumentTable *t, Str text);
ABX_FN void document_table_end(const DocumentTable *t, Buf *to);

#endif
