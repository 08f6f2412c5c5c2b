"""`resolvent doctor`: this installation → versions, the core's build, extras, a trial run."""

import importlib
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Collection, Iterator
from importlib import metadata
from typing import Annotated, Any, NamedTuple

import typer
from packaging.requirements import Requirement

from resolvent import _core
from resolvent._util.parallel import executor_named
from resolvent._util.ray import Ray
from resolvent._util.records import builtin
from resolvent.cli import flags, outputs
from resolvent.errors import OptionError, ResolventError
from resolvent.inference.strategy import ENGINES
from resolvent.viz.terminal import ProgressBar, show, table

EXTRAS = {
    "aalpy": "AALpy among the baselines",
    "baselines": "the ILP, LRM and HMM baselines",
    "discretize": "intervals around centers, by k-means",
    "drawings": "pictures of machines, as SVG and PNG",
    "exact": "strategy exact: machines proven to be the smallest",
    "figures": "learning curves as pictures",
    "minari": "Minari datasets as traces, and traces as Minari datasets",
    "ray": 'inference over a cluster, on="ray"',
    "stable-baselines": "Stable-Baselines3 with the memory of machines",
}
"""The purpose of each extra."""

_MODULES = {"pillow": "PIL", "python-sat": "pysat", "scikit-learn": "sklearn"}
"""Names of modules that differ from the package's."""

_MISSING = "not installed"
_BY_ADDRESS = "that of RAY_ADDRESS, if it is set"


def doctor(
    on: Annotated[
        str | None,
        flags.option("ray[:ADDRESS]", "A Ray cluster to reach.", show_default=_BY_ADDRESS),
    ] = None,
    json: flags.Json = False,
) -> None:
    """Check this installation: versions, the build of the core, extras, a trial run.

    The exit code is 0 if everything that is installed works, and 1 otherwise or if the named
    cluster cannot be reached. An extra that is not installed is no fault.
    """
    findings = _examine(on)
    if json:
        outputs.print_json(builtin(findings))
    else:
        _print(findings)
    if findings["faults"]:
        raise typer.Exit(1)


class Package(NamedTuple):
    """A package that Resolvent uses: the wanted and the installed version.

    `version` is None if it is not installed; `trouble` is empty if it can be used.
    """

    name: str
    wanted: str
    version: str | None
    trouble: str

    def __str__(self) -> str:
        version = "" if self.version is None else f" {self.version}"
        return f"{self.name}{version}: {self.trouble}"


def _examine(on: str | None) -> dict[str, Any]:
    """Return all findings, by the names that they have in JSON."""
    extras = {}
    with ProgressBar() as bar:
        needed = list(map(look_at, requirements_of("resolvent")))
        for number, name in enumerate(EXTRAS):
            bar.show(f"checking extra {name}", number / len(EXTRAS))
            extras[name] = list(map(look_at, requirements_of("resolvent", [name])))
    faults = [str(package) for package in needed if package.trouble]
    faults += [
        f"{package} (extra {name})"
        for name, packages in extras.items()
        for package in packages
        if package.trouble and package.version is not None
    ]
    try:
        trial = _trial()
    except Exception as error:  # any failure is a finding
        trial = f"failed: {_text_of(error)}"
        faults.append(f"trial run {trial}")
    cluster = None
    if on is not None or os.environ.get("RAY_ADDRESS"):
        try:
            workers = executor_named(on or "ray")
            if not isinstance(workers, Ray):
                raise OptionError(f"--on {on} is no Ray cluster: write ray or ray:ADDRESS")
            cluster = workers.reached()
        except ResolventError as error:
            cluster = f"not reached: {error}"
            faults.append(str(error))
    return {
        "system": {
            "resolvent": metadata.version("resolvent"),
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "platform": platform.platform(),
            "encoding": f"{sys.stdout.encoding}",
        },
        "core": dict(_core.BUILD),
        "dependencies": needed,
        "extras": extras,
        "programs": {"dot": shutil.which("dot")},
        "trial": trial,
        "cluster": cluster,
        "faults": faults,
    }


def requirements_of(name: str, extras: Collection[str] = ()) -> Iterator[Requirement]:
    """Yield the requirements of a package: the unconditional ones, or those of some extras."""
    for requirement in map(Requirement, metadata.requires(name) or ()):
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        by_extra = any(marker.evaluate({"extra": extra}) for extra in extras) if marker else False
        if (by_extra and not always) if extras else always:
            yield requirement
            if requirement.extras and _installed(requirement.name) is not None:
                yield from requirements_of(requirement.name, requirement.extras)


def look_at(requirement: Requirement) -> Package:
    """Check that a requirement is installed and can be imported."""
    name, wanted = requirement.name, requirement.specifier
    version, trouble = _installed(name), ""
    if version is None:
        trouble = _MISSING
    elif not wanted.contains(version, prereleases=True):
        trouble = f"{wanted} is needed"
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(_MODULES.get(name.lower(), name.replace("-", "_")))
        except Exception as error:  # what a broken package does is not known beforehand
            trouble = f"cannot be imported: {_text_of(error)}"
    return Package(name, str(wanted), version, trouble)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _trial() -> str:
    """Infer the machines of a small world with each engine; they must agree."""
    import gymnasium as gym

    from resolvent.inference.infer import infer
    from resolvent.inference.options import InferenceOptions
    from resolvent.rl.collect import collect

    traces = collect(gym.make("resolvent/House-v0"), episodes=200, seed=0)
    machines, *others = (
        infer(traces, options=InferenceOptions(engine=engine)).machines for engine in ENGINES
    )
    if any(dict(machines) != dict(other) for other in others):
        raise ResolventError("the engines found different machines in the house")
    if not machines.score(traces).perfect:
        raise ResolventError("the machines found do not explain the traces of the house")
    states = " and ".join(str(machine.states) for machine in machines.values())
    engines = " and ".join(ENGINES)
    return f"the engines {engines} found the same machines in the house, {states} states"


def _print(findings: dict[str, Any]) -> None:
    dependencies = [
        [name, version or "", wanted, trouble]
        for name, wanted, version, trouble in findings["dependencies"]
    ]
    extras, missing = [], []
    for name, packages in findings["extras"].items():
        installed = ", ".join(f"{package.name} {package.version}" for package in packages)
        if any(package.version is None for package in packages):
            installed = _MISSING
            missing.append(name)
        extras.append([name, installed, EXTRAS[name]])
    show(table(["Resolvent", ""], findings["system"].items()), "")
    show(table(["Compiled core", ""], findings["core"].items()), "")
    show(table(["Dependencies", "version", "wanted", ""], dependencies), "")
    show(table(["Extras", "", "for"], extras), "")
    if missing:
        print(f'to add one: pip install "resolvent[{missing[0]}]"')
    print(f"program dot: {findings['programs']['dot'] or 'not found'}")
    print("shell completion: resolvent --install-completion")
    if findings["cluster"] is not None:
        print(f"Ray cluster: {findings['cluster']}")
    print(f"trial run: {findings['trial']}\n")
    faults = [f"fault: {fault}" for fault in findings["faults"]]
    print("\n".join(faults or ["all that is installed works"]))
