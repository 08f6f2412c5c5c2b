"""Moved."""

from resolvent.paper.baselines.hmm import (EngineName, _ENGINES, _MOST_HIDDEN_STATES, _check_options, _draws, _status, first_guess, hmm)  # noqa: F401
