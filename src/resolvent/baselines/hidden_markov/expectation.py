"""Moved."""

from resolvent.paper.baselines.hmm_em import (Deadline, DenseEngine, Engine, Numbers, SparseEngine, States, _NUMBERS_AT_ONCE, _STEPS_AT_ONCE, _batches, _parts)  # noqa: F401
