#include "api/hash.h"

#include "abx.h"
#include "api/errand.h"
#include "api/error.h"
#include "base/hex.h"
#include "base/str.h"
#include "sync/item.h"

/* What the agent says of PATH: one file, and that this is all. */
typedef struct HashSaid { int files; bool end; Item file; } HashSaid;

static bool hash__items(ItemReader *r, Str bytes, HashSaid *said, Err *err)
{
    Item i;
    Step step;

    while ((step = item_next(r, &bytes, &i, err)) == STEP_DONE) {
        if (said->end || (i.kind != ITEM_HAVE && i.kind != ITEM_END) || (i.kind == ITEM_HAVE && !i.hashed))
            return err_set(err, ERR_INPUT, E8020, "the agent's answer about a hash is none");
        said->end = i.kind == ITEM_END;
        said->files += !said->end;
        /* Of a folder there are more; one of a single file is named as the question named it. */
        if (!said->end) {
            said->file = i;
            said->files += !str_eq(i.path, STR("."));
        }
    }
    return step != STEP_ERR;
}

static CarryResult hash__by_agent(const abx_sandbox *b, Str path, unsigned char sha256[SHA256_SIZE], Err *err)
{
    Errand      e, *one = &e;
    ItemReader  r = item_reader();
    HashSaid    said = {0};
    Str         bytes;
    Step        step = STEP_MORE;
    CarryResult result = errand_start(b, FRAME_HASH, (Str[]){STR("-"), STR("."), path}, 3, (Str){0}, false, &e, err);

    if (result != CARRY_DONE)
        return result;
    bool ok = true;
    while (ok && (step = errand_next(&e, &bytes, err)) != STEP_ERR && (step == STEP_DONE || !e.over))
        ok = step == STEP_DONE ? hash__items(&r, bytes, &said, err) : errand_wait(&one, 1, false, err);
    ok = ok && step != STEP_ERR;
    if (ok && said.files == 0)
        ok = err_set(err, ERR_NOT_FOUND, E4001, "there is no file %.*s in the sandbox", STR_ARG(path));
    else if (ok && said.files > 1)
        ok = err_set(err, ERR_REMOTE, E4000, "%.*s is a folder in the sandbox", STR_ARG(path));
    else if (ok && !said.end)
        ok = err_set(err, ERR_INPUT, E8020, "the agent's answer about a hash was cut");
    if (ok)
        memcpy(sha256, said.file.sha256, SHA256_SIZE);
    errand_close(&e);
    item_reader_free(&r);
    return ok ? CARRY_DONE : CARRY_FAILED;
}

static bool hash__take(void *ctx, Str bytes, Err *err)
{
    (void)err;
    sha256_add(ctx, bytes);
    return true;
}

bool hash_file(const abx_sandbox *b, Str path, bool agent, unsigned char sha256[static SHA256_SIZE], Err *err)
{
    Provider *p = b->session->provider;
    Sha256    hash = sha256_make();
    int64_t   size;
    ABX_UNSET Err why;

    CarryResult r = agent ? hash__by_agent(b, path, sha256, &why) : CARRY_CANNOT;
    if (r == CARRY_FAILED)
        *err = why;
    if (r != CARRY_CANNOT)
        return r == CARRY_DONE;
    if (!p->kind->file_read(p, str_from(b->id), path, (Sink){hash__take, &hash}, &size, DEADLINE_NONE, err))
        return false;
    sha256_end(&hash, sha256);
    return true;
}

bool hash_compare(const abx_sandbox *b, Str path, const unsigned char sha256[static SHA256_SIZE], bool agent, Err *err)
{
    ABX_UNSET unsigned char there[SHA256_SIZE];

    if (!hash_file(b, path, agent, there, err))
        return err_wrap(err, "cannot compare");
    return memcmp(there, sha256, SHA256_SIZE) == 0 ||
           err_set(err, ERR_INPUT, E8020, "what lies at %.*s in the sandbox has another SHA-256 than what was copied", STR_ARG(path));
}

int abx_hash_file(abx_sandbox *b, const char *path, char hex[65], abx_error *e)
{
    unsigned char sha256[SHA256_SIZE];
    ABX_UNSET Err err;

    if (!hash_file(b, str_from(path), true, sha256, &err))
        return error_give(e, &err);
    hex_write((Str){(char *)sha256, SHA256_SIZE}, hex);
    hex[64] = '\0';
    return 0;
}
