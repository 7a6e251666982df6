/* manifest.h - abx-provider.toml: what a plugin says of itself.
 *
 * Specification of the provider host, section 2, with rows 1, 4, 5 and 21 of
 * docs/differences.md. Every violation is E8014 (a protocol that is not the
 * kind's own: E8013) and names the file and the key; the order of the checks is
 * that of 2.12.
 *
 * Memory: all in the arena, at most 32 MiB of it.
 */
#ifndef ABX_MANIFEST_H
#define ABX_MANIFEST_H

#include "base/arena.h"
#include "base/err.h"
#include "data/json.h"
#include "data/toml.h"
#include "provider/provider.h"

#define MANIFEST_FILE "abx-provider.toml"

typedef enum ManifestKind { MANIFEST_EXEC, MANIFEST_REST, MANIFEST_NODE } ManifestKind;

typedef struct ManifestField {
    Str          key;
    FieldType    type;
    bool         required, secret, credential;
    const Toml  *fallback;          /* NULL: none */
    Str          description, description_zh;
    Strs env;               /* names behind ABX_<ID>_<KEY>, as written */
    Strs choices;
} ManifestField;

typedef struct Manifest {
    Str          id, version, name, name_zh, description, license, homepage;
    ManifestKind kind;
    Strs command;           /* exec: as written; node: one, the normalised entry */
    int64_t      startup_ms, call_ms;
    Strs platforms;
    const Pair  *requires_;         /* component and comparator list, in file order */
    size_t       requires_count;
    Str          base_url, domain;              /* rest; empty: none */
    Str          auth_scheme, auth_header;      /* rest */
    const Pair  *derive;                        /* rest: key and template */
    size_t       derive_count;
    Strs features;                      /* as written */
    Strs cli, python;                   /* operations, as written */
    Strs inputs, startups, placeholders;
    Strs network, filesystem, env_passthrough;
    bool         spawns_processes;
    Strs inherit;
    const ManifestField *fields;                /* file order */
    size_t       field_count;
    const Strs *any_of;                 /* auth: groups */
    size_t       any_of_count;
    const Toml  *commands;                      /* the entries array; NULL: none */
    char         sha256[65];                    /* of the file's bytes */
} Manifest;

/* `where` names the file in messages. */
ABX_FN bool manifest_parse(Str text, Str where, Arena *a, Manifest *out, Err *err) ABX_CHECK;

/* compat.requires against what this host answers for: `sdk` with the version of
 * the Python host that it stands for, `abx` with its own. False: E8013. */
ABX_FN bool manifest_supported(const Manifest *m, Err *err) ABX_CHECK;

/* A provider id by 2.3. The names of the catalog are ids, too; that of the
 * built-in provider, which no plugin may have, is none. */
ABX_FN bool manifest_is_id(Str id);

/* "exec", "rest", "node" */
ABX_FN Str manifest_kind_word(ManifestKind kind);

/* The features in the order of the registry (2.5); its index, or -1. */
ABX_FN int manifest_feature_rank(Str feature);

#endif
