"""Experiments: labels to read in the environment, and a query to try then.

Input: two sets of machines, or labels and queries that others propose. Output: `Experiment`s.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from resolvent._util.records import to_builtins
from resolvent._util.text import amount
from resolvent.machines import UNSEEN, Machine, Machines
from resolvent.machines.augmented_state import AugmentedState, augmented_state_text, by_name
from resolvent.machines.compare import label_sequence_text
from resolvent.traces import Label, Symbol
from resolvent.traces.symbols import quoted_text, symbol_text

if TYPE_CHECKING:
    from resolvent.rl.experiment_policy import ExperimentPolicy

Pair = tuple[Symbol, Symbol]
"""An observation and an action."""

_States = tuple[int, ...]
_Node = TypeVar("_Node")

UNKNOWN_STEP_REASON: Final = "what follows is not known"
"""Reason to try a step that no trace has taken."""

_ACTIONS_SHOWN: Final = 12
"""Maximum number of actions that the text of an experiment lists."""


@dataclass(frozen=True)
class Experiment:
    """Something to try in an environment: labels to read, and a query then.

    Evidence proposes experiments that would show whether machines are right, a plan the step
    that could improve it, and two sets of machines the query that distinguishes them. `policy`
    executes an experiment.

    Attributes:
        history: The labels to read first, without those that change nothing.
        query: The observation and the action to try then; None to just go on. Go on for a
            step or more: no machine reads the last label of a trace.
        why: The reason for the experiment.
        machine: The machine that it is about, such as "reward"; None if it is about all.
        exact: Whether it has to be exactly these labels; otherwise any that lead to the same
            states will do.
        start: The augmented state to begin in, if known: an observation and states.
        actions: The actions that lead from there to the query over known steps; None if they
            were not computed. With stochastic outputs, if the most likely one occurs each time.
        augmented_state: That of the query, if known.
        taken: With stochastic outputs, the number of times the step has been observed.

    >>> key = frozenset({"key"})
    >>> print(Experiment((key,), ("hall", "up"), "nothing distinguishes states 0 and 1"))
    read key; then in 'hall' do 'up' (nothing distinguishes states 0 and 1)
    """

    history: tuple[Label, ...]
    query: Pair | None
    why: str
    machine: str | None = None
    exact: bool = False
    start: AugmentedState | None = None
    actions: tuple[Symbol, ...] | None = None
    augmented_state: AugmentedState | None = None
    taken: int | None = None

    @property
    def action(self) -> Symbol | None:
        """The action to try in the end; None if any will do."""
        return None if self.query is None else self.query[1]

    def policy(self, env: Any, machines: Any, traces: Any, **options: Any) -> "ExperimentPolicy":
        """Return a policy that executes the experiment, for `collect` or a loop.

        Known steps lead to the labels and the query, if the traces show any; otherwise it
        explores untried steps at random. After the experiment it acts at random.

        Args:
            env: The environment, as passed to `collect`.
            machines: The machines, or the result of an inference.
            traces: The traces recorded so far, or a scanned folder.
            **options: `observation_fn` as in `collect`, and `seed` for random actions.

        >>> import resolvent as rs
        >>> house = rs.worlds.House()
        >>> result = rs.infer(rs.collect(house, episodes=2, seed=0))
        >>> experiment = rs.plan(result, result.all_traces()).next_experiment
        >>> trial = experiment.policy(house, result, result.all_traces())
        >>> more = rs.collect(house, episodes=5, policy=trial, max_steps=50)
        >>> trial.done
        True
        >>> result = result.update(more)
        """
        from resolvent.rl.experiment_policy import experiment_policy

        return experiment_policy(self, env, machines, traces, **options)

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as JSON values."""
        states = {
            name: None if state is None else by_name(state)
            for name, state in (("start", self.start), ("augmented_state", self.augmented_state))
        }
        names = ("history", "query", "why", "machine", "exact", "start", "actions")
        more = ("augmented_state", "action", "taken")
        return to_builtins(self, (*names, *more), optional=["taken"]) | states

    def __str__(self) -> str:
        if self.start is not None and self.augmented_state is not None and self.action is not None:
            return (
                f"begin in {symbol_text(self.start[0])}{self._actions_text()}; then in "
                f"{augmented_state_text(self.augmented_state)} do {symbol_text(self.action)}, "
                f"and go on: {self.why}"
            )
        read = f"read {label_sequence_text(self.history)}" if self.history else "read nothing"
        if self.query is None:
            return f"{read}; then go on ({self.why})"
        observation, action = self.query
        return f"{read}; then in {quoted_text(observation)} do {quoted_text(action)} ({self.why})"

    def _actions_text(self) -> str:
        if not self.actions:
            return ""
        text = ", ".join(map(symbol_text, self.actions[:_ACTIONS_SHOWN]))
        if len(self.actions) > _ACTIONS_SHOWN:
            text += f", … ({len(self.actions)} actions)"
        likely = "" if self.taken is None else " (if the most likely outcomes occur)"
        return f", do {text}{likely}"


