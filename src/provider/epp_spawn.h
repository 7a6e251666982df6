/* epp_spawn.h - how a plugin is started: its words and its environment.
 *
 * Specification, 2.4 and 4.3: no shell; a word that begins with ./ is a file of
 * the plugin; a bare program name is looked for in the PATH that the plugin
 * gets; of this process's environment it gets a fixed list, and what its
 * manifest names.
 *
 * Memory: all in the arena.
 */
#ifndef ABX_EPP_SPAWN_H
#define ABX_EPP_SPAWN_H

#include "os/proc.h"
#include "provider/epp.h"

/* False: E8014, a word of the command that leads out of the plugin's folder. */
ABX_FN bool epp_spawn_spec(const EppSpec *spec, Arena *a, ProcSpec *out, Err *err) ABX_CHECK;

#endif
