/* watcher.h - `abx agent watch`: what happens to a file, in a folder, or in all
 * that is below it, by inotify(7), as lines (sync/item.h) until it is ended.
 *
 * First ITEM_READY. Then, for PATH itself and what is in it, ITEM_CREATED,
 * CHANGED and REMOVED, those of the same moment once. A folder that comes is
 * told with all that is in it by then; one that goes stands for what was in it.
 * ITEM_LOST: the kernel dropped some. When PATH, a folder, is removed or moved
 * that is the last line, and the exit status 0. PATH may be a link, and is
 * followed; below it nothing is. Folders that may not be read are left out.
 *
 * Memory: the paths of LIMIT_WATCH_FOLDERS folders; who does not read costs
 * nothing more.
 */
#ifndef ABX_WATCHER_H
#define ABX_WATCHER_H

#include "base/base.h"

/* The words behind it. The exit status. */
ABX_FN int watcher_main(int argc, char **argv);

#endif
