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
    findings = _examine(on)
    if json:
        print_json(findings.as_dict())
    else:
        _print(findings)
    if findings.faults:
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
            "dependencies": [package.as_dict() for package in self.needed],
            "extras": {
                name: [package.as_dict() for package in packages]
                for name, packages in self.extras.items()
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
    faults = [_fault(package) for package in needed if package.trouble]
    if global_lock.is_off():
        faults.append(f"Python's global lock is off: {global_lock.ADVICE}")
    for name, packages in extras.items():
        unusable = (
            package for package in packages if package.trouble and package.version is not None
        )
        faults += [f"{_fault(package)} (extra {name})" for package in unusable]
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


def _fault(package: Package) -> str:
    version = "" if package.version is None else f" {package.version}"
    return f"{package.name}{version}: {package.trouble}"


def _trial() -> str:
    """Infer the machines of a small world with each engine; they must agree."""
    import gymnasium as gym

    from resolvent.inference.infer import infer
    from resolvent.inference.options import InferenceOptions
    from resolvent.rl.collect import collect

    traces = collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    first, *rest = (
        infer(traces, options=InferenceOptions(engine=engine)).machines for engine in ENGINES
    )
    for machines in rest:
        if dict(first) != dict(machines):
            raise ResolventError("the engines found different machines in the house")
    if not first.score(traces).perfect:
        raise ResolventError("the machines found do not explain the traces of the house")
    states = " and ".join(str(machine.states) for machine in first.values())
    return (
        f"the engines {' and '.join(ENGINES)} found the same machines in the house, {states} states"
    )


def _print(findings: _Findings) -> None:
    from resolvent.viz.terminal import show, table

    for title, facts in (("Resolvent", system()), ("Compiled core", core())):
        show(table([title, ""], facts.items()))
        print()
    rows = [
        [package.name, package.version or "", package.wanted, package.trouble]
        for package in findings.needed
    ]
    show(table(["Dependencies", "version", "wanted", ""], rows))
    print()
    rows = [_extra_row(name, packages) for name, packages in findings.extras.items()]
    show(table(["Extras", "", "for"], rows))
    print()
    if missing := next((row[0] for row in rows if row[1] == _MISSING), None):
        print(f'to add one: pip install "resolvent[{missing}]"')
    print(f"program dot: {shutil.which('dot') or 'not found'}")
    print("shell completion: resolvent --install-completion")
    if findings.cluster is not None:
        print(f"Ray cluster: {findings.cluster}")
    print(f"trial run: {findings.trial}\n")
    for fault in findings.faults:
        print(f"fault: {fault}")
    if not findings.faults:
        print("all that is installed works")


def _extra_row(name: str, packages: list[Package]) -> list[str]:
    if any(package.version is None for package in packages):
        return [name, _MISSING, EXTRAS[name]]
    there = ", ".join(f"{package.name} {package.version}" for package in packages)
    return [name, there, EXTRAS[name]]
