"""Check the licenses of `resolvent` and of all packages that it needs.

`python packaging/licenses.py` prints a table; its exit code is 1 if a package has no license, or
one that is not allowed. Called by `make audit`.
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
"""SPDX names of the licenses with which everybody may use Resolvent for any purpose."""

_SPDX = {
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
"""SPDX names by those that classifiers and older packages use."""


def installed_with(name: str) -> dict[str, str]:
    """Return the licenses of an installed package and of all that it needs, by name.

    >>> installed_with("packaging")["packaging"]
    'Apache-2.0 OR BSD-2-Clause'
    """
    licenses: dict[str, str] = {}
    queue = [(name, frozenset[str]())]
    while queue:
        package, extras = queue.pop()
        if package not in licenses or extras:
            licenses[package] = license_of(metadata.metadata(package))
            queue += [need for need in _needs(package, extras) if need[0] not in licenses]
    return dict(sorted(licenses.items()))


def license_of(package: "metadata.PackageMetadata") -> str:
    """Return the license in a package's metadata, from the most exact statement."""
    if "License-Expression" in package:
        return str(package["License-Expression"])
    names = [
        line.rpartition(" :: ")[2]
        for line in package.get_all("Classifier") or ()
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    if not names:
        names = package.get("License", "").strip().split("\n")[:1]
    return " AND ".join(_SPDX.get(name.lower(), name) for name in names)


def allowed(text: str) -> bool:
    """Return whether all parts of a license, or of one of its choices, are allowed.

    >>> allowed("MIT"), allowed("BSD-3-Clause AND Zlib"), allowed("GPL-3.0-only OR MIT")
    (True, True, True)
    >>> allowed("MIT AND GPL-3.0-only"), allowed("")
    (False, False)
    """
    choices = re.split(r"\s+OR\s+", text.replace("(", " ").replace(")", " "))
    parts = [[part.strip() for part in re.split(r"\s+AND\s+", choice)] for choice in choices]
    return any(all(part in ALLOWED for part in choice) for choice in parts)


def _needs(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in metadata.requires(name) or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": e}) for e in {"", *extras}):
            yield need.name.lower().replace("_", "-"), frozenset(need.extras)


def main() -> int:
    """Print the table and return the exit code."""
    licenses = installed_with("resolvent")
    width = max(map(len, licenses))
    for name, text in licenses.items():
        mark = "" if allowed(text) else "   <- not allowed by packaging/licenses.py"
        print(f"{name:<{width}}  {text or 'no license'}{mark}")
    return 0 if all(map(allowed, licenses.values())) else 1


if __name__ == "__main__":
    sys.exit(main())
