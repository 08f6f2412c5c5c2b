"""Traces and the values of a stochastic model → how far the model misses the returns of the traces.

The discounted sum of the errors of single steps, r + γ V(z′) − Q(z, a), is 0 on average for any
behavior in any order, if the augmented states z have the Markov property. It is not where time
passes unseen, for instance, although the counts of each step alone are right.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from resolvent._util.math import powers
from resolvent._util.parallel import Workers
from resolvent.machines.tables import look_up
from resolvent.planning.confidence import Numbers
from resolvent.planning.steps import Keys, StateSpace, acting_machines
from resolvent.planning.stochastic import DecisionProcess
from resolvent.preprocess.samples import rounded
from resolvent.replay.coded_shard import CodedShard
from resolvent.replay.corpus import Corpus, run_pass, scan_corpus
from resolvent.replay.replaying import MachineTables, replay_shard
from resolvent.traces import TraceDataset, TraceSet
from resolvent.traces.schema import ACTION, OBSERVATION
from resolvent.traces.vocabulary import codes_of

if TYPE_CHECKING:
    from resolvent.planning.plan import Plan

_ERRORS: Final = 3  # number of standard errors from which on a mean error counts
_KNOWN: Final = 0.95  # minimum share of episodes of known steps alone: the others are a selection
_ENOUGH: Final = 10  # minimum number of episodes for a standard error
_NEGLIGIBLE: Final = 1e-3  # share of the range of returns below which an error does not count


def returns_of(traces: TraceSet, gamma: float = 1.0, digits: int | None = None) -> Numbers:
    """Return the discounted return of each episode, its rewards rounded to `digits` if given."""
    return discounted_sums(
        traces, np.array(rounded(traces.rewards, digits))[traces.reward_codes], gamma
    )


def discounted_sums(traces: TraceSet, of_step: Numbers, gamma: float) -> Numbers:
    """Return the discounted sum of a number of each step, for each episode."""
    steps = np.arange(traces.steps) - np.repeat(traces.offsets[:-1], np.diff(traces.offsets))
    terms = of_step * powers(gamma, int(steps.max(initial=0)) + 1)[steps]
    returns: Numbers = np.add.reduceat(terms, traces.offsets[:-1])
    return returns


@dataclass(frozen=True, eq=False)
class ReturnErrors:
    """The discounted return of each episode, and the sum of the errors of its steps or NaN."""

    returns: Numbers
    errors: Numbers

    def __add__(self, other: "ReturnErrors") -> "ReturnErrors":
        both = zip((self.returns, self.errors), (other.returns, other.errors), strict=True)
        return ReturnErrors(*(np.concatenate(pair) for pair in both))

    @property
    def span(self) -> float:
        """The range of the returns."""
        return float(self.returns.max() - self.returns.min())

    @property
    def correction(self) -> float:
        """The mean error of an episode; 0 if it may be chance, or if many steps are not known."""
        errors = self.errors[~np.isnan(self.errors)]
        if len(errors) < max(_ENOUGH, _KNOWN * len(self.errors)):
            return 0.0
        mean = math.fsum(errors) / len(errors)  # the same in any order
        variance = math.fsum((errors - mean) ** 2) / (len(errors) - 1)
        least = _ERRORS * math.sqrt(variance / len(errors)) + _NEGLIGIBLE * self.span
        return mean if abs(mean) > least else 0.0


@dataclass(frozen=True, eq=False)
class ReturnPass:
    """Finds the errors of each episode of a shard; it can be pickled, to run anywhere.

    `value` has an entry for each augmented state, and a last one for others; `value_of_step` has
    one for each step, NaN where an outcome is not known.
    """

    tables: MachineTables
    space: StateSpace
    numbers: Keys
    value: Numbers
    value_of_step: Numbers
    gamma: float
    digits: int | None

    def __call__(self, shard: CodedShard) -> ReturnErrors:
        """Return the errors of the episodes of a shard."""
        traces, alphabets, space = shard.traces, shard.alphabets, self.space
        replay = replay_shard(self.tables, shard, shortest=False, unknown_states=True, states=True)
        observations = codes_of(alphabets.observations, space.observations, -1)
        o = observations[traces.at_step(shard.codes[OBSERVATION])]
        states = list(replay.states.values())
        order = np.argsort(self.numbers)
        number = np.where(
            np.min([o, *states], axis=0) < 0, -1, space.number(o.astype(np.int64), states)
        )
        z = look_up(self.numbers[order], order.astype(np.int32), number)
        a = codes_of(alphabets.actions, space.actions, -1)[shard.codes[ACTION]]
        reward = np.array(rounded(traces.rewards, self.digits))[traces.reward_codes]
        ahead, last = np.append(self.value[z[1:]], 0.0), traces.offsets[1:] - 1
        ahead[last] = 0.0
        error = reward + self.gamma * ahead - self.value_of_step[z, a]
        error[(z < 0) | (a < 0)] = np.nan
        error[last[~traces.terminated]] = 0.0  # what follows is not recorded
        return ReturnErrors(
            discounted_sums(traces, reward, self.gamma), discounted_sums(traces, error, self.gamma)
        )


def return_errors(
    plan: "Plan", traces: TraceSet | TraceDataset, known: Corpus | None, workers: Workers
) -> ReturnErrors:
    """Return the errors of a plan of stochastic machines in the episodes of its traces."""
    acting, model = acting_machines(plan.machines), plan.model
    corpus = scan_corpus(
        acting.replacing(preprocessor=plan.machines.preprocessor), traces, workers, known=known
    )
    sizes = tuple(machine.states for machine in acting.values())
    space = StateSpace(model.observations, model.actions, sizes)
    process = DecisionProcess.expected(model, plan.reward_range[0], plan.gamma)
    of_step = process.backup(process.ahead(plan.values, plan.gamma), process.frequency)
    # A step with an outcome that is not known is valued with caution, and so has errors.
    has_unknown = np.bincount(process.step, process.next_state > process.states, of_step.size) > 0
    is_known = model.known & ~has_unknown.reshape(of_step.shape)
    errors = ReturnPass(
        MachineTables.of(acting, corpus.alphabets),
        space,
        space.number(model.observation.astype(np.int64), list(model.states.values())),
        np.append(plan.values, process.unknown_value),
        np.where(is_known, of_step, np.nan),
        plan.gamma,
        acting.reward.digits,
    )
    return run_pass(corpus, errors)
