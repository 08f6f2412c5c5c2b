"""This installation: packages, the build of the core, extras present."""

import importlib
import platform
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement

from resolvent import _core
from resolvent._util.startup import ADVICE, is_off

EXTRAS = {
    "aalpy": "AALpy among the baselines",
    "baselines": "the ILP, LRM and HMM baselines",
    "discretise": "intervals around centres, by k-means",
    "drawings": "pictures of machines, as SVG and PNG",
    "exact": "strategy exact: machines proven to be the smallest",
    "figures": "learning curves as pictures",
    "minari": "Minari datasets as traces, and traces as Minari datasets",
    "ray": 'inference over a cluster, on="ray"',
    "stable-baselines": "Stable-Baselines3 with the memory of machines",
}
"""The purpose of each extra."""

_MODULES = {
    "pillow": "PIL",
    "python-sat": "pysat",
    "scikit-learn": "sklearn",
}  # where the name is not the package's


@dataclass(frozen=True)
class Package:
    """A package that Resolvent uses: the wanted and the installed version.

    `version` is None if it is not installed; `trouble` is empty if it can be used.
    """

    name: str
    wanted: str
    version: str | None
    trouble: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "wanted": self.wanted,
            "version": self.version,
            "trouble": self.trouble,
        }


def system() -> dict[str, str]:
    """Describe the system."""
    return {
        "resolvent": metadata.version("resolvent"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "encoding": f"{sys.stdout.encoding}",
        "global lock": _global_lock(),
    }


def _global_lock() -> str:
    if not is_off():
        return "on"
    return f"off: Resolvent does not run without it; {ADVICE}"


def core() -> dict[str, str]:
    """Describe the build of the compiled core.

    >>> sorted(core())
    ['compiler', 'flags', 'nanobind', 'target', 'type']
    """
    return dict(_core.BUILD)


def dependencies() -> Iterator[Package]:
    """Return the required packages."""
    return map(look_at, requirements_of("resolvent"))


def extra(name: str) -> Iterator[Package]:
    """Return the packages of an extra."""
    return map(look_at, requirements_of("resolvent", extras=[name]))


def requirements_of(name: str, extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """Yield the requirements of a package: the unconditional ones, or those of some extras."""
    chosen = list(extras)
    for requirement in map(Requirement, metadata.requires(name) or ()):
        always = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if always == (not chosen) and (
            always
            or any(
                requirement.marker and requirement.marker.evaluate({"extra": each})
                for each in chosen
            )
        ):
            yield requirement
            if requirement.extras and _installed(requirement.name) is not None:
                yield from requirements_of(requirement.name, requirement.extras)


def look_at(requirement: Requirement) -> Package:
    """Check that a requirement is installed and can be imported."""
    version = _installed(requirement.name)
    if version is None:
        trouble = "not installed"
    elif not requirement.specifier.contains(version, prereleases=True):
        trouble = f"{requirement.specifier} is needed"
    else:
        trouble = _import_trouble(requirement.name)
    return Package(requirement.name, str(requirement.specifier), version, trouble)


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _import_trouble(name: str) -> str:
    module = _MODULES.get(name.lower(), name.replace("-", "_"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(module)
    except Exception as error:  # what a broken package does is not known beforehand
        text = " ".join(str(error).split())
        return f"cannot be imported: {type(error).__name__}: {text}"
    return ""
