"""Fixtures of the real-server tests: the rig, and one shared sandbox for each daemon and image."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rig as rigs  # noqa: E402
from daemon import Server, sh  # noqa: E402
from program import Abx, binary  # noqa: E402

HERE = Path(__file__).resolve().parent
ROUTES = ("direct", "proxy")
NIGHTLY = bool(os.environ.get("ABX_NIGHTLY"))       # the long forms of what CI runs short


def pytest_addoption(parser):
    parser.addoption("--daemon", action="append", choices=rigs.DAEMONS, help="only these daemons (default: both)")
    parser.addoption("--keep", action="store_true", help="leave the rig up afterwards")


def wanted(config):
    return config.getoption("--daemon") or list(rigs.DAEMONS)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    # Not the folder that all test programs of a user share and clean up after one another.
    if not config.option.basetemp:
        rigs.RUN.mkdir(exist_ok=True)
        config.option.basetemp = str(rigs.RUN / "tmp")
    config.addinivalue_line("markers", "stock: what only the stock daemon does")
    config.addinivalue_line("markers", "halved: compiled in on every combination, as the plugin on each route with one image")
    config.addinivalue_line("markers", "paired: too slow for every combination; each route with one image")


def pytest_generate_tests(metafunc):
    daemons = wanted(metafunc.config)
    if metafunc.definition.get_closest_marker("stock"):
        daemons = [d for d in daemons if d == "stock"]
    axes = [("through", ["compiled", "plugin"]), ("daemon", daemons), ("route", ROUTES), ("image", list(rigs.IMAGES))]
    if metafunc.definition.get_closest_marker("paired"):
        axes = [("daemon", daemons), ("route, image", list(zip(ROUTES, rigs.IMAGES)))]
    if metafunc.definition.get_closest_marker("halved"):
        every = [("compiled", d, r, i) for d in daemons for r in ROUTES for i in rigs.IMAGES]
        every += [("plugin", d, r, i) for d in daemons for r, i in zip(ROUTES, rigs.IMAGES)]
        axes = [("through, daemon, route, image", every)]
    for name, values in axes:
        if name.split(",")[0] in metafunc.fixturenames:
            metafunc.parametrize(name, values, scope="session")


def worker(config):
    """"gw0", "gw1", ... in the processes among which -n divides the files, else ""."""
    return getattr(config, "workerinput", {}).get("workerid", "")


def pytest_sessionstart(session):
    if worker(session.config) or session.config.option.collectonly:
        return
    names = wanted(session.config)
    only = ["--only", names[0]] if len(names) == 1 else []
    session.config.rig_was_up = rigs.load() is not None
    subprocess.run([HERE / "prepare"], check=True)
    subprocess.run([HERE / "up", "--quiet", *only], check=True)


def pytest_sessionfinish(session):
    if not hasattr(session.config, "rig_was_up"):
        return
    if session.config.getoption("--keep") or os.environ.get("ABX_E2E_KEEP") or session.config.rig_was_up:
        rigs.remove_sandboxes(rigs.load())
    else:
        subprocess.run([HERE / "down"], check=True)


@pytest.fixture(scope="session")
def rig():
    return rigs.load()


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A store with abx installed as a plugin of its own: what `provider export` writes."""
    folder = tmp_path_factory.mktemp("exported")
    env = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    for words in (["export", "opensandbox", folder / "plugin"], ["install", folder / "plugin", "--yes"]):
        subprocess.run([binary(), "provider", *words], env=env, check=True, capture_output=True)
    return folder / ".abx/providers"


@pytest.fixture(scope="session")
def servers(rig):
    return {name: Server(s["url"], s["key"]) for name, s in rig["servers"].items()}


@pytest.fixture(scope="session")
def mark(rig, request):
    """Metadata that every sandbox of this process carries: each server sees the other's, and those of other workers, so
    lists are filtered by it."""
    return {rigs.MARK: rig["run"], f"{rigs.MARK}-worker": worker(request.config) or "alone"}


@pytest.fixture(scope="session")
def shared(servers, mark):
    """shared(daemon, image): the id of a sandbox that is made once and changed by nobody in a way others see."""
    made = {}

    def get(daemon, image):
        if (daemon, image) not in made:
            made[daemon, image] = servers[daemon].create(rigs.IMAGES[image], dict(mark, shared=image), {"FOO": "bar"})
        return made[daemon, image]

    yield get
    for (daemon, _), sandbox in made.items():
        servers[daemon].kill(sandbox)


class Box:
    """A shared sandbox as one combination of daemon, route and image sees it."""

    def __init__(self, abx, sandbox, base, daemon, route, image, through=None):
        self.abx, self.id, self.base = abx, sandbox, base
        self.daemon, self.route, self.image, self.through = daemon, route, image, through

    def __repr__(self):
        return f"<{self.through} {self.daemon} {self.route} {self.image}>"

    def running(self, mark):
        """How many `sleep MARK` there are in the sandbox. Without a ps that is no answer, and a failure."""
        return int(self.sh(f"all=$(ps -ef) || exit 9; echo \"$all\" | grep -c '[s]leep {mark}' || true"))

    def sh(self, line):
        """What a shell line prints in the sandbox, asked past abx."""
        code, out, err = sh(self.base, line)
        assert code == 0, (line, code, out, err)
        return out


@pytest.fixture
def box(daemon, route, image, servers, shared, tmp_path):
    sandbox = shared(daemon, image)
    base = servers[daemon].wait(sandbox)
    abx = Abx(tmp_path / "home", servers[daemon], route)
    return Box(abx, sandbox, base, daemon, route, image)


@pytest.fixture
def boxes(request, servers, shared, exported, tmp_path, monkeypatch):
    """Every combination at once, compiled in and as the plugin, for tests that wait more than they work."""
    found = []
    for through in ("compiled", "plugin"):
        monkeypatch.setattr(Abx, "store", exported if through == "plugin" else None)
        for daemon in wanted(request.config):
            for image in rigs.IMAGES:
                base = servers[daemon].wait(shared(daemon, image))
                for route in ROUTES:
                    abx = Abx(tmp_path / "-".join((through, daemon, image, route)), servers[daemon], route)
                    found.append(Box(abx, shared(daemon, image), base, daemon, route, image, through))
    return found


@pytest.fixture
def own(servers, mark):
    """own(daemon, image, ...): a sandbox for one test alone."""
    made = []

    def make(daemon, image, **kw):
        sandbox = servers[daemon].create(rigs.IMAGES[image], dict(mark, **kw.pop("metadata", {})), **kw)
        servers[daemon].wait(sandbox)
        made.append((daemon, sandbox))
        return sandbox

    yield make
    for daemon, sandbox in made:
        servers[daemon].kill(sandbox)
