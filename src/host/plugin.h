/* plugin.h - an installed plugin, ready to be asked or opened.
 *
 * The load order is that of the specification, 2.9: receipt, manifest, requires,
 * id, and for kinds that run no code of their own the integrity. Whatever fails
 * keeps its code (E8001, E8011, E8013, E8014).
 *
 * Memory: the arena's.
 */
#ifndef ABX_PLUGIN_H
#define ABX_PLUGIN_H

#include "host/config.h"
#include "host/manifest.h"
#include "host/store.h"

typedef struct Plugin Plugin;
struct Plugin {
    Manifest     manifest;
    Receipt      receipt;
    const char  *files;         /* the folder its files are in */
    Strs inherit;       /* consented: declared, and in the receipt */
    ConfigSchema schema;
};

ABX_FN bool plugin_load(const Store *s, Str id, Arena *a, Plugin *out, Err *err) ABX_CHECK;

/* The schema of a manifest; `inherit` says which core keys it sees. */
ABX_FN void plugin_schema(const Manifest *m, Strs inherit, Arena *a, ConfigSchema *out);

/* Fields and credentials that must be there (6.10): E8002, E1001, E1003, naming
 * each key and where it can be set. */
ABX_FN bool plugin_validate(const Plugin *p, Settings settings, Err *err) ABX_CHECK;

/* Its settings are resolved and validated, and a Provider over it is made
 * (provider/epp.h); nothing is started yet. What config_provider() and
 * plugin_validate() say, and E8021 for a kind that this abx does not run. The
 * store and the plugin must outlive the provider. */
ABX_FN bool plugin_open(const Store *s, const Plugin *p, const Config *c, const ProviderHost *host, Provider **out,
                        Err *err) ABX_CHECK;

#endif
