"""Resolvent's compiled core: prefix trees, state merging and replay over flat arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Rows = NDArray[np.int64]
Reals = NDArray[np.float64]
Pairs = list[tuple[int, int]]

BUILD: dict[str, str]

def natural_log(x: float) -> float: ...
def log_one_plus(x: float) -> float: ...
def binary_log(x: float) -> float: ...
def exponential(x: float) -> float: ...
def power(base: float, exponent: float) -> float: ...
def log_gamma(x: float) -> float: ...
def natural_logs(x: Reals) -> Reals: ...
def logs_one_plus(x: Reals) -> Reals: ...
def binary_logs(x: Reals) -> Reals: ...
def exponentials(x: Reals) -> Reals: ...
def log_gammas(x: Reals) -> Reals: ...
def product(left: Reals, right: Reals, inner: int) -> Reals: ...

class HistoryTree:
    def __len__(self) -> int: ...
    def history(self, node: int) -> list[int]: ...

def build_history_tree(beta: Ids, offsets: Rows) -> HistoryTree: ...
def learn(
    histories: HistoryTree,
    alpha: Ids,
    output: Ids,
    *,
    order: str,
    time_limit: float = 0.0,
    progress: Callable[[int, int, int, int], object] | None = None,
    most_states: int | None = None,
    most_work: int = 0,
) -> dict[str, Any]: ...
def complete(
    histories: HistoryTree, alpha: Ids, output: Ids, access: Ids, settled: Ids
) -> dict[str, Any]: ...
def search(
    histories: HistoryTree,
    alpha: Ids,
    output: Ids,
    *,
    seed: int,
    budget: int,
    time_limit: float = 0.0,
    progress: Callable[[int, int, int, int], object] | None = None,
    known: Ids | None = None,
    labels: int = 0,
    merges: bool = True,
) -> dict[str, Any]: ...
def repair(
    histories: HistoryTree,
    alpha: Ids,
    output: Ids,
    *,
    states: int,
    state: Ids,
    label: Ids,
    target: Ids,
    seed: int,
    budget: int,
    time_limit: float = 0.0,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> dict[str, Any]: ...
def min_states_bound(
    histories: HistoryTree,
    alpha: Ids,
    output: Ids,
    *,
    states: int,
    state: Ids,
    label: Ids,
    target: Ids,
    work: int,
) -> int: ...
def find_conflict(histories: HistoryTree, alpha: Ids, output: Ids) -> tuple[int, int] | None: ...
def history_columns(histories: HistoryTree) -> tuple[Ids, Ids, Ids]: ...
def delete_labels(
    histories: HistoryTree, alpha: Ids, output: Ids, named: list[int], labels: int
) -> list[tuple[tuple[int, int] | None, int, NDArray[np.float64], Rows]]: ...
def separate(
    query: Ids,
    state: Ids,
    output: Ids,
    *,
    count: Rows,
    step: Rows,
    transitions: Ids,
    states: int,
    labels: int,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> dict[str, NDArray[Any]]: ...
def converge(
    histories: HistoryTree,
    row_query: Ids,
    row_output: Ids,
    *,
    query: Ids,
    state: Ids,
    output: Ids,
    queries: int,
    transitions: Ids,
    states: int,
    labels: int,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> tuple[int, int, int, int, int]: ...
def tally_outputs(alpha: Ids, output: Ids, alphas: int) -> tuple[Ids, Rows, NDArray[np.uint8]]: ...
def starts_in_order(episode: list[Rows], time: list[Rows], rows: int) -> Rows | None: ...
def distinct_integers(numbers: Rows, most: int) -> tuple[Rows, Ids] | None: ...
def recode_with_inserted(codes: Ids, table: Ids, at: Rows, inserted: int) -> Ids: ...
def repeated_code(code: int, times: int) -> Ids: ...
def used_codes(codes: Ids, size: int) -> NDArray[np.uint8]: ...
def distinct_pairs(first: Ids, second: Ids, firsts: int, seconds: int) -> tuple[Ids, Ids]: ...
def numbered(values: Rows) -> tuple[Rows, Ids]: ...
def recode(codes: Ids, table: Ids) -> Ids: ...
def walk_states(transitions: Ids, labels: int, beta: Ids, offsets: Rows) -> Ids: ...

class QueriedSteps:
    def __init__(self, read: Ids, offsets: Rows, query: Ids, queries: int) -> None: ...
    def conflicts(
        self,
        transitions: Ids,
        labels: int,
        output: Ids,
        condition: Ids,
        condition_states: int,
        enough: int,
    ) -> tuple[int, int, int, int]: ...

class Walk:
    @property
    def finished(self) -> int: ...
    @property
    def done(self) -> bool: ...
    def feed(self, actions: Rows) -> None: ...
    def take(self) -> tuple[Ids, Ids, Rows, NDArray[np.uint8]]: ...

def walk(next_state: Ids, ends: Ids, actions: int, starts: Ids, max_steps: int) -> Walk: ...
def expected_layers(
    move: Ids,
    offsets: Rows,
    paid: Ids,
    *,
    layers: int,
    onward: NDArray[np.float64],
    ending: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...
def expected_transitions(
    source: Ids,
    output: Ids,
    offsets: Rows,
    *,
    states: int,
    transitions: NDArray[np.float32],
    outputs: NDArray[np.float32],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...
def output_counts(
    source: Ids, output: Ids, offsets: Rows, *, table: Ids, states: int, outputs: int
) -> NDArray[np.int64]: ...
def output_counts_after(
    source: Ids, output: Ids, offsets: Rows, states: Ids, *, state: int, sources: int, outputs: int
) -> NDArray[np.int64]: ...
def noisy_machine_evidence(
    alpha: Ids, output: Ids, beta: Ids, offsets: Rows, *, transitions: Ids, labels: int
) -> tuple[float, float, float, float]: ...
def grow_noisy_machine(
    alpha: Ids,
    output: Ids,
    beta: Ids,
    offsets: Rows,
    *,
    quiet: Ids,
    seed: int,
    effort: float,
    most_states: int,
    part: int,
    time_limit: float = 0.0,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> dict[str, Any]: ...
def grow_latent_machine(
    alpha: Ids,
    output: Ids,
    beta: Ids,
    offsets: Rows,
    *,
    labels: int,
    no_event: int,
    noisy_labels: bool,
    random_starts: bool,
    seed: int,
    effort: float,
    most_states: int,
    part: int,
    time_limit: float = 0.0,
    progress: Callable[[int, int, int, int], object] | None = None,
) -> dict[str, Any]: ...
def true_label_probabilities(
    labels: int,
    *,
    no_event: int,
    missed: float,
    added: float,
    swapped: float,
    shares: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def transition_alternatives(
    alpha: Ids,
    output: Ids,
    beta: Ids,
    offsets: Rows,
    *,
    transitions: Ids,
    labels: int,
    part: int,
    seed: int = 0,
) -> tuple[Ids, Reals]: ...
def compare_state_pairs(
    alpha: Ids, output: Ids, state: Ids, *, states: int
) -> dict[str, NDArray[Any]]: ...
def split_noisy_rows(
    alpha: Ids, output: Ids, state: Ids, *, values: Ids, states: int, least: float
) -> dict[str, NDArray[Any]]: ...

class QLearner:
    def __init__(
        self, actions: int, alpha: float, gamma: float, seed: int, initial: float = 0.0
    ) -> None: ...
    @property
    def states(self) -> int: ...
    def add(self, potential: float = 0.0) -> None: ...
    def set_values(self, state: int, values: Reals) -> None: ...
    def choose(self, state: int, epsilon: float) -> int: ...
    def update(
        self, state: int, action: int, reward: float, next_state: int, ended: bool
    ) -> None: ...
    def learn_counterfactual(
        self, known: KnownSteps, observation: int, action: int, real: int
    ) -> None: ...
    def values(self) -> Reals: ...

class KnownSteps: ...

def known_steps(
    observation: Ids, observations: int, next_state: Ids, reward: Reals, outcome: Ids, actions: int
) -> KnownSteps: ...

class TabularTrainer:
    def add_states(self, codes: Ids) -> None: ...
    def begin(self, learner: QLearner, state: int) -> None: ...
    def run(self, learner: QLearner, epsilon: float, steps: int) -> bool: ...
    def value_of(
        self, policy: Ids, gamma: float, starts: Ids
    ) -> tuple[Reals, NDArray[np.uint8]]: ...
    def codes(self) -> Ids: ...
    @property
    def result(self) -> tuple[float, float, int]: ...

def tabular_trainer(
    next_state: Ids,
    ends: Ids,
    actions: int,
    reward: Reals,
    observation_of: Ids,
    label_of: Ids,
    labels: int,
    *,
    transition: Ids,
    reward_transitions: Ids,
    reads_first: bool,
    lags: bool,
    stack: int,
    known: KnownSteps | None,
    known_observation: Ids,
    potential: Reals,
) -> TabularTrainer: ...

class OutputTree:
    def __len__(self) -> int: ...
    def canonical(self, table: Ids) -> Ids: ...

def output_tree(histories: HistoryTree, alpha: Ids, output: Ids, labels: int) -> OutputTree: ...
def first_conflict(
    table: Ids, labels: int, alpha: Ids, output: Ids, beta: Ids, offsets: Rows
) -> tuple[int, int] | None: ...
def merge_as(
    histories: HistoryTree, alpha: Ids, output: Ids, table: Ids, labels: int
) -> dict[str, Any]: ...

NEXT_OBSERVATION: int
WHETHER_TERMINATED: int

def key_residues(keys: Rows, base: int, other_base: int) -> tuple[int, int]: ...

class TraceColumns:
    def __init__(
        self,
        *,
        observation: Ids,
        label: Ids,
        action: Ids,
        outputs: list[Ids],
        offsets: Rows,
        ended: Ids,
        observations: int,
        labels: int,
        actions: int,
        output_sizes: list[int],
    ) -> None: ...
    def keys(
        self, *, observation: Rows, label: Rows, action: Rows, outputs: list[Rows], threads: int
    ) -> Rows: ...
    def replay(
        self,
        machines: list[tuple[Ids, int, bool]],
        *,
        rank: Ids,
        first: int,
        lag: int,
        outputs: bool,
        augmented_states: bool,
        unknown_states: bool,
        earliest: bool,
        states: bool,
        threads: int,
    ) -> dict[str, Any]: ...

class SteppedFolding:
    def __init__(self, alpha: Ids, output: Ids, beta: Ids, offsets: Rows) -> None: ...
    def promote(self, state: int) -> None: ...
    def try_fold(self, red: int, blue: int) -> int | None: ...
    def undo(self) -> None: ...
    def snapshot(self) -> list[tuple[int, Pairs, Pairs]]: ...
