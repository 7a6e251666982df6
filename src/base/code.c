#include "base/code.h"

#include <stdio.h>

static const struct { Code code; int exit; const char *hint; } code__rows[] = {
#define CODE_ROW(number, exit, hint) {E##number, exit, hint},
    CODE_TABLE(CODE_ROW)
#undef CODE_ROW
};

void code_name(Code code, char name[static 6])
{
    snprintf(name, 6, "E%04u", (unsigned)code % 10000);
}

int code_exit(Code code)
{
    for (size_t i = 0; i < COUNT_OF(code__rows); i++)
        if (code__rows[i].code == code)
            return code__rows[i].exit;
    return 1;
}

const char *code_hint(Code code)
{
    for (size_t i = 0; i < COUNT_OF(code__rows); i++)
        if (code__rows[i].code == code)
            return code__rows[i].hint;
    return "";
}
