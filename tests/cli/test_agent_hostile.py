"""abx agent serve in hostile company: what would end it, hold it up, or make it say what is not so."""

import time

import pytest

from agent import Agent, printed, result, texts, wait_for


@pytest.fixture
def one(tmp_path):
    a = Agent(tmp_path)
    yield a
    a.close()


@pytest.mark.parametrize("method, call", [("GET", "/files/info"), ("DELETE", "/command"), ("DELETE", "/files"),
                                          ("DELETE", "/directories"), ("GET", "/files/download")])
@pytest.mark.parametrize("pair", ["a", "a=b", "path=", "path=%61", "path=/"])
def test_queries_of_very_many_names(one, method, call, pair):
    if (method, pair) == ("DELETE", "path=/"):
        pair = "path=/nosuch"
    answer = one.request(method, call + "?" + "&".join([pair] * (250000 // (len(pair) + 1))))
    assert answer.status in (200, 400, 404, 500)
    assert one.request("GET", "/ping").status == 200


def test_a_search_for_a_program_in_very_many_folders(one):
    stream = one.command("", argv=["x" * 2000], envs={"PATH": "a:" * 200000})
    assert "not found" in result(stream)


def test_children_left_behind_may_go_on_writing(one, tmp_path):
    stream = one.command("(sleep 0.3; echo late; echo later >&2; seq 100000; echo done > survived) & echo now")
    assert printed(stream) == b"now\n" and result(stream) == "0"
    wait_for(lambda: (tmp_path / "survived").exists())
    before = one.descriptors()
    wait_for(lambda: one.descriptors() <= before - 2 or one.descriptors() < 10)


def test_lines_that_end_in_cr_alone(one):
    """Progress of a program: as fast as other lines."""
    began = time.monotonic()
    stream = one.command("yes '' | tr '\\n' '\\r' | head -c 500000", wait=60)
    assert len(texts(stream)) == 500000
    assert time.monotonic() - began < 10
