"""Both daemons against recorded exchanges with the real one.

captures/execd.jsonl holds what the real opensandbox-server 1.1.1 and its
execd answered. A scenario sends those requests again, in an order that
makes their state, and compares status, header names, content type, key sets
and types of every answer, for streams the events and their text; error
texts too where the daemon is the stock stand-in. Ids, times and sizes differ.

Our agent differs on purpose in the places that AGENT names; each must really
differ, so the list cannot rot.
"""

import json
import re
import threading
import time
import urllib.parse
from pathlib import Path

import pytest

from daemon import ended, events, multipart, request

CAPTURES = {c["name"]: c for c in map(json.loads, (Path(__file__).parent / "captures/execd.jsonl").open())}
FILES = {"tmp/a.txt": b"line1\nline2\nline3\nline4\n", "tmp/b.bin": bytes(range(256))}
HOP = {"date", "server", "vary", "x-request-id", "connection", "keep-alive"}

# capture -> why our agent answers otherwise
AGENT = {
    "cmd_sig": "an error event names the signal, too",
    "int_fg": "the same",
    "cmd_timeout": "and says that it was a timeout",
    "x_argv": "argv is taken",
    "down_range_bad": "a malformed range is refused with a body as long as was announced",
    "down_dir": "a folder is refused as everything else is, in JSON",
    "dollar_up": "a dollar in a path is a dollar",
    "dollar_down": "a dollar in a path is a dollar",
    "dollar_home": "a dollar in a path is a dollar",
}

SCENARIOS = {
    "ping": ["ping_proxy", "nosuch", "cmd_get"],
    "command": ["cmd_hello", "cmd_exit3", "fg_status", "fg_logs", "cmd_sig", "cmd_notfound", "cmd_direct", "cmd_cwd",
                "cmd_t0", "cmd_timeout", "x_nocontenttype"],
    "refused": ["cmd_badcwd", "cmd_empty", "cmd_gidonly", "cmd_negtimeout", "cmd_nobody", "x_argv", "bg_logs_unknown",
                "bg_status_unknown", "int_unknown", "int_noid"],
    "environment": ["x_setenv", "x_getenv"],
    "background": ["bg_start", "sleep 0.4", "bg_status_running", "sleep 3.2", "bg_status_done", "bg_logs_all",
                   "bg_logs_cursor", "bg_timeout", "sleep 1.4", "bg_timeout_status"],
    "interrupt": ["bg2_start", "sleep 0.5", "int_ok", "int_status", "int_again", "int_logs"],
    "upload": ["up_ok", "up_two", "up_nofilename", "up_mismatch", "up_badmode", "up_badowner", "up_todir", "up_badmeta",
               "up_nopath", "up_nofile", "up_json", "up_nomode", "up_chunked", "down_ok"],
    "download": ["up_ok", "down_ok", "down_range", "down_range_open", "down_range_suffix", "down_range_multi",
                 "down_range_past", "down_range_bad", "down_lines", "down_lines_bad", "down_missing", "down_nopath",
                 "down_dir", "down_etag"],
    "names": ["make /data/caf\u00e9.txt", "make /data/sp ace.txt", "utf_down", "sp_down", "dollar_up", "dollar_down",
              "dollar_home"],
    "info": ["up_ok", "up_two", "info_ok", "info_missing", "info_none", "ls_rel"],
    "list": ["up_ok", "up_nomode", "list_ok", "list_d0", "list_d2", "list_bad", "list_file", "list_missing",
             "list_nopath", "list_symlink"],
    "search": ["up_ok", "search_all", "search_ok", "search_none", "search_missing", "search_nopath"],
    "directories": ["up_ok", "mkdir_ok", "mkdir_again", "mkdir_bad", "mkdir_onfile", "rm_dir", "rmdir_ok",
                    "rmdir_missing"],
    "move": ["up_ok", "up_two", "mv_ok", "mv_missing", "mv_exists", "up_nomode", "x_mvdir", "x_infodeep",
             "rmdir_file"],
    "remove": ["up_ok", "up_two", "rm_ok", "rm_missing", "rm_none"],
    "replace": ["up_ok", "replace_ok", "replace_verbose", "replace_missing", "replace_empty"],
    "permissions": ["up_ok", "chmod_ok", "chmod_missing", "chmod_badowner"],
    "metrics": ["metrics"],
}
DIRECT_ONLY = ["x_502direct", "x_proxynoport", "x_rootdirect", "x_expect_direct"]
TOKEN = ["tok_none", "tok_bad", "tok_ok", "tok_cmd", "tok_direct"]


