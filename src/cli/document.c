#include "cli/document.h"

#include <stdio.h>

#include "base/base64.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/screen.h"

void document_string(JsonOut *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_str(w, str_from(text));
}

void document_strings(JsonOut *w, const char *key, abx_strings s)
{
    json_key(w, key);
    json_begin(w, '[');
    for (size_t i = 0; i < s.n; i++)
        json_put_str(w, str_from(s.v[i]));
    json_end(w, ']');
}

void document_flag(JsonOut *w, const char *key, int on)
{
    json_key(w, key);
    json_put_bool(w, on);
}

void document_text(JsonOut *w, const char *key, const char *text, Arena scratch)
{
    const Json *doc;
    ABX_UNSET Err err;

    json_key(w, key);
    if (text && json_parse(str_from(text), &scratch, &doc, &err))
        json_put(w, doc);
    else
        json_put_null(w);
}

static void document__known(JsonOut *w, const char *key, const char *value)
{
    if (!value)
        return;
    json_key(w, key);
    json_put_str(w, str_from(value));
}

void document_info(JsonOut *w, const abx_info *i)
{
    json_begin(w, '{');
    document__known(w, "sandbox_id", i->sandbox_id);
    document__known(w, "provider", i->provider);
    document__known(w, "template", i->template_name);
    document__known(w, "status", i->status);
    json_key(w, "metadata");
    json_begin(w, '{');
    for (size_t k = 0; k < i->metadata_count; k++) {
        json_key_str(w, str_from(i->metadata[k].key));
        json_put_str(w, str_from(i->metadata[k].value));
    }
    json_end(w, '}');
    document__known(w, "started_at", i->started_at);
    document__known(w, "end_at", i->end_at);
    if (i->timeout_s >= 0) {
        json_key(w, "timeout");
        json_put_int(w, i->timeout_s);
    }
    document__known(w, "region", i->region);
    json_end(w, '}');
}

static void document__line(Buf *to, Arena *a, const char *name, const char *value)
{
    if (!value)
        return;
    buf_addf(to, "%s: ", name);
    buf_add(to, screen_line(a, str_from(value), false));
    buf_addc(to, '\n');
}

void document_info_text(Buf *to, Arena *a, const abx_info *i)
{
    document__line(to, a, "sandbox_id", i->sandbox_id);
    document__line(to, a, "provider", i->provider);
    document__line(to, a, "template", i->template_name);
    document__line(to, a, "status", i->status);
    document__line(to, a, "reason", i->reason && *i->reason ? i->reason : NULL);
    for (size_t k = 0; k < i->metadata_count; k++) {
        buf_add(to, STR("metadata: "));
        buf_add(to, screen_line(a, str_from(i->metadata[k].key), false));
        buf_addc(to, '=');
        buf_add(to, screen_line(a, str_from(i->metadata[k].value), false));
        buf_addc(to, '\n');
    }
    document__line(to, a, "started_at", i->started_at);
    document__line(to, a, "end_at", i->end_at);
    if (i->timeout_s >= 0)
        buf_addf(to, "timeout: %lld\n", (long long)i->timeout_s);
    document__line(to, a, "region", i->region);
}

void document_bytes(JsonOut *w, const char *key, Str bytes)
{
    ABX_UNSET char name[32];

    if (utf8_valid(bytes)) {
        json_key(w, key);
        json_put_str(w, bytes);
        return;
    }
    Arena a = arena_make(ARENA_COMMAND);
    snprintf(name, sizeof name, "%s_b64", key);
    json_key(w, name);
    json_put_str(w, base64_encode(&a, bytes));
    arena_free(&a);
}

/* ---- tables ---- */

DocumentTable document_table(Arena *a, size_t columns, bool terminal)
{
    return (DocumentTable){.a = a, .terminal = terminal, .columns = columns};
}

void document_cell(DocumentTable *t, Str text)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 64;
        Str   *cells = arena_array(t->a, room, sizeof *cells);
        if (t->count)
            memcpy(cells, t->cells, t->count * sizeof *cells);
        t->cells = cells;
        t->room = room;
    }
    t->cells[t->count++] = screen_line(t->a, text, t->terminal);
}

void document_table_end(const DocumentTable *t, Buf *to)
{
    size_t *widths = arena_array(t->a, t->columns, sizeof *widths);

    for (size_t i = 0; i < t->count; i++) {
        size_t width = screen_width(t->cells[i]);
        if (width > widths[i % t->columns])
            widths[i % t->columns] = width;
    }
    for (size_t i = 0; i < t->count; i++) {
        /* No blanks at the end of a line: look for a cell still to come. */
        size_t column = i % t->columns, last = t->columns - 1;
        while (last > column && t->cells[i - column + last].n == 0)
            last--;
        buf_add(to, t->cells[i]);
        if (column < last)
            for (size_t n = screen_width(t->cells[i]); n < widths[column] + 2; n++)
                buf_addc(to, ' ');
        if (column == t->columns - 1)
            buf_addc(to, '\n');
    }
}
