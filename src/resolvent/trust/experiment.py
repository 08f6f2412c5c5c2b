"""One thing to try in a world: labels to read, a question to ask then, and why it is worth it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from resolvent.machines.situations import Situation, by_name, situation_text
from resolvent.machines.ways import history_text
from resolvent.traces import Label, Symbol
from resolvent.traces.symbols import quoted_text, symbol_text
from resolvent.wording import amount

if TYPE_CHECKING:
    from resolvent.control.planning.carrying_out import Trial

History = tuple[Label, ...]

NOT_KNOWN: Final = "what follows is not known"
"""Why a step is worth trying that nobody has taken."""

_ACTIONS_SHOWN: Final = 12


@dataclass(frozen=True)
class Experiment:
    """Something to try in a world: labels to read, and a question to ask then.

    Evidence asks for what would show whether machines are right, a plan for the step that could
    make it better, two machines for what tells them apart. `policy` carries it out.

    Attributes:
        history: The labels to drive the world through, without those that change nothing.
        question: The observation and the action to ask about then; None to just go on there. Go
            on for a step or more: the label that a trace ends with is read by no machine.
        why: What it is for.
        machine: The machine that it is about, such as "reward"; None if it is about all.
        exact: Whether it has to be just these labels; otherwise any do that lead to the same
            states.
        start: The situation to begin in, if that is known: an observation and states.
        actions: What to do from there to get to the question, over steps that are known; None
            where that was not worked out. Where machines answer with chance, if the likeliest
            comes each time.
        situation: The situation in which to ask, if it is known.
        taken: Where machines answer with chance, how often the step was seen so far.

    >>> key = frozenset({"key"})
    >>> print(Experiment((key,), ("hall", "up"), "nothing tells states 0 and 1 apart"))
    read key; then in 'hall' do 'up' (nothing tells states 0 and 1 apart)
    """

    history: History
    question: tuple[Symbol, Symbol] | None
    why: str
    machine: str | None = None
    exact: bool = False
    start: Situation | None = None
    actions: tuple[Symbol, ...] | None = None
    situation: Situation | None = None
    taken: int | None = None

    @property
    def action(self) -> Symbol | None:
        """What to do in the end; None where it does not matter."""
        return None if self.question is None else self.question[1]

    def policy(self, env: Any, machines: Any, traces: Any, **options: Any) -> "Trial":
        """Return a policy that carries it out in an environment, for `collect` or a loop.

        Known steps lead to the labels and the question, where the traces show any; otherwise it
        tries what was never done, at random. After that it goes on at random.

        Args:
            env: The environment, as it is given to `collect`.
            machines: The machines, or the result of an inference.
            traces: What is known of the world; a scanned place will do.
            **options: `name_of` as in `collect`, and `seed` for what is done at random.

        >>> import resolvent as rs
        >>> house = rs.environments.House()
        >>> result = rs.infer(rs.collect(house, episodes=2, seed=0))
        >>> experiment = rs.plan(result, result.all_traces()).next_experiment
        >>> trial = experiment.policy(house, result, result.all_traces())
        >>> more = rs.collect(house, episodes=5, policy=trial, max_steps=50)
        >>> trial.done
        True
        >>> result = result.update(more)
        """
        from resolvent.control.planning.carrying_out import carry_out

        return carry_out(self, env, machines, traces, **options)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "history": [sorted(label) for label in self.history],
            "question": None if self.question is None else list(self.question),
            "why": self.why,
            "machine": self.machine,
            "exact": self.exact,
            "start": None if self.start is None else by_name(self.start),
            "actions": None if self.actions is None else list(self.actions),
            "situation": None if self.situation is None else by_name(self.situation),
            "action": self.action,
            **({} if self.taken is None else {"taken": self.taken}),
        }

    def __str__(self) -> str:
        if self.start is not None and self.situation is not None and self.action is not None:
            return (
                f"begin in {symbol_text(self.start[0])}{self._way()}; then in "
                f"{situation_text(self.situation)} do {symbol_text(self.action)}, "
                f"and go on: {self.why}"
            )
        read = f"read {history_text(self.history)}" if self.history else "read nothing"
        if self.question is None:
            return f"{read}; then go on ({self.why})"
        observation, action = self.question
        return f"{read}; then in {quoted_text(observation)} do {quoted_text(action)} ({self.why})"

    def _way(self) -> str:
        actions = self.actions or ()
        way = ", ".join(map(symbol_text, actions[:_ACTIONS_SHOWN]))
        if len(actions) > _ACTIONS_SHOWN:
            way += f", … ({len(actions)} actions)"
        if not way:
            return ""
        likely = "" if self.taken is None else " (if the likeliest comes each time)"
        return f", do {way}{likely}"


def seldom_taken(taken: int) -> str:
    """Say why a step is worth trying that was taken so often, on the way of a plan.

    >>> seldom_taken(0), seldom_taken(3)
    ('what follows is not known', 'it was seen 3 times, the fewest on this way')
    """
    return f"it was seen {amount(taken, 'time')}, the fewest on this way" if taken else NOT_KNOWN