class Replay:
    """Sends captures to one daemon, keeping the ids it gives in place of the recorded ones."""

    def __init__(self, base, exact):
        self.base, self.exact, self.ids, self.problems = base, exact, {}, {}

    def step(self, name):
        if name.startswith("sleep "):
            time.sleep(float(name[6:]))
        elif name.startswith("make "):
            self.put(name[5:], b"")
        else:
            found = self.compare(CAPTURES[name], self.send(CAPTURES[name]))
            if found:
                self.problems[name] = found

    def put(self, path, data):
        body, kind = multipart([("metadata", "metadata", None, json.dumps({"path": path, "mode": 644}).encode()),
                                ("file", "f", None, data)])
        answer = request(self.base, "POST", "/files/upload", body, [("Content-Type", kind)])
        assert answer.status == 200, answer

    def target(self, capture):
        url = capture["url"]
        for old, new in self.ids.items():
            url = url.replace(old, new)
        if url.startswith("EXECD"):
            return self.base, url[5:]
        if url.startswith("path="):     # curl -G --data-urlencode on the download call
            return self.base, "/files/download?path=" + urllib.parse.quote(url[5:])
        own = re.match(r"http://127\.0\.0\.1:\d+(/.*)", url)[1]     # the published port without /proxy/44772
        return self.base.removesuffix("/proxy/44772"), own

    def send(self, capture):
        base, path = self.target(capture)
        headers = [tuple(h.split(": ", 1)) for h in capture["request_headers"]]
        body, final = capture.get("request_body"), None
        if "request_form" in capture:
            body, kind = multipart([form_part(w) for w in capture["request_form"]])
            headers.append(("Content-Type", kind))
        if capture["method"] == "POST" and path == "/command":
            final = ended
        answer = request(base, capture["method"], path, body, headers, final=final)
        recorded = re.search(r'"type":"init","text":"([0-9a-f]{32})"', capture.get("response_body", ""))
        given = re.search(rb'"type":"init","text":"([0-9a-f]{32})"', answer.body)
        if recorded and given:
            self.ids[recorded[1]] = given[1].decode()
        return answer

    def compare(self, capture, answer):
        if "response_raw" in capture:
            head, _, body = capture["response_raw"].partition("HTTP/1.1 ")[2].partition("\r\n\r\n")
            status, headers = int(head[:3]), head.split("\r\n")[1:]
        else:
            status, headers, body = capture["status"], capture["response_headers"], capture["response_body"]
        problems = []
        if answer.status != status:
            return [f"status {answer.status}, recorded {status}: {answer.body[:200]!r}"]
        want = {h.split(":", 1)[0].lower(): h.split(": ", 1)[-1] for h in headers}
        have = {k.lower(): v for k, v in answer.headers}
        if set(want) - HOP != set(have) - HOP:
            problems.append(f"headers {sorted(set(have) - HOP)}, recorded {sorted(set(want) - HOP)}")
        for name in ("content-type", "content-disposition", "content-range"):
            if name in want and name in have and want[name] != have[name]:
                problems.append(f"{name} {have[name]!r}, recorded {want[name]!r}")
        kind = want.get("content-type", "")
        if kind == "text/event-stream":
            problems += differing_events(events(body), events(answer.body), answer.body)
        elif kind.startswith("application/json"):
            problems += self.differing_json(json.loads(body), answer.json())
        elif body.removesuffix("\n").encode() != answer.body and capture["name"] not in ("int_logs", "metrics"):
            problems.append(f"body {answer.body[:200]!r}, recorded {body[:200]!r}")
        return problems

    def differing_json(self, want, have):
        found = shapes_differ(want, have, "")
        if isinstance(want, dict) and "code" in want and isinstance(have, dict):
            if want["code"] != have.get("code"):
                found.append(f"code {have.get('code')}, recorded {want['code']}")
            text = want.get("message", "")
            for old, new in self.ids.items():
                text = text.replace(old, new)
            if self.exact and text != have.get("message"):
                found.append(f"message {have.get('message')!r}, recorded {text!r}")
        return found


