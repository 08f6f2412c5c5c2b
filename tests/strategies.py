"""Hypothesis strategies for what Resolvent takes in: symbols, labels, traces, sample sets, tables.

Large structures are drawn as sizes and a seed: Hypothesis shrinks the sizes,
and drawing stays fast.
"""

from dataclasses import dataclass
from random import Random

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from noisy_worlds import disturbed, taught
from resolvent.inference.infer import infer
from resolvent.inference.options import InferenceOptions
from resolvent.machines import Machine, RewardMachine, TransitionMachine, machines_of
from resolvent.preprocess.samples import Histories, SampleSet
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace, TraceSet, Vocabulary

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


column_names = st.one_of(
    st.sampled_from(["cost", "fault", "a.b", "a/b", "columns", "events", "é"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3),
)


@st.composite
def trace_sets(draw, labels=labels, min_size=1, any_columns=False):
    """Up to four traces of up to six steps over common alphabets.

    They have rewards and no further columns, or else any columns.
    """
    has_rewards = draw(st.booleans()) if any_columns else True
    further = draw(st.dictionaries(column_names, alphabets, max_size=3)) if any_columns else {}
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
                column(rewards, steps) if has_rewards else None,
                terminated=draw(st.booleans()),
                truncated=draw(st.booleans()),
                columns={
                    name: column(st.sampled_from(values), steps) for name, values in further.items()
                },
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


def sample_set(traces, labels=None, alphas=None, outputs=None):
    """Make a `SampleSet` of traces given as lists of rows (beta, alpha, output)."""
    rows = [row for trace in traces for row in trace]
    beta, alpha, output = np.array(rows, np.int32).reshape(len(rows), 3).T
    alphas = max([-1, *alpha.tolist()]) + 1 if alphas is None else alphas
    labels = max([-1, *beta.tolist()]) + 1 if labels is None else labels
    outputs = max([-1, *output.tolist()]) + 1 if outputs is None else outputs
    return SampleSet(
        alpha=np.ascontiguousarray(alpha),
        output=np.ascontiguousarray(output),
        histories=Histories(
            beta=np.ascontiguousarray(beta),
            offsets=np.cumsum([0, *map(len, traces)], dtype=np.int64),
            labels=Vocabulary(frozenset({f"{code:05}"}) for code in range(labels)),
        ),
        alpha_keys=np.arange(alphas, dtype=np.int64),
        observations=Vocabulary(range(alphas)),
        actions=Vocabulary(["ask"]),
        outputs=Vocabulary(range(outputs)),
    )


def columns(samples):
    """The four arrays that the native core takes."""
    return samples.alpha, samples.output, samples.beta, samples.offsets


@dataclass(frozen=True)
class Target:
    """A complete machine to be found: `step[state][label]` and `answer[state][alpha]`."""

    step: tuple[tuple[int, ...], ...]
    answer: tuple[tuple[int, ...], ...]

    @property
    def labels(self):
        return range(len(self.step[0]))

    @property
    def alphas(self):
        return range(len(self.answer[0]))

    def run(self, word):
        state = 0
        for label in word:
            state = self.step[state][label]
        return state


@st.composite
def targets(draw, states=6, labels=4, alphas=5, outputs=4, min_outputs=1):
    """Complete machines, not always minimal, not always reachable: the caller looks."""
    n = draw(st.integers(1, states))
    k = draw(st.integers(1, labels))
    queries = draw(st.integers(1, alphas))
    values = draw(st.integers(min_outputs, outputs))
    random = Random(draw(st.integers(0, 2**32)))
    step = [[random.randrange(n) for _ in range(k)] for _ in range(n)]
    # A random path through all states, so that most draws are reachable.
    path = random.sample(range(1, n), n - 1)
    for source, target in zip([0, *path], path, strict=False):
        step[source][random.randrange(k)] = target
    answer = [[random.randrange(values) for _ in range(queries)] for _ in range(n)]
    return Target(tuple(map(tuple, step)), tuple(map(tuple, answer)))


@st.composite
def sample_sets(draw, labels=3, alphas=3, outputs=3, traces=6, length=12):
    """Rows of all kinds, contradictory or not: either half may be missing, traces may be empty."""
    k = draw(st.integers(1, labels))
    queries = draw(st.integers(1, alphas))
    values = draw(st.integers(1, outputs))
    lengths = draw(st.lists(st.integers(0, length), max_size=traces))
    random = Random(draw(st.integers(0, 2**32)))
    honest = draw(st.booleans())  # answers of some machine, or any answers
    target = draw(targets(states=4, labels=k, alphas=queries, outputs=values))
    made = []
    for rows in lengths:
        state, trace = 0, []
        for _ in range(rows):
            beta = random.choice([-1, *target.labels])
            alpha = random.choice([-1, *target.alphas])
            if beta >= 0:
                state = target.step[state][beta]
            output = target.answer[state][alpha] if honest else random.randrange(values)
            trace.append((beta, alpha, output if alpha >= 0 else random.choice([-1, 0])))
        made.append(trace)
    return sample_set(made, labels=k, alphas=queries, outputs=values)


@st.composite
def world_traces(draw, traces=6, length=14):
    """Traces of a random small Det-POMDP, which fit together under every timing and option.

    A label is a function of the observation, "no event" changes nothing, and all
    traces start with the same label. So whichever of l_0 … l_t a timing reads,
    together with o_t they fix the hidden state.
    """
    random = Random(draw(st.integers(0, 2**32)))
    cells, actions = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    tm_states, rm_states = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    names = [frozenset(), frozenset({"a"}), frozenset({"b"}), frozenset({"a", "b"})]
    label_of = [random.choice(names) for _ in range(cells)]

    def moves(states):
        table = {(s, label): random.randrange(states) for s in range(states) for label in names}
        return {**table, **{(s, frozenset()): s for s in range(states)}}

    tm, rm = moves(tm_states), moves(rm_states)
    often = draw(st.floats(0, 1))  # how often a hidden state matters

    def depends(states, values):
        common = random.choice(values)
        return [random.choice(values) if random.random() < often else common for _ in states]

    pairs = [(o, a) for o in range(cells) for a in range(actions)]
    next_cell = {pair: depends(range(tm_states), range(cells)) for pair in pairs}
    pays = {
        (*pair, q): depends(range(rm_states), [0.0, 1.0, -0.25])
        for pair in pairs
        for q in range(tm_states)
    }
    first_label = random.choice(label_of)
    starts = [cell for cell in range(cells) if label_of[cell] == first_label]
    made = []
    for steps in draw(st.lists(st.integers(1, length), min_size=1, max_size=traces)):
        o, q, u = random.choice(starts), 0, 0
        seen, done, paid = [o], [], []
        for _ in range(steps):
            a = random.randrange(actions)
            done.append(a)
            paid.append(pays[o, a, q][u])
            o = next_cell[o, a][q]
            q, u = tm[q, label_of[o]], rm[u, label_of[o]]
            seen.append(o)
        ended = random.random() < 0.5
        made.append(Trace(seen, [label_of[o] for o in seen], done, paid, ended, not ended))
    return TraceSet(made)


@st.composite
def noisy_machines(draw, **options):
    """Machines of a random world, rebuilt by what noisy traces of it show, and these traces."""
    traces = draw(world_traces())
    random = Random(draw(st.integers(0, 2**32)))
    machines = infer(traces, options=InferenceOptions(**options)).machines
    noisy = disturbed(traces, draw(st.floats(0, 0.6)), random)
    return taught(machines, noisy, constants=draw(st.booleans())), noisy


infer_options = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["edsm", "rpni", "likelihood"]),
        "timing": st.sampled_from(LabelTiming),
        "supplement": st.booleans(),
        "remove_redundant": st.booleans(),
        "remove_trivial": st.booleans(),
    }
)
"""Every choice that `infer` leaves to the caller, but for the engine."""


