"""Results that must not change by accident: machines, solves and command output, frozen.

A change that alters one says which and why, and freezes it anew:
`python tests/goldens/goldens.py freeze`.
"""

import json
from pathlib import Path

import pytest

import goldens

FROZEN = json.loads((Path(__file__).parent / "goldens.json").read_text(encoding="utf-8"))
QUICK = dict(goldens.entries(quick=True))
SLOW = {name: entry for name, entry in goldens.entries(quick=False) if name not in QUICK}


def check(name, compute):
    assert json.loads(json.dumps(compute())) == FROZEN[name]


@pytest.mark.parametrize("name", QUICK)
def test_quick_results_are_unchanged(name):
    check(name, QUICK[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_slow_results_are_unchanged(name):
    check(name, SLOW[name])


def test_every_frozen_result_is_checked():
    assert FROZEN.keys() == QUICK.keys() | SLOW.keys()
