"""`resolvent doctor`: this installation → versions, the core's build, extras, a trial run."""

import os
import shutil
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from resolvent._util import startup as global_lock
from resolvent._util.parallel import ray_named
from resolvent._util.runtime import EXTRAS, Package, core, dependencies, extra, system
from resolvent.cli.options import Json, option
from resolvent.cli.output import print_json
from resolvent.errors import ResolventError
from resolvent.inference.engine import ENGINES
from resolvent.viz.terminal import ProgressBar

_MISSING = "not installed"


def doctor(
    on: Annotated[
        str | None,
        option(
            "ray[:ADDRESS]",
            "A Ray cluster to reach.",
            "--on",
            show_default="that of RAY_ADDRESS, if it is set",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check this installation: versions, the build of the core, extras, a trial run.

    The exit code is 0 if everything that is installed works, and 1 otherwise or if the named
    cluster cannot be reached. An extra that is not installed is no fault.
    """
    found = _examine(on)
    if json:
        print_json(found.as_dict())
    else:
        _print(found)
    if found.faults:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Findings:
    needed: list[Package]
    extras: dict[str, list[Package]]
    trial: str
    cluster: str | None
    faults: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        return {
            "system": system(),
            "core": core(),
            "dependencies": [one.as_dict() for one in self.needed],
            "extras": {
                name: [one.as_dict() for one in packages] for name, packages in self.extras.items()
            },
            "programs": {"dot": shutil.which("dot")},
            "trial": self.trial,
            "cluster": self.cluster,
            "faults": self.faults,
        }


def _examine(on: str | None) -> _Findings:
    with ProgressBar() as bar:
        needed = list(dependencies())
        extras = {}
        for number, name in enumerate(EXTRAS):
            bar.show(f"looking at extra {name}", number / len(EXTRAS))
            extras[name] = list(extra(name))
    faults = [_fault(one) for one in needed if one.trouble]
    if global_lock.is_off():
        faults.append(f"Python's global lock is off: {global_lock.ADVICE}")
    for name, packages in extras.items():
        broken = (one for one in packages if one.trouble and one.version is not None)
        faults += [f"{_fault(one)} (extra {name})" for one in broken]
    try:
        trial = _trial()
    except Exception as error:  # any failure is a finding
        trial = f"failed: {type(error).__name__}: {' '.join(str(error).split())}"
        faults.append(f"trial run {trial}")
    cluster = None
    if on is not None or os.environ.get("RAY_ADDRESS"):
        try:
            cluster = ray_named(on or "ray").reached()
        except ResolventError as error:
            cluster = f"not reached: {error}"
            faults.append(str(error))
    return _Findings(needed, extras, trial, cluster, faults)


def _fault(one: Package) -> str:
    version = "" if one.version is None else f" {one.version}"
    return f"{one.name}{version}: {one.trouble}"


def _trial() -> str:
    """Infer the machines of a small world with each engine; they must agree."""
    import gymnasium as gym

    from resolvent.inference.infer import infer
    from resolvent.inference.options import InferenceOptions
    from resolvent.rl.collect import collect

    traces = collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    first, *others = (
        infer(traces, options=InferenceOptions(engine=engine)).machines for engine in ENGINES
    )
    for other in others:
        if dict(first) != dict(other):
            raise ResolventError("the engines found different machines in the house")
    if not first.score(traces).perfect:
        raise ResolventError("the machines found do not explain the traces of the house")
    states = " and ".join(str(machine.states) for machine in first.values())
    return (
        f"the engines {' and '.join(ENGINES)} found the same machines in the house, {states} states"
    )


def _print(found: _Findings) -> None:
    from resolvent.viz.terminal import show, table

    for title, facts in (("Resolvent", system()), ("Compiled core", core())):
        show(table([title, ""], facts.items()))
        print()
    rows = [[one.name, one.version or "", one.wanted, one.trouble] for one in found.needed]
    show(table(["Dependencies", "version", "wanted", ""], rows))
    print()
    rows = [_extra_row(name, packages) for name, packages in found.extras.items()]
    show(table(["Extras", "", "for"], rows))
    print()
    if missing := next((row[0] for row in rows if row[1] == _MISSING), None):
        print(f'to add one: pip install "resolvent[{missing}]"')
    print(f"program dot: {shutil.which('dot') or 'not found'}")
    print("shell completion: resolvent --install-completion")
    if found.cluster is not None:
        print(f"Ray cluster: {found.cluster}")
    print(f"trial run: {found.trial}\n")
    for fault in found.faults:
        print(f"fault: {fault}")
    if not found.faults:
        print("all that is installed works")


def _extra_row(name: str, packages: list[Package]) -> list[str]:
    if any(one.version is None for one in packages):
        return [name, _MISSING, EXTRAS[name]]
    there = ", ".join(f"{one.name} {one.version}" for one in packages)
    return [name, there, EXTRAS[name]]
