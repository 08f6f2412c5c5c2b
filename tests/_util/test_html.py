"""What notebooks show: small, safe whatever things are called, and in the notebook's colours."""

import io
from base64 import b64decode
from html.parser import HTMLParser

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import resolvent as rs
from resolvent._util import html as notebook
from resolvent.evaluation.diagnosis.findings import Diagnosis
from resolvent.rl.q_table import Curve
from resolvent.traces import Trace, TraceSet
from resolvent.traces.vocabulary import Vocabulary
from resolvent.worlds import House

ALLOWED = {"div", "p", "b", "table", "tr", "th", "td", "pre"}
STYLES = {"overflow-x:auto", "text-align:left", "white-space:pre-wrap"}

HOSTILE = [
    "</script><script>alert(1)</script>",
    "&lt;b&gt;",
    "abc\u202edcba",
    '"><img src=x onerror="alert(1)">',
    "</td></table><svg onload='alert(1)'>",
    "</pre><style>*{display:none}</style>",
    "<a href='javascript:alert(1)'>here</a>",
    "a\u0000b\u2028c",
    "&" * 5000,
    "x" * 5000,
]


class Page(HTMLParser):
    """Takes HTML apart: tags, attributes, texts, and whether all that opens is closed."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.open, self.texts, self.cells = set(), set(), [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.update(attrs)
        self.open.append(tag)
        if tag == "img":  # which has no end
            self.open.pop()
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open[-1] in ("td", "th"):
            self.cells[-1] += data


class Walk(gym.Env):
    """Shows one name after the other, whatever is done, and pays what no trace was paid."""

    def __init__(self, names):
        self.names = self.action_names = self.observation_names = (*names, "one")
        self.observation_space = self.action_space = gym.spaces.Discrete(len(names))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return 0, {"labels": []}

    def step(self, action):
        self.place += 1
        over = self.place == len(self.names) - 1
        return self.place, -7.0, over, False, {"labels": [self.names[self.place - 1]]}


def named_by(names):
    """One of everything a notebook shows, in a world whose names are these."""
    names = list(names)

    def trace(mark, end):
        labels = [None, *(f"{name}{mark}" for name in names)]
        columns = {"cost": names}
        return Trace([*names, end], labels, names, range(len(names)), True, columns=columns)

    traces = TraceSet([trace("", "one"), trace("!", "other")])
    result = rs.infer(traces)
    foreseeable = traces[:1]  # the same way, with other labels, would be no function of anything
    plan = rs.plan(rs.infer(foreseeable), foreseeable)
    runs = plan.run(Walk(names), episodes=2, on_unseen="random", max_steps=3)
    learned = rs.rl.QTable(
        np.ones((len(names), len(names))),
        tuple((("observation", name), (name, 1)) for name in names),
        Curve(np.ones(1), np.ones(1), np.ones(1, np.int64), np.ones(1)),
        0.95,
        action_names=tuple(names),
    )
    score = result.machines.score(TraceSet([trace("", names[0])]))
    assert score.first_mismatch is not None
    return {
        "traces": traces,
        "diagnosis": rs.diagnose(traces, outputs=["observation", "cost"]),
        "result": result,
        "evidence": rs.evidence(result.machines, traces),
        "plan": plan,
        "runs": runs,
        "score": score,
        "learned": learned,
    }


@pytest.fixture(scope="module")
def hostile():
    return named_by(HOSTILE)


@pytest.fixture(scope="module")
def house():
    world = House()
    traces = rs.collect(world, episodes=200, seed=0)
    result = rs.infer(traces)
    plan = rs.plan(result, traces)
    return {
        "traces": traces,
        "diagnosis": rs.diagnose(traces),
        "result": result,
        "evidence": result.evidence,
        "plan": plan,
        "runs": plan.run(world, episodes=12),
        "score": result.machines.score(traces),
        "learned": rs.q_learning(rs.AugmentObservation(world, result), episodes=30, seed=0),
    }


KINDS = ["traces", "diagnosis", "result", "evidence", "plan", "runs", "score", "learned"]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_stay_text(hostile, kind):
    html = hostile[kind]._repr_html_()
    page = Page(html)
    assert page.tags <= ALLOWED
    assert {name for name, _ in page.attributes} == {"style"}
    assert {value for _, value in page.attributes} <= STYLES
    assert len(html) < 20_000
    text = "".join(page.texts)
    assert not set(text) & set("\u202e\u0000\u2028")


@pytest.mark.parametrize("kind", ["traces", "plan", "learned"])
def test_names_are_shown_as_they_are(hostile, kind):
    cells = Page(hostile[kind]._repr_html_()).cells
    assert any(HOSTILE[0] in one for one in cells)
    assert any("&lt;b&gt;" in one for one in cells)
    assert any("abc\\u202edcba" in one for one in cells)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", ["house", "hostile"])
def test_a_repr_is_one_short_line(request, world, kind):
    text = repr(request.getfixturevalue(world)[kind])
    assert len(text) < 300
    assert text.isprintable()


def test_reprs_of_the_house(house):
    assert repr(house["plan"]) == (
        "Plan(value 0.7738, optimal, gamma 0.95; "
        "Model(9 augmented states, 5 actions, 0 of 45 steps unknown))"
    )
    assert repr(house["result"]) == (
        "InferenceResult(states: transition 2, reward 2; 200 traces, 5,510 steps)"
    )
    assert repr(house["runs"]) == "Runs(12 episodes, mean return 1, 0 contradictions)"
    assert repr(house["evidence"]).startswith(
        "Evidence(200 traces, 5,510 steps; states: transition 2, reward 2; 0 of 39 held-out "
    )
    assert repr(house["score"]) == (
        "Score(transition right 5510, wrong 0, unseen 0; reward right 5510, wrong 0, unseen 0)"
    )


def test_traces_show_their_first_steps(house):
    traces = house["traces"]
    page = Page(traces._repr_html_())
    assert page.cells[:6] == ["trace", "step", "observation", "label", "action", "reward"]
    first = traces[0]
    row = ["0", "4", first.observations[4], "key", first.actions[4], "0.0"]
    assert page.cells[6 * 5 : 6 * 6] == row
    assert page.cells[6 * 6 : 6 * 6 + 2] == ["1", "0"]  # after five steps of the first trace
    assert f"… and {traces.steps - 10:,} more" in page.texts


def test_pictures_are_shown_beside_their_names():
    """What is drawn is read back by another reader of PNG files."""
    dark, light = np.zeros((4, 5), int), np.full((4, 5), 7)
    light[1, 2] = 0
    seen = [{"image": image, "mark": "<b>"} for image in (dark, light)]
    page = Page(TraceSet([Trace(seen, [None] * 2, ["go"], [0])])._repr_html_())
    assert page.cells[6 + 2].startswith(" {image: image#")
    assert page.cells[6 + 2].endswith("(4×5), mark: '<b>'}")
    (picture,) = [value for name, value in page.attributes if name == "src"]
    kind, content = picture.split(",")
    assert kind == "data:image/png;base64"
    assert not read_png(content).any()
    assert {("width", "45"), ("height", "36"), ("alt", "")} <= page.attributes


def read_png(text):
    return np.array(Image.open(io.BytesIO(b64decode(text))))


def test_a_diagnosis_shows_each_finding_in_words():
    doors = TraceSet(Trace(["hall", end], [None, None], ["<go>"], [0]) for end in ("a", "b"))
    found = rs.diagnose(doors)
    page = Page(found._repr_html_())
    assert page.texts[0] == "2 traces, 2 steps"
    assert " ".join(page.texts[1].split()) == str(found.findings[0])
    assert "(hall, <go>)" in page.texts[1]
    assert len(page.texts) == 1 + len(found.findings)
    assert repr(found).startswith("Diagnosis(2 traces, 2 steps; random-start, contradictions, ")


def test_a_diagnosis_without_findings_says_so():
    shown = Page(Diagnosis(3, 12, ())._repr_html_())
    assert shown.texts == ["3 traces, 12 steps", "no findings"]
    assert repr(Diagnosis(3, 12, ())) == "Diagnosis(3 traces, 12 steps; no findings)"


def test_one_trace_has_all_rows_to_itself(house):
    trace = house["traces"][0]
    page = Page(TraceSet([trace])._repr_html_())
    assert page.cells[6 * 10 : 6 * 10 + 2] == ["0", "9"]
    assert f"… and {len(trace) - 10:,} more" in page.texts
    assert "0 traces, 0 steps" in Page(TraceSet()._repr_html_()).texts


def test_a_plan_shows_what_to_do(house):
    page = Page(house["plan"]._repr_html_())
    at = page.cells.index("observation")
    assert page.cells[at : at + 12] == [
        "observation",
        "transition_state",
        "reward_state",
        "action",
        "at least",
        "at most",
        "corridor",
        "0",
        "0",
        "left",
        "0.7738",
        "0.7738",
    ]


def test_runs_show_where_the_world_contradicts(house, hostile):
    kept = Page(house["runs"]._repr_html_())
    assert kept.cells[6:12] == ["0", "1", "0.7738", "6", "yes", ""]
    assert "… and 2 more" in kept.texts
    outliers = hostile["runs"]
    assert outliers.contradicts
    assert "the environment contradicts the plan" in outliers._repr_html_()
    row = Page(outliers._repr_html_()).cells[6:12]
    assert row[:2] == ["0", "-21"]
    assert row[-1] == f"{outliers.contradicts[0].least:.4g}"


def test_scores_are_counted_by_machine(house, hostile):
    assert "every step is predicted, and right" in house["score"]._repr_html_()
    page = Page(hostile["score"]._repr_html_())
    assert page.texts[0] == "steps predicted"
    assert any(text.startswith("first mismatch: transition machine") for text in page.texts)


def test_long_vocabularies_are_cut():
    assert repr(Vocabulary(range(10))) == f"Vocabulary({list(range(10))})"
    assert (
        repr(Vocabulary(range(11))) == "Vocabulary([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...], 11 values)"
    )
    image = Vocabulary([tuple(range(number, 10_000)) for number in range(50)])
    assert len(repr(image)) < 500
    assert len(repr(Vocabulary(["x" * 5000]))) < 100


def test_many_lines_are_cut():
    page = Page(notebook.lines("\n".join(map(str, range(100)))))
    assert page.texts[0].splitlines() == [*map(str, range(30)), "…"]
