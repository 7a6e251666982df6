/* Every kind of vectors, in the order of their files' names. */
#include "vectors.c"

#include "sanitize_vectors.c"       /* first: another looks at its rules, too */
#include "config_vectors.c"
#include "dotenv_vectors.c"
#include "epp_records_vectors.c"
#include "errors_vectors.c"
#include "manifest_vectors.c"
#include "refs_vectors.c"
#include "settings_vectors.c"
#include "sources_vectors.c"
#include "tree_vectors.c"
#include "versions_vectors.c"

static const VectorFile vectors_files[] = {
    {"config", config_vector},
    {"dotenv", dotenv_vector},
    {"epp_records", epp_records_vector},
    {"errors", errors_vector},
    {"manifest", manifest_vector},
    {"paths", paths_vector},
    {"refs", refs_vector},
    {"sanitize", sanitize_vector},
    {"sets", sets_vector},
    {"settings_edit", settings_vector},
    {"sources", sources_vector},
    {"tree_digest", tree_digest_vector},
    {"versions", versions_vector},
    {NULL, NULL},
};
