"""The state of active learning: recorded steps, machines and the selection of tests.

One loop owns a `LearnerState` and changes it; all else is a function of it.
"""

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

import numpy as np

from resolvent.errors import ModelError
from resolvent.exploration.buffer import Buffer, Episode
from resolvent.exploration.empirical_model import UNKNOWN, Checked, Context, EmpiricalModel, Step
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.values import ValueBounds, value_bounds
from resolvent.inference.conflict import Conflict
from resolvent.preprocess.labeling import LabelingFunction

if TYPE_CHECKING:
    from resolvent.exploration.alternatives import AlternativeHypotheses, WMethodTests
    from resolvent.exploration.reward_search import CandidateGroups
    from resolvent.exploration.shortening import Shortening
    from resolvent.exploration.words import QueryLog

MAX_WORD_LENGTH: Final = 6  # maximum number of labels in a row that are tested
MAX_USELESS_RESETS: Final = 200  # useless resets in a row after which no other start is expected


@dataclass(frozen=True)
class LearnerConfig:
    """The user's options; `max_states` is None without a maximum number of states."""

    gamma: float
    seed: int
    reward_range: tuple[float, float] | None
    target: float
    max_states: int | None


@dataclass
class LabelState:
    """The source of labels, and when other labels are tried.

    `automatic` says that labels may change, and `undecided` that the first step decides whether
    the environment has labels. The next search for labels is after `search_at` steps;
    `states_at_discovery` is the number of states of the machines at the last discovery, and
    `shortened_to` the number of steps of the shortest rewarded episodes when their steps were
    tried as events. `changed` is set until a checkpoint notes the change.
    """

    labeling: LabelingFunction
    automatic: bool
    undecided: bool
    search_at: int
    states_at_discovery: int = 0
    shortened_to: int = 0
    changed: bool = False

    @property
    def are_made(self) -> bool:
        """Whether the learner makes labels, since the environment has none."""
        return self.automatic and not self.labeling.is_given


@dataclass
class EpisodeState:
    """One of several episodes side by side, and the path that it follows.

    `index` is the number of its environment. `context` is the last label with the states before
    it, and `previous_context` the one before. `action` is selected, but not taken yet.
    """

    index: int = 0
    recorded: Episode = field(default_factory=Episode)
    row: int = UNKNOWN
    path: list[Step] = field(default_factory=list)
    purpose: str = ""
    start: int = UNKNOWN
    context: Context = ()
    previous_context: Context = ()
    action: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the episode has begun and is not over."""
        return len(self.recorded.observations) > 0

    @property
    def length(self) -> int:
        """Number of steps so far."""
        return len(self.recorded)


@dataclass
class Validation:
    """How often the plan of the present machines was executed, and known queries repeated.

    `starts` are the augmented states from which it was executed, and `steps` the number of its
    steps. `repeated_steps` is the number of steps that repeated a query, with any machines.
    """

    starts: set[tuple[int, ...]] = field(default_factory=set)
    steps: int = 0
    repeated_steps: int = 0


@dataclass
class SelectionState:
    """What the sources of tests know since the model was last computed from all steps.

    `exhausted` says that no test was open at last, and `verified` that machines inferred from
    scratch were the same, both with no news since. `start_rate` has the number of known steps when
    bounds were computed, the same when the use of another episode was, and that use per step.
    """

    exhausted: bool = False
    verified: bool = False
    familiar_resets: int = 0  # number of resets since the last new start
    useless_resets: int = 0  # number of resets in a row to starts from which no test is open
    start_rate: tuple[int, int, float] = (-1, -1, 0.0)
    given_up: set[tuple[Checked, int]] = field(default_factory=set)  # needs no more checks
    queries: "QueryLog | None" = None
    candidates: "CandidateGroups | None" = None
    shortening: "Shortening | None" = None
    alternatives: "AlternativeHypotheses | None" = None
    w_method: "WMethodTests | None" = None

    @property
    def are_resets_useless(self) -> bool:
        """Whether tests that start elsewhere count as out of reach."""
        return self.useless_resets > MAX_USELESS_RESETS


@dataclass(eq=False)
class LearnerState:
    """The knowledge of a world, changed by `learner` and by the selection of tests.

    `conflict` are two steps that no machines explain under any labels: the world is random.
    `bounds_at` is the number of known steps when `values` were computed; -1 if the model is newer.
    """

    config: LearnerConfig
    labels: LabelState
    buffer: Buffer
    hypothesis: Hypothesis
    model: EmpiricalModel | None = None
    conflict: Conflict | None = None
    values: ValueBounds = field(default_factory=ValueBounds)
    bounds_at: int = -1
    validation: Validation = field(default_factory=Validation)
    selection: SelectionState = field(default_factory=SelectionState)
    episodes: list[EpisodeState] = field(default_factory=list)
    truncated_episodes: int = 0

    @property
    def steps(self) -> int:
        """Number of steps taken so far."""
        return self.buffer.steps

    @property
    def sizes(self) -> dict[str, int]:
        """Number of states of each machine."""
        tables = self.hypothesis.tables
        return {} if tables is None else dict(zip(tables.names, tables.sizes, strict=True))

    @property
    def depth(self) -> int:
        """Number of labels in a row that are tested: above two if there may be more states."""
        max_states = self.config.max_states or 0
        largest = max(self.sizes.values(), default=max_states)
        return min(max(max_states - largest + 1, 2), MAX_WORD_LENGTH)

    @property
    def all_rewards_equal(self) -> bool:
        """Whether rewards distinguish no policies."""
        return self.model is None or self.model.all_rewards_equal

    def present_model(self) -> EmpiricalModel:
        """Return the model, which has to exist before a test is chosen."""
        if self.model is None:
            raise ModelError("there are no steps yet: take at least one")
        return self.model

    def current_bounds(self) -> ValueBounds:
        """Return the value bounds by all steps so far, which does not change the state."""
        if self.model is None or self.bounds_at == self.model.n_known:
            return self.values
        return value_bounds(self.model, self.config)

    def refresh_bounds(self, *, fully: bool = True) -> None:
        """Compute the value bounds again after news; if not `fully`, only after much news."""
        if self.model is None:
            return
        n_known, before = self.model.n_known, self.bounds_at
        if fully or before < 0 or n_known - before >= max(4, n_known // 20):
            self.values, self.bounds_at = self.current_bounds(), n_known

    def gap(self, values: ValueBounds) -> float:
        """Return the largest possible improvement over the plan by value bounds."""
        if self.model is None or self.model.all_rewards_equal:
            return inf
        return values.largest_gap(self.model)

    def adopt_machines(self) -> None:
        """Compute the model of new machines, whose plan was never executed."""
        self.validation.starts.clear()
        self.validation.steps = 0
        self.rebuild()

    def rebuild(self) -> None:
        """Compute the model again from the hypothesis and all steps, and reset the paths."""
        tables = self.hypothesis.tables = self.hypothesis.present_tables()
        if tables is None:
            return
        self.model, self.bounds_at = EmpiricalModel.of_steps(tables, self.buffer), -1
        self.selection = SelectionState()
        for episode in self.episodes:
            episode.path = []
            if episode.is_open:
                located = self.model.locate(episode.recorded)
                episode.row, episode.context, episode.previous_context = located
                episode.start = UNKNOWN if episode.length else episode.row

    def random_action(self, episode: EpisodeState) -> int:
        """Return an action drawn by the seed, the number of steps and the environment."""
        rng = np.random.default_rng((self.config.seed, self.steps, episode.index))
        return int(rng.integers(len(self.buffer.actions)))