def assume_engine_has(options, engine):
    """Reject options with a strategy that an engine does not have."""
    assume(engine == "native" or options["strategy"] != "likelihood")


_NO_CODES, _NO_QUESTIONS = np.empty(0, np.int32), np.empty(0, np.int64)


def moving_machine(predicts, labels, table, **more):
    """A machine that only moves: nothing is known of what it answers."""
    kinds = {"observation": TransitionMachine, "reward": RewardMachine}
    return kinds.get(predicts, Machine)(
        labels=labels,
        observations=Vocabulary([]),
        actions=Vocabulary([]),
        outputs=Vocabulary([]),
        transitions=np.array(table, np.int32).reshape(len(table), len(labels)),
        trivial=(),
        output_state=_NO_CODES,
        output_query=_NO_QUESTIONS,
        output_value=_NO_CODES,
        constant_query=_NO_QUESTIONS,
        constant_value=_NO_CODES,
        predicts=predicts,
        **more,
    )


@st.composite
def moving_machines(draw, labels):
    """Any tables over some of the labels, for one to four outputs: moves may be missing."""
    known = Vocabulary(draw(st.lists(st.sampled_from(labels), min_size=1, unique=True)))
    outputs = ("observation", "reward", "terminated", "cost")
    wanted = draw(st.lists(st.sampled_from(outputs), min_size=1, unique=True))

    def table():
        states = draw(st.integers(1, 3))
        row = st.lists(st.integers(-1, states - 1), min_size=len(known), max_size=len(known))
        return draw(st.lists(row, min_size=states, max_size=states))

    def supplemented(predicts):
        return predicts != "observation" and "observation" in wanted and draw(st.booleans())

    return machines_of(
        [moving_machine(one, known, table(), supplemented=supplemented(one)) for one in wanted],
        draw(st.sampled_from(LabelTiming)),
    )


@st.composite
def traces_with_cost(draw):
    """Trace sets with a column more."""
    return TraceSet(
        Trace(
            trace.observations,
            trace.labels,
            trace.actions,
            trace.rewards,
            trace.terminated,
            trace.truncated,
            columns={"cost": [draw(st.integers(0, 2)) for _ in trace.actions]},
        )
        for trace in draw(trace_sets())
    )