def form_part(words):
    """A -F argument of curl, as far as the captures use it."""
    name, _, rest = words.partition("=")
    value, *options = rest.split(";")
    options = dict(o.split("=", 1) for o in options)
    if value.startswith("@"):
        return name, options.get("filename", value.rsplit("/", 1)[-1]), options.get("type"), FILES[value[1:]]
    return name, options.get("filename"), options.get("type"), value.encode()


def shapes_differ(want, have, where):
    """Key sets and types, down to the leaves; the entries of an array are held to its first."""
    number = (int, float)
    if isinstance(want, number) and isinstance(have, number) and not isinstance(want, bool):
        return []
    if type(want) is not type(have):
        return [f"{where or 'body'}: {type(have).__name__}, recorded {type(want).__name__}"]
    if isinstance(want, dict):
        if set(want) != set(have):
            return [f"{where or 'body'}: keys {sorted(have)}, recorded {sorted(want)}"]
        return [p for k in want for p in shapes_differ(want[k], have[k], f"{where}.{k}")]
    if isinstance(want, list):
        if bool(want) != bool(have):
            return [f"{where or 'body'}: {len(have)} entries, recorded {len(want)}"]
        return [p for i, entry in enumerate(have) for p in shapes_differ(want[0], entry, f"{where}[{i}]")]
    return []


def differing_events(want, have, raw):
    """Pings come when they come, and the order between stdout and stderr is not kept; the rest must agree."""
    problems = []
    if raw.startswith(b"data:") or b"}\n\n" not in raw:
        problems.append("not framed as JSON, LF, LF")
    for kind in ("stdout", "stderr"):
        a, b = ([e["text"] for e in side if e["type"] == kind] for side in (want, have))
        if a != b:
            problems.append(f"{kind} {b}, recorded {a}")
    rest = ("init", "error", "execution_complete")
    a, b = ([e for e in side if e["type"] in rest] for side in (want, have))
    if [e["type"] for e in a] != [e["type"] for e in b]:
        problems.append(f"events {[e['type'] for e in b]}, recorded {[e['type'] for e in a]}")
    for e, f in zip(a, b):
        optional = {"execution_time"}       # left out when it is 0
        if set(e) - optional != set(f) - optional:
            problems.append(f"{e['type']}: keys {sorted(f)}, recorded {sorted(e)}")
        if e.get("error") != f.get("error"):
            problems.append(f"error {f.get('error')}, recorded {e.get('error')}")
    for e in have:
        if not isinstance(e.get("timestamp"), int):
            problems.append(f"no timestamp in {e}")
    return problems


def judge(daemon, replay, names):
    expected = {n for n in names if n in AGENT} if daemon == "agent" else set()
    surprising = {n: p for n, p in replay.problems.items() if n not in expected}
    assert not surprising, "\n".join(f"{n}: {'; '.join(p)}" for n, p in surprising.items())
    agreeing = expected - set(replay.problems)
    assert not agreeing, f"listed as different and is not: {sorted(agreeing)}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_as_recorded(daemon, route, scenario, servers, shared):
    base = servers[daemon].wait(shared(daemon, "debian"), proxy=route == "proxy")
    request(base, "DELETE", "/directories?path=/data")
    replay = Replay(base, exact=daemon == "stock")
    for name in SCENARIOS[scenario]:
        replay.step(name)
    judge(daemon, replay, SCENARIOS[scenario])


