/* epp_script.h - a plugin that follows a script: the test program, started anew.
 *
 * Each line of the script is one step:
 *   <         read a request, and forget it
 *   >TEXT     print TEXT and a line feed; @ in it is the number of the last request read
 *   .TEXT     print TEXT
 *   *N TEXT   print TEXT N times; | in it is a line feed
 *   n N       notifications for N commands
 *   eTEXT     print TEXT and a line feed to stderr
 *   s MS      sleep
 *   t         ignore SIGTERM
 *   c FD      close a descriptor
 *   f         leave a child behind, in this group, that holds all descriptors
 *   F         the same in a session of its own
 *   h         the whole handshake, right
 *   H         the same, and the request goes to `log`
 *   v         its environment, sorted, and what else it was started with go to `log`
 *   =         the script ends here; the plugin's next process goes on behind it
 *   w         read requests until `shutdown`, answer that and exit
 *   z         sleep for ever
 *   x N       exit
 *   k         end by SIGKILL
 *   d TEXT    append TEXT to the file `log` in the data folder; @ as above, $ for what was read
 * At its end it exits with 0. Children write their process ids to `pids`.
 */
#ifndef ABX_TEST_EPP_SCRIPT_H
#define ABX_TEST_EPP_SCRIPT_H

/* Run as the plugin where the arguments say so; returns otherwise. */
static void epp_script_main(int argc, char **argv);

#endif
