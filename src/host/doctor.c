#include "host/doctor.h"

#include "base/limits.h"
#include "base/str.h"
#include "host/plugin.h"
#include "host/registry.h"
#include "provider/epp.h"

static bool doctor__say(DoctorReport *r, const char *name, bool ok, Str detail)
{
    r->v[r->n++] = (DoctorCheck){.name = name, .ok = ok, .detail = detail};
    return ok;
}

/* A check that failed: what the error says, and its hint where it has one. */
static bool doctor__fail(DoctorReport *r, const char *name, const Err *err, Arena *a)
{
    doctor__say(r, name, false, arena_str(a, str_from(err->text)));
    r->v[r->n - 1].hint = arena_str(a, str_from(err->hint));
    r->v[r->n - 1].code = err->code;
    return false;
}

static bool doctor__installed(const Store *s, Str id, RegistryRow *row, Arena *a, DoctorReport *r)
{
    ABX_UNSET Err err;

    if (!registry_find(s, id, a, row, &err))
        return doctor__fail(r, "installed", &err, a);
    if (!row->plugin && !row->kind) {
        err_set(&err, ERR_USAGE, E8004, "this abx has no backend for provider %.*s", STR_ARG(id));
        return doctor__fail(r, "installed", &err, a);
    }
    Str version = row->plugin ? row->plugin->manifest.version : STR(ABX_VERSION);
    return doctor__say(r, "installed", true, arena_fmt(a, "%.*s %.*s", STR_ARG(row->name), STR_ARG(version)));
}

static bool doctor__integrity(const Store *s, const Plugin *p, Arena *a, DoctorReport *r)
{
    ABX_UNSET Err err;

    if (str_eq(p->receipt.trust, STR("link")))
        return true;
    if (!store_check(s, p->manifest.id, &err))
        return doctor__fail(r, "integrity", &err, a);
    return doctor__say(r, "integrity", true, str_from_to(p->receipt.tree_sha256, 0, 16));
}

static bool doctor__config(const Config *c, const RegistryRow *row, Arena *a, DoctorReport *r)
{
    Settings settings;
    ABX_UNSET Err err;

    if (!config_provider(c, &row->schema, a, &settings, &err) ||
        (row->plugin && !plugin_validate(row->plugin, settings, &err)))
        return doctor__fail(r, "config", &err, a);
    return doctor__say(r, "config", true, STR(""));
}

/* What a plugin says of its settings when it starts is a second word on them. */
static bool doctor__handshake(const Store *s, const Config *c, const Plugin *p, const ProviderHost *host, Arena *a,
                              DoctorReport *r)
{
    Provider *provider;
    ABX_UNSET Err err;

    bool ok = plugin_open(s, p, c, host, &provider, &err);
    if (ok) {
        ok = epp_handshake(provider, clock_after(p->manifest.startup_ms + LIMIT_CLEANUP_MS), &err);
        provider->kind->close(provider);
    }
    if (!ok)
        return doctor__fail(r, err.code == E1001 || err.code == E1003 || err.code == E8002 ? "config" : "handshake", &err, a);
    return doctor__say(r, "handshake", true, STR(""));
}

void doctor_run(const Store *s, const Config *c, Str id, bool handshake, const ProviderHost *host, Arena *a,
                DoctorReport *out)
{
    RegistryRow row;

    *out = (DoctorReport){.id = id};
    /* A kind that is not run here has nobody to shake hands with. */
    out->ok = doctor__installed(s, id, &row, a, out) && (!row.plugin || doctor__integrity(s, row.plugin, a, out)) &&
              doctor__config(c, &row, a, out) &&
              (!handshake || !row.plugin || row.plugin->manifest.kind != MANIFEST_EXEC ||
               doctor__handshake(s, c, row.plugin, host, a, out));
}
