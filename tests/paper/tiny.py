"""A reproduction of a second: settings whose runs are fake methods, and hand-made results."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fake_methods import run

from resolvent.paper.reproduce import Settings, settings
from resolvent.paper.runs import Run


class TinySettings(Settings):
    """Three runs of one experiment; the second one fails."""

    def runs(self, experiment: str) -> Iterator[Run]:
        if experiment == "baselines":
            yield run("answers", "first", value=1)
            yield run("raises", "second")
            yield run("answers", "third", value=3)


def tiny(time_limit: float = 30.0) -> TinySettings:
    return TinySettings(**asdict(settings(quick=True, time_limit=time_limit)))


ABOUT: dict[str, Any] = {
    "format": 1,
    "settings": asdict(settings(quick=True)),
    "machine": {"processor": "Abacus", "cores": 2, "system": "Linux", "architecture": "wood"},
    "python": "3.11.0",
    "packages": {"numpy": "2.0", "highspy": None},
    "command": "resolvent reproduce --quick",
}


def compared(method: str, repetition: int = 0, setting: str = "3x3", **more: Any) -> dict[str, Any]:
    """A record of the baseline comparison."""
    record = {
        "experiment": "baselines",
        "setting": setting,
        "method": method,
        "repetition": repetition,
        "status": "found",
        "seconds": 1.0,
        "memory_mb": 50.0,
        "traces": 275,
        "steps": 275 * 39,
        "states": 2,
        "correctness": "exact",
        "reachable": {"queries": 68, "wrong": 0, "unseen": 0},
        "fresh": {"steps": 1_000, "wrong": 0, "unseen": 0},
    }
    return record | more


def failed(method: str, status: str, **more: Any) -> dict[str, Any]:
    """A record of a run that found nothing."""
    record = compared(method)
    kept = ("experiment", "setting", "method", "repetition")
    return {name: record[name] for name in kept} | {"status": status, **more}


def ablated(method: str, setting: str = "low", **more: Any) -> dict[str, Any]:
    """A record of the ablation."""
    record = compared(method, setting=setting, tm_states=7, **more)
    return record | {"experiment": "ablation"}


def learned(method: str, repetition: int, values: list[float]) -> dict[str, Any]:
    """A record of learning, evaluated every 750 episodes; the optimum is 2."""
    return {
        "experiment": "policy",
        "setting": "25x25",
        "method": method,
        "repetition": repetition,
        "status": "found",
        "seconds": 0.5,
        "episodes": 750 * len(values),
        "optimum": 2.0,
        "largest_return": 3.0,
        "returns": [value / 2 for value in values],
        "policy": {"episode": [750 * (n + 1) for n in range(len(values))], "value": values},
    }
