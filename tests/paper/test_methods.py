"""The methods that are compared: how each of them says what came of it."""

import pytest

from resolvent.paper.experiments.methods import ours
from worlds import random_world


@pytest.mark.parametrize(("limit", "status"), [(1e-6, "time limit"), (60.0, "found")])
def test_a_machine_that_is_not_finished_is_not_called_found(limit, status):
    traces = random_world(0).rollouts(50, seed=1)
    assert ours(traces, states=3, seed=0, time_limit=limit, strategy="edsm").status == status
