"""A network of its own, with a name server that behaves as told.

    unshare -rnm python3 name_server.py MODE [--interrupt SECONDS] COMMAND...

Inside: /etc/resolv.conf names 127.0.0.1, where UDP port 53 answers by MODE, and
port 8080 answers every HTTP request with an empty list. COMMAND's status and
output, and how long it took, are printed as JSON.

MODE  known    A 127.0.0.1 for every name       unknown  NXDOMAIN
      broken   SERVFAIL                          silent   nothing
      empty    the name is there, without an address
      junk     bytes that are no answer
"""

import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

EMPTY = b'{"items": [], "pagination": {"page": 1, "pageSize": 100, "totalItems": 0, "totalPages": 0, "hasNextPage": false}}'


def reply(query, mode):
    """A DNS answer (RFC 1035, 4) to a query with one question."""
    end = query.index(b"\0", 12) + 5
    question, kind = query[12:end], query[end - 3]
    code = {"unknown": 3, "broken": 2}.get(mode, 0)
    has = mode == "known" and kind == 1
    answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04\x7f\0\0\x01" if has else b""
    return query[:2] + bytes([0x81, 0x80 | code]) + b"\0\x01\0" + bytes([has]) + b"\0\0\0\0" + question + answer


def names(mode):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 53))
    while True:
        query, who = s.recvfrom(4096)
        if mode == "junk":
            s.sendto(query[:2] + b"\xff" * 9, who)
        elif mode != "silent":
            s.sendto(reply(query, mode), who)


def http():
    s = socket.create_server(("127.0.0.1", 8080))
    while True:
        c, _ = s.accept()
        c.recv(65536)
        c.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(EMPTY), EMPTY))
        c.close()


def replace(path, text):
    with tempfile.NamedTemporaryFile("w", delete=False) as f:
        f.write(text)
    subprocess.run(["mount", "--bind", f.name, path], check=True)


def main(mode, *command):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    replace("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    replace("/etc/hosts", "127.0.0.1 in-hosts\n")
    for serve in (names, mode), (http,):
        threading.Thread(target=serve[0], args=serve[1:], daemon=True).start()
    time.sleep(0.1)
    interrupt = None
    if command[0] == "--interrupt":
        interrupt, command = float(command[1]), command[2:]
    began = time.monotonic()
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True)
    if interrupt:
        time.sleep(interrupt)
        p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    took = time.monotonic() - began
    left = subprocess.run(["pgrep", "-s", str(p.pid)], stdout=subprocess.DEVNULL).returncode == 0
    print(json.dumps({"status": p.returncode, "out": out, "err": err, "took": took, "left": left}))


main(*sys.argv[1:])
