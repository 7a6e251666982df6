#include "host/edit.h"
#include "host/settings.h"

static void settings_vectors_test(void **state)
{
    (void)state;
    vectors_whole("settings_edit", 44);
}

static const struct CMUnitTest settings_tests[] = {
    cmocka_unit_test(settings_vectors_test),
};
