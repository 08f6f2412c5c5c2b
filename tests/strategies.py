"""Hypothesis strategies for what Resolvent takes in: symbols, labels, traces, trace sets."""

from hypothesis import strategies as st

from resolvent.traces import Trace, TraceSet

_finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)

alphabets = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.lists(_finite, min_size=1, max_size=5),
    st.lists(_text, min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=2),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5),
    st.lists(st.lists(_text, max_size=3).map(tuple), min_size=1, max_size=5),
)
"""Small alphabets of symbols, each of one type."""

propositions = st.sampled_from(["key", "door", "4", "None", "], [[", 'a"b', "é", "\x1f"])
labels = st.frozensets(propositions, max_size=3)
paper_labels = st.frozensets(propositions.filter(lambda name: name != "None"), max_size=1)


@st.composite
def trace_sets(draw, labels=labels, min_size=1):
    """Up to four traces of up to six steps over common alphabets."""
    observations = st.sampled_from(draw(alphabets))
    actions = st.sampled_from(draw(alphabets))
    rewards = st.sampled_from([0.0, -0.0, 1.0, 1.73, -1e300, 1 / 3])

    def column(values, length):
        return draw(st.lists(values, min_size=length, max_size=length))

    traces = []
    for _ in range(draw(st.integers(min_size, 4))):
        steps = draw(st.integers(1, 6))
        traces.append(
            Trace(
                column(observations, steps + 1),
                column(labels, steps + 1),
                column(actions, steps),
                column(rewards, steps),
                terminated=draw(st.booleans()),
                truncated=draw(st.booleans()),
            )
        )
    return TraceSet(traces)


@st.composite
def paper_trace_sets(draw):
    """Trace sets that the paper's format can hold: one proposition a label, all terminated."""
    traces = draw(trace_sets(labels=paper_labels))
    return TraceSet(
        Trace(trace.observations, trace.labels, trace.actions, trace.rewards, terminated=True)
        for trace in traces
    )
