/* test.c - one program for all unit tests: it sees every private name of the
 * unit. To add a file: include it below, and name its table in main(). */
#define ABX_TEST 1
#include "abx.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "guard.c"
#include "script_stream.c"
#include "vectors_all.c"
#include "vectors_test.c"

#include "format_test.c"
#include "system_test.c"
#include "num_test.c"
#include "utf8_test.c"
#include "base64_test.c"
#include "sha1_test.c"
#include "sha256_test.c"
#include "time_test.c"
#include "fs_test.c"
#include "json_test.c"
#include "toml_test.c"
#include "pep440_test.c"
#include "dotenv_test.c"
#include "clean_test.c"
#include "pktline_test.c"
#include "object_test.c"
#include "pack_test.c"
#include "frame_test.c"
#include "armor_test.c"
#include "ring_test.c"
#include "casefold_test.c"
#include "url_test.c"
#include "glob_test.c"
#include "header_test.c"
#include "http_test.c"
#include "sse_test.c"
#include "events_test.c"
#include "shell_test.c"
#include "client_test.c"
#include "dial_test.c"
#ifndef ABX_TLS_NONE
#include "roots_test.c"
#endif
#include "inflate_test.c"
#include "tar_test.c"
#include "item_test.c"
#include "walk_test.c"
#include "sender_test.c"
#include "receiver_test.c"
#include "have_test.c"
#include "tls_test.c"
#include "multipart_test.c"
#include "proc_test.c"
#include "httpd_test.c"
#include "ws_test.c"
#include "ws_stream_test.c"
#include "carry_test.c"
#include "agent_test.c"
#include "manifest_test.c"
#include "config_test.c"
#include "gittalk_test.c"
#include "spool_test.c"
#include "gitfiles_test.c"
#include "settings_test.c"
#include "lock_test.c"
#include "tree_test.c"
#include "receipt_test.c"
#include "store_test.c"
#include "install_test.c"
#include "archive_test.c"
#include "source_test.c"
#include "plugin_test.c"
#include "catalog_test.c"
#include "forge_test.c"
#include "refusal_test.c"
#include "execd_test.c"
#include "talk_test.c"
#include "carried_test.c"
#include "jobs_test.c"
#include "copy_test.c"
#include "entry_test.c"
#include "serve_test.c"
#include "epp_script.c"
#include "epp_test.c"
#include "args_test.c"
#include "screen_test.c"
#include "progress_test.c"
#include "detach_test.c"
#include "values_test.c"

/* With words: the tables of these names alone. */
static bool test_wanted(char **words, const char *name)
{
    for (char **w = words; *w; w++)
        if (strcmp(*w, name) == 0)
            return true;
    return !*words;
}

#define TEST_RUN(name) \
    failed += test_wanted(argv + 1, #name) ? cmocka_run_group_tests_name(#name, name##_tests, NULL, NULL) : 0

int main(int argc, char **argv)
{
    int failed = argc == 0;

    epp_script_main(argc, argv);
    TEST_RUN(num);
    TEST_RUN(utf8);
    TEST_RUN(base64);
    TEST_RUN(format);
    TEST_RUN(system);
    TEST_RUN(sha1);
    TEST_RUN(sha256);
    TEST_RUN(time);
    TEST_RUN(fs);
    TEST_RUN(json);
    TEST_RUN(toml);
    TEST_RUN(pep440);
    TEST_RUN(dotenv);
    TEST_RUN(clean);
    TEST_RUN(pktline);
    TEST_RUN(object);
    TEST_RUN(pack);
    TEST_RUN(frame);
    TEST_RUN(armor);
    TEST_RUN(ring);
    TEST_RUN(ring);
    TEST_RUN(casefold);
    TEST_RUN(url);
    TEST_RUN(glob);
    TEST_RUN(header);
    TEST_RUN(http);
    TEST_RUN(sse);
    TEST_RUN(events);
    TEST_RUN(shell);
    TEST_RUN(client);
    TEST_RUN(dial);
#ifndef ABX_TLS_NONE
    TEST_RUN(roots);
#endif
    TEST_RUN(inflate);
    TEST_RUN(tar);
    TEST_RUN(item);
    TEST_RUN(walk);
    TEST_RUN(sender);
    TEST_RUN(receiver);
    TEST_RUN(have);
    TEST_RUN(tls);
    TEST_RUN(multipart);
    TEST_RUN(proc);
    TEST_RUN(httpd);
    TEST_RUN(ws);
    TEST_RUN(ws_stream);
    TEST_RUN(carry);
    TEST_RUN(agent);
    TEST_RUN(manifest);
    TEST_RUN(config);
    TEST_RUN(gittalk);
    TEST_RUN(spool);
    TEST_RUN(gitfiles);
    TEST_RUN(settings);
    TEST_RUN(plugin);
    TEST_RUN(lock);
    TEST_RUN(tree);
    TEST_RUN(receipt);
    TEST_RUN(store);
    TEST_RUN(install);
    TEST_RUN(archive);
    TEST_RUN(source);
    TEST_RUN(catalog);
    TEST_RUN(forge);
    TEST_RUN(refusal);
    TEST_RUN(execd);
    TEST_RUN(talk);
    TEST_RUN(carried);
    TEST_RUN(jobs);
    TEST_RUN(copy);
    TEST_RUN(entry);
    TEST_RUN(serve);
    TEST_RUN(epp);
    TEST_RUN(args);
    TEST_RUN(screen);
    TEST_RUN(progress);
    TEST_RUN(detach);
    TEST_RUN(values);
    return failed != 0;
}
