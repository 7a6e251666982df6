"""abx agent serve in hostile company: what would end it, hold it up, or make it say what is not so."""


import pytest

from agent import Agent, result


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
