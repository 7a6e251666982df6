#include "host/keys.h"

#include "base/str.h"

#define KEYS_ENV(...) (const char *const[]){__VA_ARGS__, NULL}

static const ConfigField keys__core[] = {
    {.key = "provider", .fallback = "alicloud-express", .env = KEYS_ENV("ABX_PROVIDER"), .table = "core", .settable = true},
    {.key = "sandbox_api_key", .secret = true, .env = KEYS_ENV("ABX_SANDBOX_API_KEY"), .settable = true},
    {.key = "sandbox_base_url", .type = FIELD_URL, .env = KEYS_ENV("ABX_SANDBOX_BASE_URL"), .table = "transport",
     .settable = true},
    {.key = "sandbox_domain", .env = KEYS_ENV("ABX_SANDBOX_DOMAIN"), .table = "transport", .settable = true},
    {.key = "http_timeout", .type = FIELD_FLOAT, .fallback = "30.0", .env = KEYS_ENV("ABX_HTTP_TIMEOUT"),
     .table = "transport", .settable = true, .least = 1},
    {.key = "http2", .type = FIELD_BOOL, .fallback = "true", .env = KEYS_ENV("ABX_HTTP2"), .table = "transport",
     .settable = true},
    {.key = "max_connections", .type = FIELD_INT, .fallback = "100", .env = KEYS_ENV("ABX_MAX_CONNECTIONS"),
     .table = "transport", .least = 1},
    {.key = "max_keepalive_connections", .type = FIELD_INT, .fallback = "20",
     .env = KEYS_ENV("ABX_MAX_KEEPALIVE_CONNECTIONS"), .table = "transport", .least = 1},
    {.key = "keepalive_expiry", .type = FIELD_FLOAT, .fallback = "30.0", .env = KEYS_ENV("ABX_KEEPALIVE_EXPIRY"),
     .table = "transport", .least = 1},
    {.key = "ws_ping_interval", .type = FIELD_FLOAT, .fallback = "30.0", .env = KEYS_ENV("ABX_WS_PING_INTERVAL"),
     .table = "transport", .least = 1},
    {.key = "log_level", .type = FIELD_ENUM, .fallback = "WARNING", .env = KEYS_ENV("ABX_LOG_LEVEL"), .table = "transport",
     .settable = true, .choices = KEYS_ENV("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")},
    {.key = "default_template", .fallback = "base", .env = KEYS_ENV("ABX_DEFAULT_TEMPLATE"), .table = "transport",
     .settable = true},
    {.key = "github_token", .secret = true, .env = KEYS_ENV("GITHUB_TOKEN"), .settable = true},
    {.key = "template_index_url", .type = FIELD_URL, .env = KEYS_ENV("ABX_TEMPLATE_INDEX_URL"), .table = "transport"},
    {.key = "template_dir", .type = FIELD_PATH, .env = KEYS_ENV("ABX_TEMPLATE_DIR"), .table = "transport"},
    {.key = "mcp_auth_token", .secret = true, .env = KEYS_ENV("ABX_MCP_AUTH_TOKEN")},
    {.key = "mcp_allowed_origins", .env = KEYS_ENV("ABX_MCP_ALLOWED_ORIGINS"), .table = "transport"},
    {.key = "mcp_runtime_dir", .type = FIELD_PATH, .env = KEYS_ENV("ABX_MCP_RUNTIME_DIR"), .table = "transport"},
};

#undef KEYS_ENV

const ConfigField *keys_core(size_t i)
{
    return i < COUNT_OF(keys__core) ? &keys__core[i] : NULL;
}

bool keys_find(Str key, size_t *i)
{
    for (*i = 0; *i < COUNT_OF(keys__core); ++*i)
        if (str_eq(str_from(keys__core[*i].key), key))
            return true;
    return false;
}
