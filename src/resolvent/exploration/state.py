"""The state of active learning: recorded steps, machines and counters.

One loop owns a `LearnerState` and changes it; all else is a function of it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from resolvent.errors import ModelError
from resolvent.exploration.buffer import Buffer, Columns, Episode
from resolvent.exploration.empirical_model import UNKNOWN, Context, EmpiricalModel
from resolvent.exploration.hypothesis import Hypothesis
from resolvent.exploration.search import Step
from resolvent.exploration.values import ValueBounds, largest_gap
from resolvent.preprocess.labeling import LabelingFunction
from resolvent.traces import TraceSet

if TYPE_CHECKING:
    from resolvent.exploration.alternatives import AlternativeHypotheses
    from resolvent.exploration.w_method import WMethodTests
    from resolvent.exploration.words import QueryLog

MAX_WORD_LENGTH: Final = 6
"""Maximum number of labels in a row that are tested."""

MAX_USELESS_RESETS: Final = 200
"""Number of resets in a row to useless starts after which no other start is expected."""


@dataclass(frozen=True)
class LearnerConfig:
    """The user's options.

    `max_states` is the maximum number of states of a machine, if the user gives one; `target` is
    the largest acceptable distance of the plan from the optimum.
    """

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
    `states_at_discovery` is the number of states of the machines at the last discovery. `changed`
    is set until a checkpoint notes the change.
    """

    labelling: LabelingFunction
    automatic: bool
    undecided: bool
    search_at: int
    states_at_discovery: int = 0
    changed: bool = False


@dataclass
class EpisodeState:
    """The present situation of one of several episodes side by side, and the path it follows.

    `index` is the number of its environment. `context` is the last label with the states before
    it, and `previous_context` the one before.
    """

    index: int = 0
    episode: Episode = field(default_factory=Episode)
    row: int = UNKNOWN
    path: list[Step] = field(default_factory=list)
    purpose: str = ""
    active: bool = False
    start: int = UNKNOWN
    context: Context = ()
    previous_context: Context = ()


@dataclass(eq=False)
class LearnerState:
    """The knowledge of a world, changed by `learner` and by the selection of tests."""

    config: LearnerConfig
    labels: LabelState
    buffer: Buffer
    hypothesis: Hypothesis
    values: ValueBounds
    model: EmpiricalModel | None = None
    episodes: list[EpisodeState] = field(default_factory=list)
    truncated_episodes: int = 0

    exhausted: bool = False
    """Whether the last selection found no open test, and nothing was new since."""
    verified: bool = False
    """Whether machines inferred from scratch were the same, and nothing was new since."""
    validated: set[tuple[int, ...]] = field(default_factory=set)
    """The augmented states at the start of episodes from which the plan was executed."""
    validation_steps: int = 0
    repeated_steps: int = 0
    """Number of steps that repeated a known query."""
    familiar_resets: int = 0
    """Number of resets since the last new start."""
    useless_resets: int = 0
    """Number of resets in a row to starts from which no test is open."""
    bounds_at: int = -1
    """Number of known steps when the value bounds were computed; -1 if they were not."""
    start_rate: tuple[int, int, float] = (-1, -1, 0.0)
    """`bounds_at` and the number of known steps when the use of another episode was computed,
    and that use per step."""
    given_up: set[tuple[Context, int]] = field(default_factory=set)
    given_up_pairs: set[tuple[Context, int, int]] = field(default_factory=set)
    queries: "QueryLog | None" = None
    alternatives: "AlternativeHypotheses | None" = None
    w_method: "WMethodTests | None" = None

    @property
    def steps(self) -> int:
        """Number of steps taken so far."""
        return self.buffer.steps + sum(len(state.episode) for state in self.episodes)

    @property
    def depth(self) -> int:
        """Number of labels in a row that are tested: above two if there may be more states."""
        tables, most = self.hypothesis.tables, self.config.max_states
        if most is None or tables is None:
            return 2
        return min(max(most - max(tables.sizes) + 1, 2), MAX_WORD_LENGTH)

    @property
    def all_rewards_equal(self) -> bool:
        """Whether rewards distinguish no policies."""
        return self.model is None or self.model.all_rewards_equal

    @property
    def open_episodes(self) -> list[Episode]:
        """The open episodes, by environment."""
        return [state.episode for state in self.episodes]

    @property
    def are_resets_useless(self) -> bool:
        """Whether tests that start elsewhere count as out of reach."""
        return self.useless_resets > MAX_USELESS_RESETS

    def present_model(self) -> EmpiricalModel:
        """Return the model, which has to exist before a test is chosen."""
        if self.model is None:
            raise ModelError("nothing was seen yet: take at least one step")
        return self.model

    def columns(self) -> Columns:
        """Return all steps as arrays, those of open episodes last."""
        return self.buffer.columns(0, self.open_episodes)

    def traces(self) -> TraceSet:
        """Return all steps as traces; open episodes count as truncated."""
        return self.buffer.traces(0, self.open_episodes)

    def gap(self) -> float:
        """Return the largest possible improvement over the plan by the present value bounds."""
        if self.model is None or self.model.all_rewards_equal:
            return float("inf")
        return largest_gap(self.model, self.values)

    def refresh_bounds(self, *, fully: bool = True) -> None:
        """Compute the value bounds again after news; if not `fully`, only after much news."""
        if self.model is None:
            return
        n_known, before = self.model.n_known, self.bounds_at
        if (fully and n_known != before) or before < 0 or n_known - before >= max(4, n_known // 20):
            self.values.update(self.model, self.config.reward_range, self.config.target)
            self.bounds_at = n_known

    def has_news(self) -> None:
        """Note news that may open new tests."""
        self.exhausted = self.verified = False

    def forget_validation(self) -> None:
        """Note that the plan of these machines was never executed."""
        self.validated.clear()
        self.validation_steps = 0

    def rebuild(self) -> None:
        """Compute the model again from the hypothesis and all steps, and reset the paths."""
        tables = self.hypothesis.tables
        if tables is None:
            return
        columns = self.columns()
        tables = self.hypothesis.tables = tables.for_labels(len(self.buffer.labels))
        self.model = EmpiricalModel(tables, self.buffer, columns)
        self.bounds_at, self.start_rate = -1, (-1, -1, 0.0)
        self.has_news()
        self.useless_resets = self.familiar_resets = 0
        self.given_up.clear()
        self.given_up_pairs.clear()
        self.queries = self.alternatives = self.w_method = None
        for state in self.episodes:
            state.path = []
            if state.active:
                state.row, state.context, state.previous_context = self.model.locate(state.episode)
                state.start = UNKNOWN if len(state.episode) else state.row

    def random_action(self, episode: EpisodeState) -> int:
        """Return an action drawn by the seed, the number of steps and the environment."""
        rng = np.random.default_rng((self.config.seed, self.steps, episode.index))
        return int(rng.integers(len(self.buffer.actions)))
