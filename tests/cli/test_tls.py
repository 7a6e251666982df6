"""TLS against real servers (nginx, OpenSSL) with real certificates: what is let
through, and in which words everything else is refused."""

import json
import os
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ABX = Path(os.environ.get("ABX_TEST_BINARY", ROOT / "abx"))
TLS = os.environ.get("ABX_TEST_TLS", "mbedtls") != "none"

needs_tls = pytest.mark.skipif(not TLS, reason="this build has no TLS")
EMPTY = '{"items": [], "pagination": {"page": 1, "pageSize": 100, "totalItems": 0, "totalPages": 0, "hasNextPage": false}}'


def run(url, ca=None, **env):
    """`abx sandbox list` of a server at url: (exit status, error document or None)."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SSL_CERT", "ABX_"))}
    clean.update(env, ABX_OPENSANDBOX_BASE_URL=url, ABX_OPENSANDBOX_API_KEY="k", ABX_HOME="/nonexistent/abx")
    if ca:
        clean["ABX_CA_FILE"] = str(ca)
    r = subprocess.run([ABX, "--json", "--provider", "opensandbox", "sandbox", "list"], cwd="/", env=clean,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert r.returncode >= 0, f"killed by signal {-r.returncode}: {r.stderr}"
    if r.returncode == 0:
        assert json.loads(r.stdout) == [], r.stdout
        return 0, None
    assert r.stdout == b"" and r.stderr.count(b"\n") == 1, (r.stdout, r.stderr)
    return r.returncode, json.loads(r.stderr)["error"]


def refused(url, ca=None, **env):
    code, error = run(url, ca, **env)
    assert code == 1 and error["code"] == "E5001", error
    return error["message"]


def accepted(url, ca=None, **env):
    code, error = run(url, ca, **env)
    assert code == 0, error


class Authority:
    """An openssl CA in a folder; `leaf` makes a key and a certificate from it."""

    def __init__(self, folder, subject="/O=abx tests/CN=test root"):
        self.dir = folder
        folder.mkdir()
        (folder / "index.txt").touch()
        (folder / "ca.cnf").write_text(
            "[ca]\ndefault_ca = x\n[x]\n"
            f"dir = {folder}\ndatabase = $dir/index.txt\nnew_certs_dir = $dir\nrand_serial = yes\n"
            "certificate = $dir/ca.pem\nprivate_key = $dir/ca.key\ndefault_md = sha256\npolicy = p\n"
            "unique_subject = no\ncopy_extensions = copy\n[p]\ncommonName = supplied\n")
        self.openssl("req", "-x509", *EC, "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "30", "-subj", subject)
        self.root = folder / "ca.pem"

    def openssl(self, *args):
        r = subprocess.run(["openssl", *args], cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert r.returncode == 0, r.stderr

    def leaf(self, name, san="DNS:localhost,IP:127.0.0.1", key=None, start=-1, end=20, md="sha256", usage=None):
        """start and end: days from now."""
        day = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + d * 86400)) for d in (start, end)]
        ext = ["-addext", f"subjectAltName={san}"] if san else []
        ext += ["-addext", f"extendedKeyUsage={usage}"] if usage else []
        self.openssl("req", *(key or EC), "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}",
                     *ext)
        self.openssl("ca", "-batch", "-config", "ca.cnf", "-startdate", day[0], "-enddate", day[1], "-md", md,
                     "-in", f"{name}.csr", "-out", f"{name}.pem", "-notext")
        return self.pair(name)

    def pair(self, name):
        return self.dir / f"{name}.pem", self.dir / f"{name}.key"


EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "ca")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def nginx(tmp_path_factory, authority):
    """One nginx, a server for each certificate; its URLs by name."""
    a = authority
    other = Authority(a.dir.parent / "other", "/O=abx tests/CN=somebody else")
    a.openssl("req", "-x509", *EC, "-nodes", "-keyout", "selfsigned.key", "-out", "selfsigned.pem", "-days", "9",
              "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
              "-addext", "basicConstraints=critical,CA:FALSE")
    chain = a.dir / "chain.pem"
    unknown = other.leaf("unknown")
    chain.write_text(unknown[0].read_text() + other.root.read_text())
    p384 = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"]
    servers = {
        "ecdsa": (a.leaf("ecdsa"), ""),
        "rsa": (a.leaf("rsa", key=["-newkey", "rsa:2048"]), ""),
        "p384": (a.leaf("p384", key=p384), ""),
        "only12": (a.pair("ecdsa"), "ssl_protocols TLSv1.2;"),
        "rsa12": (a.pair("rsa"), "ssl_protocols TLSv1.2;"),
        "only13": (a.pair("ecdsa"), "ssl_protocols TLSv1.3;"),
        "rsa13": (a.pair("rsa"), "ssl_protocols TLSv1.3;"),
        "wrong": (a.leaf("wrong", "DNS:other.example,DNS:*.more.example,IP:10.0.0.1"), ""),
        "nameonly": (a.leaf("nameonly", "DNS:localhost"), ""),
        "textip": (a.leaf("textip", "DNS:127.0.0.1"), ""),
        "many": (a.leaf("many", ",".join(f"DNS:n{i}.example" for i in range(40))), ""),
        "hostile": (a.leaf("hostile", r"DNS:x[31mred"), ""),
        "expired": (a.leaf("expired", start=-9, end=-2), ""),
        "future": (a.leaf("future", start=3, end=9), ""),
        "both": (a.leaf("both", "DNS:other.example", start=-9, end=-2), ""),
        "selfsigned": (a.pair("selfsigned"), ""),
        "unknown": (unknown, ""),
        "unknownchain": ((chain, unknown[1]), ""),
        "client": (a.leaf("client", usage="clientAuth"), ""),
        "wantscert": (a.pair("ecdsa"), f"ssl_verify_client on; ssl_client_certificate {a.root};"),
    }
    ports = {name: free_port() for name in servers}
    ports["plain"] = free_port()
    work = tmp_path_factory.mktemp("nginx")
    blocks = [f"server {{ listen 127.0.0.1:{ports[n]} ssl; ssl_certificate {pem}; ssl_certificate_key {key}; {more} "
              f"location / {{ default_type application/json; return 200 '{EMPTY}'; }} }}"
              for n, ((pem, key), more) in servers.items()]
    blocks.append(f"server {{ listen 127.0.0.1:{ports['plain']}; location / {{ return 200 '{EMPTY}'; }} }}")
    temp = " ".join(f"{k}_temp_path {work}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = work / "nginx.conf"
    conf.write_text(f"daemon off; master_process off; pid {work}/pid; error_log {work}/error.log;\n"
                    f"events {{ }}\nhttp {{ access_log off; {temp}\n" + "\n".join(blocks) + "\n}\n")
    process = subprocess.Popen(["nginx", "-e", f"{work}/error.log", "-c", conf], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", ports["plain"])) == 0:
                break
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    yield {name: f"https://localhost:{port}" for name, port in ports.items()}
    process.terminate()
    process.wait()


class Python:
    """Python's own TLS server for one connection after the other: what nginx
    will not be configured to do. `serve` gets each connection after the handshake."""

    def __init__(self, context, serve):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.context, self.serve = context, serve
        self.url = f"https://localhost:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            try:
                raw, _ = self.socket.accept()
            except OSError:
                return
            try:
                self.serve(self.context.wrap_socket(raw, server_side=True))
            except OSError:
                pass
            raw.close()


def context(pair, low=ssl.TLSVersion.TLSv1_2, high=ssl.TLSVersion.TLSv1_3, level=0):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.set_ciphers(f"DEFAULT@SECLEVEL={level}")
    c.minimum_version, c.maximum_version = low, high
    c.load_cert_chain(*pair)
    return c


def answer(connection, body=EMPTY, head=None):
    connection.recv(65536)
    head = head or f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall((head + body).encode())


@needs_tls
@pytest.mark.parametrize("name", ["ecdsa", "rsa", "p384", "only12", "rsa12", "only13", "rsa13"])
def test_good_servers(nginx, authority, name):
    accepted(nginx[name], authority.root)


@needs_tls
def test_an_address_needs_its_own_name(nginx, authority):
    accepted(nginx["ecdsa"].replace("localhost", "127.0.0.1"), authority.root)
    for name, names in ("nameonly", "localhost"), ("textip", "127.0.0.1"):
        text = refused(nginx[name].replace("localhost", "127.0.0.1"), authority.root)
        assert f"it is not for 127.0.0.1 (its names: {names})" in text


@needs_tls
def test_sni_is_sent_for_names_only(authority):
    seen = []
    c = context(authority.pair("ecdsa") if (authority.dir / "ecdsa.pem").exists() else authority.leaf("ecdsa"))
    c.sni_callback = lambda sock, name, ctx: seen.append(name)
    server = Python(c, answer)
    accepted(server.url, authority.root)
    accepted(server.url.replace("localhost", "127.0.0.1"), authority.root)
    assert seen == ["localhost", None]


@needs_tls
@pytest.mark.parametrize("name, words", [
    ("wrong", ["it is not for localhost (its names: other.example, *.more.example, 10.0.0.1)"]),
    ("many", ["it is not for localhost (its names: n0.example, n1.example", "n7.example and more)"]),
    ("expired", ["the server's certificate is refused: it expired on 20"]),
    ("future", ["the server's certificate is refused: it is not valid before 20"]),
    ("both", ["it is not for localhost (its names: other.example)", "; it expired on 20"]),
    ("selfsigned", ["the server's certificate is refused: it is self-signed"]),
    ("unknown", ["its issuer (O=abx tests, CN=somebody else) is not among the trusted roots of "]),
    ("unknownchain", ["its chain ends in a certificate that signed itself (O=abx tests, CN=somebody else) and is not "
                      "among the trusted roots of "]),
    ("client", ["it is not meant for a server"]),
    ("wantscert", []),
    ("plain", ["the server speaks plain http on this port, not https"]),
])
def test_bad_servers(nginx, authority, name, words):
    if name == "wantscert":             # nginx lets the handshake pass and answers 400
        code, error = run(nginx[name], authority.root)
        assert code and error["code"] != "E5001"
        return
    text = refused(nginx[name], authority.root)
    assert f"cannot connect to {nginx[name][8:]}: " in text
    for w in words:
        assert w in text, text


@needs_tls
def test_names_of_a_certificate_cannot_steer_the_terminal(nginx, authority):
    assert "its names: x[31mred" in refused(nginx["hostile"], authority.root)


@needs_tls
def test_dates_bring_a_word_about_the_clock(nginx, authority):
    for name in "expired", "future":
        _, error = run(nginx[name], authority.root)
        assert "clock of this machine" in error["suggestion"]


@needs_tls
def test_a_certificate_of_ones_own_can_be_a_root(nginx, authority):
    accepted(nginx["selfsigned"], authority.dir / "selfsigned.pem")


@needs_tls
def test_a_root_needs_no_signature_of_its_own(authority, tmp_path):
    """The embedded roots come without theirs (tools/mkroots), also where the
    server sends the whole root along; a chain from another root stays refused."""
    signed = ssl.PEM_cert_to_DER_cert(authority.root.read_text())
    tbs = signed[4:4 + 4 + int.from_bytes(signed[6:8], "big")]
    rest = signed[4 + len(tbs):]
    algorithm = rest[:2 + rest[1]]
    body = tbs + algorithm + b"\x03\x02\x00\x00"
    bare = tmp_path / "bare.der"
    bare.write_bytes(b"\x30\x82" + len(body).to_bytes(2, "big") + body)
    chain, key = authority.leaf("along")
    accepted(Python(context((chain, key)), answer).url, bare)
    both = tmp_path / "both.pem"
    both.write_text(chain.read_text() + authority.root.read_text())
    accepted(Python(context((both, key)), answer).url, bare)
    other = Authority(tmp_path / "other")
    assert "is not among the trusted roots" in refused(Python(context(other.leaf("else")), answer).url, bare)


@needs_tls
@pytest.mark.parametrize("name, words", [
    ("rsa1024", "it has a key that is too weak"), ("sha1", "it is signed with a hash that is too weak")])
def test_weak_certificates(authority, name, words):
    pair = authority.leaf(name, key=["-newkey", "rsa:1024"]) if name == "rsa1024" else authority.leaf(name, md="sha1")
    assert words in refused(Python(context(pair), answer).url, authority.root)


@needs_tls
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_protocols(authority, version):
    server = Python(context(authority.leaf(f"old{version}"), version, version), answer)
    assert "the server speaks neither TLS 1.2 nor 1.3" in refused(server.url, authority.root)


@needs_tls
def test_where_roots_come_from(nginx, authority, tmp_path):
    """ABX_CA_FILE, SSL_CERT_FILE, SSL_CERT_DIR, in this order; one that is set
    and cannot be used is an error."""
    url, root = nginx["ecdsa"], str(authority.root)
    (tmp_path / "one.pem").write_text(authority.root.read_text())
    missing = str(tmp_path / "missing.pem")
    accepted(url, SSL_CERT_FILE=root)
    accepted(url, SSL_CERT_DIR=str(tmp_path))
    accepted(url, ABX_CA_FILE=root, SSL_CERT_FILE=missing, SSL_CERT_DIR=missing)
    accepted(url, SSL_CERT_FILE=root, SSL_CERT_DIR=missing)
    for name in "ABX_CA_FILE", "SSL_CERT_FILE", "SSL_CERT_DIR":
        text = refused(url, **{name: missing})
        assert f"cannot use the root certificates of {name}" in text and missing in text
    (tmp_path / "junk.pem").write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    assert "there is no certificate in it" in refused(url, SSL_CERT_FILE=str(tmp_path / "junk.pem"))
    # without any of them, the system's or the embedded ones, which do not know ours
    assert "is not among the trusted roots of " in refused(url)


@needs_tls
def test_a_cut_without_close_notify_is_not_an_end(authority):
    """A body that lasts until the connection ends is whole only when TLS says so."""
    pair = authority.leaf("cut")

    def cut(connection):
        answer(connection, head="HTTP/1.1 200 OK\r\n\r\n")
        socket.socket(fileno=connection.detach()).close()

    def end(connection):
        answer(connection, head="HTTP/1.1 200 OK\r\n\r\n")
        connection.unwrap()

    code, error = run(Python(context(pair), cut).url, authority.root)
    assert code == 1 and "TLS had not been ended" in error["message"]
    accepted(Python(context(pair), end).url, authority.root)


class Proxy:
    """Passes bytes on both ways; cuts the connection after `limit` bytes of the server's."""

    def __init__(self, port):
        self.limit, self.passed, self.port = None, 0, port
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            client, _ = self.socket.accept()
            with client, socket.create_connection(("127.0.0.1", self.port)) as server:
                self.passed = 0
                up = threading.Thread(target=self.up, args=(client, server), daemon=True)
                up.start()
                self.down(server, client)
                for s in client, server:
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
                up.join()

    @staticmethod
    def up(source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def down(self, source, to):
        try:
            while data := source.recv(65536 if self.limit is None else max(0, self.limit - self.passed)):
                to.sendall(data)
                self.passed += len(data)
        except OSError:
            pass


@needs_tls
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name, step", [("only13", 1), ("only12", 7)])
def test_a_handshake_cut_anywhere(nginx, authority, name, step):
    proxy = Proxy(int(nginx[name].rsplit(":", 1)[1]))
    accepted(proxy.url, authority.root)
    whole = proxy.passed
    assert whole > 500
    for proxy.limit in range(0, whole - 200, step):         # the last bytes are a farewell
        code, error = run(proxy.url, authority.root)
        if code == 0:
            assert proxy.limit > 600, proxy.limit
            continue
        assert code == 1 and error["code"] in ("E5000", "E5001"), error
        assert "closed" in error["message"] or "cut" in error["message"] or "reset" in error["message"], error


@pytest.mark.skipif(TLS, reason="this build has TLS")
def test_without_tls():
    assert refused("https://localhost:1").endswith("this abx was built without TLS")
