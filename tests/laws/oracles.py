"""Independent readings of decisions and paper, in plain Python, for the laws to compare with.

Nothing here calls the code under test but for the two queries one can put to
a machine: `step` and `output`.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from resolvent.machines import UNSEEN, Machine, MachinePair
from resolvent.preprocess.timing import LabelTiming
from resolvent.traces import Trace
from strategies import Target

NO_EVENT: frozenset[str] = frozenset()
Row = tuple[int, int, int]  # beta, alpha, output; -1 for an absent half


def labels_before(trace: Trace, t: int, timing: LabelTiming) -> tuple[frozenset[str], ...]:
    """The labels read before (o_t, a_t): the table of docs/decisions/preprocess.md."""
    if timing is LabelTiming.CURRENT:
        return trace.labels[1 : t + 1]
    if timing is LabelTiming.CURRENT_WITH_INITIAL:
        return trace.labels[0 : t + 1]
    assert timing is LabelTiming.LAGGED
    return trace.labels[0:t]


def state_at(machine: Machine, trace: Trace, t: int, timing: LabelTiming) -> Any:
    """The state in which (o_t, a_t) is answered, stepped to from the initial one."""
    state: Any = 0
    for label in labels_before(trace, t, timing):
        state = machine.step(state, label)
    return state


def asked_in(pair: MachinePair, traces: Sequence[Trace]) -> Iterator[tuple[Any, ...]]:
    """Kind, state, observation as the machine sees it, action and answer, step by step."""
    for trace in traces:
        for t, action in enumerate(trace.actions):
            q, u = (state_at(m, trace, t, pair.timing) for m in (pair.transition, pair.reward))
            seen: Any = trace.observations[t]
            yield "transition", q, seen, action, trace.observations[t + 1]
            if pair.reward.supplemented:
                seen = (seen, "not known" if q is UNSEEN else q)
            yield "reward", u, seen, action, trace.rewards[t]


def wrong_answers(pair: MachinePair, traces: Sequence[Trace], digits: int | None = None) -> list:
    """All steps whose next observation or reward the machines do not answer as the trace does."""
    wrong = []
    for number, trace in enumerate(traces):
        for t, action in enumerate(trace.actions):
            seen, reward = trace.observations[t], trace.rewards[t]
            q = state_at(pair.transition, trace, t, pair.timing)
            u = state_at(pair.reward, trace, t, pair.timing)
            next_seen = pair.transition.output(q, seen, action)
            asked = (seen, q) if pair.reward.supplemented else seen
            paid = pair.reward.output(u, asked, action)
            expected = reward if digits is None else round(reward, digits)
            if q is UNSEEN or u is UNSEEN or next_seen != trace.observations[t + 1]:
                wrong.append((number, t, "transition", next_seen))
            elif paid is UNSEEN or paid != expected:
                wrong.append((number, t, "reward", paid))
    return wrong


def contradictory(
    traces: Sequence[Trace], timing: LabelTiming, trivial: frozenset[frozenset[str]]
) -> bool:
    """Whether one label history answers one (observation, action) in two ways."""
    told: dict[Any, Any] = {}
    for trace in traces:
        for t, action in enumerate(trace.actions):
            history = tuple(x for x in labels_before(trace, t, timing) if x not in trivial)
            answer = (trace.observations[t + 1], trace.rewards[t])
            if told.setdefault((history, trace.observations[t], action), answer) != answer:
                return True
    return False


# ---- targets ---------------------------------------------------------------


def reachable(target: Target) -> set[int]:
    reached, ahead = {0}, [0]
    while ahead:
        for state in target.step[ahead.pop()]:
            if state not in reached:
                reached.add(state)
                ahead.append(state)
    return reached


def told_apart(target: Target, q: int, p: int) -> bool:
    """Whether some label word leads q and p to different answers: a walk over pairs."""
    met, ahead = {(q, p)}, [(q, p)]
    while ahead:
        q, p = ahead.pop()
        if target.answer[q] != target.answer[p]:
            return True
        for label in target.labels:
            pair = (target.step[q][label], target.step[p][label])
            if pair not in met:
                met.add(pair)
                ahead.append(pair)
    return False


def pairs(states: int) -> Iterator[tuple[int, int]]:
    return ((q, p) for q in range(states) for p in range(q))


def is_minimal_target(target: Target) -> bool:
    states = len(target.step)
    return len(reachable(target)) == states and all(told_apart(target, *x) for x in pairs(states))


def differ_at_once(target: Target) -> bool:
    """Whether any two states answer some alpha differently, without reading a label first."""
    return len(set(target.answer)) == len(target.answer)


# ---- samples ---------------------------------------------------------------


def answers_by_history(traces: Sequence[Sequence[Row]]) -> dict[tuple[int, ...], dict[int, int]]:
    """The prefix tree as a plain dict: for every label history met, its answers."""
    told: dict[tuple[int, ...], dict[int, int]] = {(): {}}
    for trace in traces:
        history: tuple[int, ...] = ()
        for beta, alpha, output in trace:
            if beta >= 0:
                history = (*history, beta)
                told.setdefault(history, {})
            if alpha >= 0:
                assert told[history].setdefault(alpha, output) == output
    return told


def is_structure_complete(target: Target, traces: Sequence[Sequence[Row]]) -> bool:
    """The paper's three conditions, conflicts taken strictly: both histories answered the alpha."""
    told = answers_by_history(traces)
    state = {history: target.run(history) for history in told}
    covered = set(state.values()) == set(range(len(target.step)))
    edges = {(state[history[:-1]], history[-1]) for history in told if history}
    every = set(product(range(len(target.step)), target.labels))
    return (
        covered
        and edges == every
        and all(
            any(told[u].get(alpha, output) != output for alpha, output in told[v].items())
            for u in told
            for v in told
            if state[u] != state[v]
        )
    )


