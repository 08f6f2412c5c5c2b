"""What `pip install resolvent` brings along, and under which licences: all must be known here.

`python packaging/licences.py` prints a table and ends with exit code 1 when a package has no
licence, or one that is not on the list. Run by `make audit`.
"""

import re
import sys
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "PSF-2.0",
    "Zlib",
}
"""Licences, as SPDX names them, that let anybody use Resolvent for anything."""

_SPOKEN = {
    "apache": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "the mit license (mit)": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
"""What classifiers and older packages call them."""


def installed_with(name: str) -> dict[str, str]:
    """Return what an installed package stands on, itself included: licence by name.

    >>> installed_with("packaging")["packaging"]
    'Apache-2.0 OR BSD-2-Clause'
    """
    found: dict[str, str] = {}
    waiting = [(name, frozenset[str]())]
    while waiting:
        package, extras = waiting.pop()
        if package not in found or extras:
            found[package] = licence_of(metadata.metadata(package))
            waiting += [one for one in _needs(package, extras) if one[0] not in found]
    return dict(sorted(found.items()))


def licence_of(about: "metadata.PackageMetadata") -> str:
    """Return the licence that a package's metadata name, the most exact statement first."""
    if "License-Expression" in about:
        return str(about["License-Expression"])
    spoken = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    if not spoken:
        spoken = about.get("License", "").strip().split("\n")[:1]
    return " AND ".join(_SPOKEN.get(one.lower(), one) for one in spoken)


def allowed(licence: str) -> bool:
    """Say whether all the parts of a licence, or one of its choices, are on the list.

    >>> allowed("MIT"), allowed("BSD-3-Clause AND Zlib"), allowed("GPL-3.0-only OR MIT")
    (True, True, True)
    >>> allowed("MIT AND GPL-3.0-only"), allowed("")
    (False, False)
    """
    choices = re.split(r"\s+OR\s+", licence.replace("(", " ").replace(")", " "))
    parts = [[part.strip() for part in re.split(r"\s+AND\s+", choice)] for choice in choices]
    return any(all(part in ALLOWED for part in choice) for choice in parts)


def _needs(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in metadata.requires(name) or ():
        one = Requirement(line)
        if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in {"", *extras}):
            yield one.name.lower().replace("_", "-"), frozenset(one.extras)


def main() -> int:
    """Print the table and return the exit code."""
    found = installed_with("resolvent")
    width = max(map(len, found))
    for name, licence in found.items():
        mark = "" if allowed(licence) else "   <- not on the list in packaging/licences.py"
        print(f"{name:<{width}}  {licence or 'no licence named'}{mark}")
    return 0 if all(map(allowed, found.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
