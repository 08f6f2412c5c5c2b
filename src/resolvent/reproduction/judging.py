"""Moved."""

from resolvent.paper.correctness import (Integers, Judgement, _answered, _codes, _one_for_one, _paired, _reached, _steps, judge_edges, judge_pair)  # noqa: F401
