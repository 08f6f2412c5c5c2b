"""What a report says of noisy machines."""

from random import Random

import resolvent as rs
from noisy_worlds import disturbed, noisy_house
from resolvent.viz.report.page import contents


def test_answers_that_vary_are_no_mistakes_as_far_as_noise_goes():
    machines, traces = noisy_house()
    data = contents(machines, rs.evidence(machines, traces))
    verdict = data["summary"]["verdict"]
    assert verdict["kind"] == "right"
    assert verdict["text"].startswith("Outputs vary because of noise. Transition machine: ")
    (weak,) = data["machines"][0]["proof"]["weakest"]
    assert "as one state 10⁻" in str(weak["by"])


def test_more_noise_than_expected_is_a_mistake():
    machines, traces = noisy_house()
    more = disturbed(traces, 0.3, Random(1))
    data = contents(machines, rs.evidence(machines, more))
    assert data["summary"]["verdict"]["kind"] == "wrong"
    assert "location" in data["summary"]["verdict"]
