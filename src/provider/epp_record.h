/* epp_record.h - what a plugin answers, as the values of provider.h.
 *
 * Specification, 4.8 and 4.11, with rows 12, 28 and 38 of docs/differences.md.
 * Nothing is made up: what is not said stays unknown, and a shape that an
 * answer cannot have is refused, with the name of the key.
 *
 * Memory: results in the arena; they do not point into the answer.
 */
#ifndef ABX_EPP_RECORD_H
#define ABX_EPP_RECORD_H

#include "data/json.h"
#include "provider/provider.h"

/* Each is false for an answer of another shape; *what says what is wrong with
 * it ("sandbox_id is missing"), static text. */
ABX_FN bool epp_record_sandbox(const Json *record, Arena *a, SandboxInfo *out, const char **what) ABX_CHECK;
/* Where the entry does not say its path: `path` itself was asked for, or, in a
 * folder, what is in it. */
ABX_FN bool epp_record_entry(const Json *entry, Str path, bool folder, Arena *a, FileInfo *out,
                             const char **what) ABX_CHECK;
ABX_FN bool epp_record_process(const Json *process, Arena *a, ProcessInfo *out, const char **what) ABX_CHECK;
ABX_FN bool epp_record_port(const Json *result, Arena *a, PortUrl *out, const char **what) ABX_CHECK;

/* An exit code: 0 to 255, or minus the number of a signal. */
ABX_FN bool epp_record_exit(const Json *code, ExecEvent *out, const char **what) ABX_CHECK;

/* The id alone, from a record that is wrong otherwise; p NULL when not even
 * that is there. */
ABX_FN Str epp_record_id(const Json *record, Arena *a);

/* A time as ISO 8601 has it, in the forms that the other hosts read: date or
 * date and time, with or without separators, a comma or a point before the
 * fraction, an offset or none (which is UTC). In microseconds since 1970. */
ABX_FN bool epp_record_time(Str text, int64_t *us) ABX_CHECK;

#endif
