"""Observation supplement: TM + traces → observations paired with TM states.

Where the next observation depends on history, the reward often seems to as
well. Questions put to the Reward Machine about (observation, TM state) instead
of the bare observation keep that history out of it.
"""

import numpy as np

from resolvent.errors import ModelError
from resolvent.machines import TransitionMachine
from resolvent.samples import ObservationColumn
from resolvent.traces import TraceSet, Vocabulary
from resolvent.traces.vocabulary import Codes, distinct_pairs


def supplement(machine: TransitionMachine, traces: TraceSet, states: Codes) -> ObservationColumn:
    """Pair the observation at every step with the state that the machine is in there.

    `states` are those that a replay found at every step.

    Paper: StateSupp, "Observation Supplement Algorithm". Departure: the state is
    the one after the labels that the timing says were read, not always l_{t-1}.
    """
    if np.any(states < 0):
        trace, step = traces.place(int(np.argmax(states < 0)))
        raise ModelError(
            f"trace {trace}, step {step}: the transition machine was never shown the labels read "
            f"up to here; infer it from these traces"
        )
    seen_codes = traces.at_step(traces.observation_codes)
    kept, codes = distinct_pairs(seen_codes, states, len(traces.observations), machine.states)
    observations = list(traces.observations)
    seen, state = np.divmod(kept, machine.states)
    pairs = zip(map(observations.__getitem__, seen.tolist()), state.tolist(), strict=True)
    return Vocabulary(pairs), codes
