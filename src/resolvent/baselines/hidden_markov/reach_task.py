"""Moved."""

from resolvent.paper.baselines.reach_task import (ReachTask, _labels_of_places, _payment)  # noqa: F401