def bijection(
    target: Target,
    machine: Machine,
    label: Any,
    query: Any,
    output: Any,
    known: set[tuple[int, int]] | None = None,
) -> Any:
    """Walk target and machine together; return the partner of each state, or say what differs.

    The machine must answer each (state, alpha) in `known`, all if that is None, and no other.
    """
    partner = {0: 0}
    ahead = [0]
    for state in ahead:
        for code in target.labels:
            theirs, mine = target.step[state][code], machine.step(partner[state], label(code))
            if partner.setdefault(theirs, mine) != mine:
                return f"state {state}, label {code}: {theirs} is {partner[theirs]}, not {mine}"
            if theirs not in ahead:
                ahead.append(theirs)
        for alpha in target.alphas:
            told = machine.output(partner[state], *query(alpha))
            expected = output(target.answer[state][alpha])
            if known is not None and (state, alpha) not in known:
                expected = UNSEEN
            if (told is UNSEEN) != (expected is UNSEEN) or told != expected:
                return f"state {state}, alpha {alpha}: {told}"
    if sorted(partner.values()) != list(range(machine.states)):
        return f"{machine.states} states for {len(partner)}: {partner}"
    return partner


def smallest_machine(traces: Sequence[Sequence[Row]], labels: int, at_most: int) -> int | None:
    """The fewest states of any machine that explains the samples, by trying all machines."""
    told = sorted(answers_by_history(traces).items(), key=lambda item: len(item[0]))
    for states in range(1, at_most + 1):
        for flat in product(range(states), repeat=states * labels):
            if _explains(flat, labels, told):
                return states
    return None


def _explains(flat: tuple[int, ...], labels: int, told: Any) -> bool:
    answer: dict[tuple[int, int], int] = {}
    state = {(): 0}
    for history, answers in told:
        if history:
            state[history] = flat[state[history[:-1]] * labels + history[-1]]
        for alpha, output in answers.items():
            if answer.setdefault((state[history], alpha), output) != output:
                return False
    return True
