"""Talk to the servers and to a sandbox's daemon with nothing but http.client, and judge what comes back.

The tests of abx use this to make and look at sandboxes without abx, so that
a fault in abx cannot hide behind itself.
"""

import http.client
import json
import time
import urllib.parse


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def header(self, name):
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


def request(base, method, path, body=None, headers=(), timeout=40, final=None):
    """One exchange on a connection of its own. path is put after base as it is.

    final, if given, is asked about each event of a stream and ends the
    reading when it says yes; without it the body is read to its end.
    """
    url = urllib.parse.urlsplit(base + path)
    conn = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
    try:
        conn.putrequest(method, url.path + ("?" + url.query if url.query else ""), skip_accept_encoding=True)
        if isinstance(body, str):
            body = body.encode()
        chunked = any(k.lower() == "transfer-encoding" for k, _ in headers)
        for name, value in headers:
            conn.putheader(name, value)
        if body is not None and not chunked:
            conn.putheader("Content-Length", str(len(body)))
        conn.endheaders()
        if body is not None:
            conn.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body)
        answer = conn.getresponse()
        if final is not None:
            return Answer(answer.status, answer.getheaders(), read_until(answer, final))
        try:
            data = answer.read()
        except http.client.IncompleteRead as e:     # a daemon that announces more than it sends
            data = e.partial
        return Answer(answer.status, answer.getheaders(), data)
    finally:
        conn.close()


def read_until(answer, final):
    data, looked = b"", 0
    while more := answer.read1(65536):
        data += more
        while (end := data.find(b"\n", looked)) >= 0:
            line, looked = data[looked:end], end + 1
            if line.strip() and final(json.loads(line)):
                return data[:looked]
    return data


def ended(event):
    return event.get("type") in ("error", "execution_complete")


def events(body):
    if isinstance(body, bytes):
        body = body.decode()
    return [json.loads(line) for line in body.split("\n\n") if line.strip().startswith("{")]


def multipart(parts):
    """parts: (name, filename or None, content type or None, bytes)."""
    out, mark = b"", b"e2e-boundary-8f1c"
    for name, filename, kind, data in parts:
        out += b"--" + mark + b"\r\nContent-Disposition: form-data; name=\"" + name.encode() + b'"'
        if filename is not None:
            out += b'; filename="' + filename.encode() + b'"'
        if kind:
            out += b"\r\nContent-Type: " + kind.encode()
        out += b"\r\n\r\n" + data + b"\r\n"
    return out + b"--" + mark + b"--\r\n", "multipart/form-data; boundary=" + mark.decode()


class Server:
    """The lifecycle plane of one opensandbox-server."""

    def __init__(self, url, key):
        self.url, self.key = url, key

    def call(self, method, path, body=None, timeout=60):
        headers = [("OPEN-SANDBOX-API-KEY", self.key)]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            body = json.dumps(body)
        return request(self.url, method, "/v1" + path, body, headers, timeout)

    def create(self, image, metadata, env=None, entrypoint=("tail", "-f", "/dev/null"), timeout=3600):
        made = self.call("POST", "/sandboxes", {
            "image": {"uri": image}, "entrypoint": list(entrypoint), "timeout": timeout, "resourceLimits": {},
            "env": env or {}, "metadata": metadata})
        assert made.status == 202, made
        return made.json()["id"]

    def get(self, sandbox):
        return self.call("GET", f"/sandboxes/{sandbox}")

    def kill(self, sandbox):
        return self.call("DELETE", f"/sandboxes/{sandbox}")

    def list(self, metadata):
        query = urllib.parse.quote(urllib.parse.urlencode(metadata), safe="")
        return self.call("GET", f"/sandboxes?pageSize=200&metadata={query}").json()["items"]

    def execd(self, sandbox, proxy=False, port=44772):
        found = self.call("GET", f"/sandboxes/{sandbox}/endpoints/{port}" + ("?use_server_proxy=true" if proxy else ""))
        assert found.status == 200, found
        return "http://" + found.json()["endpoint"]

    def wait(self, sandbox, proxy=False, headers=(), seconds=30):
        """The base URL of the daemon once it answers."""
        base, end = self.execd(sandbox, proxy), time.monotonic() + seconds
        while True:
            try:
                last = request(base, "GET", "/ping", headers=headers, timeout=10)
                if last.status == 200:
                    return base
            except (OSError, http.client.HTTPException) as e:
                last = e
            assert time.monotonic() < end, f"the daemon of {sandbox} at {base} does not answer: {last!r}"
            time.sleep(0.1)


def sh(base, line, timeout=40):
    """Run a shell line in the sandbox, past abx: (exit code or None, stdout, stderr)."""
    answer = request(base, "POST", "/command", json.dumps({"command": line}), [("Content-Type", "application/json")],
                     timeout, ended)
    assert answer.status == 200, answer
    text, code = {"stdout": "", "stderr": ""}, None
    for e in events(answer.body):
        if e["type"] in text:
            text[e["type"]] += e["text"] if e["text"] == "\n" else e["text"] + "\n"
        elif e["type"] == "execution_complete":
            code = 0
        elif e["type"] == "error":
            code = int(e["error"]["evalue"])
    return code, text["stdout"], text["stderr"]