def rarely_taken_reason(count: int) -> str:
    """Return the reason to try a step of a plan that was observed `count` times.

    >>> rarely_taken_reason(0), rarely_taken_reason(3)
    ('what follows is not known', 'it was observed 3 times, the fewest on this path')
    """
    if count == 0:
        return UNKNOWN_STEP_REASON
    return f"it was observed {amount(count, 'time')}, the fewest on this path"


def labels_to(
    node: _Node, parents: Mapping[_Node, tuple[_Node, Label] | None]
) -> tuple[Label, ...]:
    """Return the labels on the path to a node of a search, given each node's parent and label."""
    labels: list[Label] = []
    while (step := parents[node]) is not None:
        node, label = step
        labels.append(label)
    return tuple(reversed(labels))


def distinguishing_sequence(first: Machines, second: Machines) -> Experiment | None:
    """Return the shortest labels, and a query then, with different outputs of two sets of machines.

    Only outputs observed in the state reached count. None means that no traces which both
    explain distinguish them.

    >>> import resolvent as rs
    >>> def one_trace(label):
    ...     return rs.Trace(["hall"] * 3, [None, label, None], ["look", "go"], [0, label == "key"])
    >>> first = rs.infer(rs.TraceSet([one_trace("key"), one_trace("bell")])).machines
    >>> swapped_columns = first.reward.transitions[:, ::-1].copy()
    >>> import dataclasses
    >>> swapped = first.replacing(dataclasses.replace(first.reward, transitions=swapped_columns))
    >>> print(distinguishing_sequence(first, first))
    None
    >>> distinguishing_sequence(first, swapped).query
    ('hall', 'go')
    """
    names = [name for name in first if name in second]
    labels = list(dict.fromkeys(label for name in names for label in first[name].labels))
    queries = [(name, *query) for name in names for query in _queries_of(first[name], second[name])]
    start = (0,) * len(names), (0,) * len(names)
    parents: dict[tuple[_States, _States], tuple[tuple[_States, _States], Label] | None]
    parents = {start: None}
    frontier = [start]
    for states in frontier:  # grows during the loop: breadth-first
        for name, observation, action in queries:
            ours, theirs = (
                _output(machines, dict(zip(names, own, strict=True)), name, observation, action)
                for machines, own in zip((first, second), states, strict=True)
            )
            if ours is not UNSEEN and theirs is not UNSEEN and ours != theirs:
                why = (
                    f"the {name} of one machine is {symbol_text(ours)} then, that of another "
                    f"{symbol_text(theirs)}"
                )
                path = labels_to(states, parents)
                return Experiment(path, (observation, action), why, name, exact=True)
        for label in labels:
            after = _next_states(first, names, states[0], label)
            theirs_after = _next_states(second, names, states[1], label)
            if after is None or theirs_after is None or (after, theirs_after) in parents:
                continue
            parents[after, theirs_after] = states, label
            frontier.append((after, theirs_after))
    return None


def _queries_of(*machines: Machine) -> Iterator[Pair]:
    """Yield the queries of some machines, each once, without states of the Transition Machine."""
    queries: dict[Pair, None] = {}
    for machine in machines:
        for entry in machine.entries():
            observation: Any = entry.observation
            queries[observation[0] if machine.supplemented else observation, entry.action] = None
    yield from queries


def _output(
    machines: Machines, states: Mapping[str, int], name: str, observation: Any, action: Symbol
) -> Any:
    machine = machines[name]
    if machine.supplemented:
        if "transition" not in states:
            return UNSEEN
        observation = observation, states["transition"]
    return machine.output(states[name], observation, action, generalized=False)


def _next_states(
    machines: Machines, names: list[str], states: _States, label: Label
) -> _States | None:
    targets = [machines[name].step(state, label) for name, state in zip(names, states, strict=True)]
    return None if UNSEEN in targets else tuple(targets)  # type: ignore[arg-type]