def test_direct_as_recorded(daemon, servers, shared):
    replay = Replay(servers[daemon].wait(shared(daemon, "debian")), exact=daemon == "stock")
    for name in DIRECT_ONLY:
        replay.step(name)
    judge(daemon, replay, DIRECT_ONLY)


def test_token_as_recorded(daemon, servers, mark):
    server = servers[daemon]
    sandbox = server.create("python:3.12-slim", mark, {"EXECD_ACCESS_TOKEN": "tok-1"})
    try:
        replay = Replay(server.wait(sandbox, headers=[("X-EXECD-ACCESS-TOKEN", "tok-1")]), exact=daemon == "stock")
        for name in TOKEN:
            replay.step(name)
        judge(daemon, replay, TOKEN)
    finally:
        server.kill(sandbox)


def test_interrupted_foreground_as_recorded(daemon, route, servers, shared):
    """The stream of a command ends when another connection interrupts it."""
    base = servers[daemon].wait(shared(daemon, "debian"), proxy=route == "proxy")
    replay = Replay(base, exact=daemon == "stock")
    init = []

    def interrupt(event):
        if event["type"] == "init":
            init.append(event["text"])
        if event["type"] == "stdout":
            threading.Thread(target=request, args=(base, "DELETE", f"/command?id={init[0]}")).start()
        return ended(event)

    capture = CAPTURES["int_fg"]
    answer = request(base, "POST", "/command", capture["request_body"], [("Content-Type", "application/json")],
                     final=interrupt)
    if found := replay.compare(capture, answer):
        replay.problems["int_fg"] = found
    judge(daemon, replay, ["int_fg"])


def test_going_away_does_not_stop_a_command(daemon, route, servers, shared):
    base = servers[daemon].wait(shared(daemon, "debian"), proxy=route == "proxy")
    body = json.dumps({"command": "echo s; sleep 1; echo done > /tmp/survived-$PPID"})
    seen = []
    request(base, "POST", "/command", body, [("Content-Type", "application/json")],
            final=lambda e: seen.append(e) or e["type"] == "stdout")
    status = request(base, "GET", f"/command/status/{seen[0]['text']}").json()
    assert status["running"] is True
    time.sleep(1.5)
    status = request(base, "GET", f"/command/status/{seen[0]['text']}").json()
    assert (status["running"], status["exit_code"]) == (False, 0)


@pytest.mark.stock
def test_stock_holds_the_stream_open(daemon, servers, shared):
    """A second of silence after the final event is what a client must not wait for."""
    base = servers[daemon].wait(shared(daemon, "debian"))
    begun = time.monotonic()
    request(base, "POST", "/command", '{"command":"true"}')
    assert time.monotonic() - begun >= 1.0


@pytest.mark.stock
def test_stock_may_ping_after_the_final_event(daemon, servers, shared):
    base = servers[daemon].wait(shared(daemon, "debian"))
    for _ in range(7):
        last = events(request(base, "POST", "/command", '{"command":"true"}').body)[-1]
        if last["type"] == "ping":
            return
    pytest.fail("no ping came after the final event of seven commands")


@pytest.mark.stock
def test_stock_children_ignore_sigint(daemon, servers, shared):
    base = servers[daemon].wait(shared(daemon, "debian"))
    answer = request(base, "POST", "/command", '{"command":"grep SigIgn /proc/self/status"}', final=ended)
    line = next(e["text"] for e in events(answer.body) if e["type"] == "stdout")
    assert int(line.split()[1], 16) & 2
