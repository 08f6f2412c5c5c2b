"""Moved."""

from resolvent.paper.baselines.hmm_em import (Fit, Listener, _by_row, _maximised, baum_welch)  # noqa: F401
