"""Observation supplement: pair each observation with the state of the Transition Machine.

If the next observation depends on history, the reward often depends on the same history. A
Reward Machine that reads (observation, TM state) need not track it.
"""

import numpy as np

from resolvent.errors import ModelError
from resolvent.preprocess.samples import ObservationColumn
from resolvent.traces.trace_set import TraceSet
from resolvent.traces.vocabulary import Codes, Vocabulary, distinct_pairs


def supplement(traces: TraceSet, states: Codes) -> ObservationColumn:
    """Pair the observation at every step with the state of the Transition Machine there.

    `states` has the state at each step, −1 if a replay found none.

    Paper: StateSupp, "Observation Supplement Algorithm". Departure: the label timing determines
    the labels read, not always up to l_{t-1}.
    """
    if np.any(states < 0):
        trace, step = traces.locate(int(np.argmax(states < 0)))
        raise ModelError(
            f"trace {trace}, step {step}: the transition machine was never shown the labels read "
            f"up to here; infer it from these traces"
        )
    n_states = int(states.max(initial=0)) + 1
    keys, codes = distinct_pairs(
        traces.at_step(traces.observation_codes), states, len(traces.observations), n_states
    )
    observation_codes, state_of_pair = np.divmod(keys, n_states)
    observations = map(list(traces.observations).__getitem__, observation_codes.tolist())
    return Vocabulary(zip(observations, state_of_pair.tolist(), strict=True)), codes
