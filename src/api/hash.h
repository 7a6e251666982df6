/* hash.h - the SHA-256 of a file in a sandbox: read there by the carried agent,
 * or all of it here. */
#ifndef ABX_HASH_H
#define ABX_HASH_H

#include "api/session.h"
#include "base/sha256.h"

ABX_FN bool hash_file(const abx_sandbox *b, Str path, bool agent, unsigned char sha256[static SHA256_SIZE],
                      Err *err);

/* Is it this one? E8020. */
ABX_FN bool hash_compare(const abx_sandbox *b, Str path, const unsigned char sha256[static SHA256_SIZE], bool agent, Err *err);

#endif
