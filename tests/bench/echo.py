"""How long a key takes to a terminal in a sandbox and back. The driver is the
same for every program: a terminal here, one key at a time."""

import os
import pty
import select
import signal
import time

THERE = "stty -icanon; echo ready; exec sleep 1000"     # the terminal there echoes, and nothing else prints


def latencies(words, env, keys):
    """Milliseconds, one for each key."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(words[0], [*words, "sh", "-c", THERE], {**env, "TERM": "xterm"})
    try:
        got = b""
        while b"ready" not in got:
            if not select.select([fd], [], [], 20)[0]:
                raise TimeoutError(f"{words[0]} did not begin: {got[-500:]!r}")
            got += os.read(fd, 65536)
        took = []
        time.sleep(0.2)
        for _ in range(keys):
            start = time.perf_counter()
            os.write(fd, b"k")
            os.read(fd, 65536)
            took.append((time.perf_counter() - start) * 1000)
            time.sleep(0.002)
        return took[keys // 10:]
    finally:
        os.kill(pid, signal.SIGHUP)
        os.close(fd)
        os.waitpid(pid, 0)
