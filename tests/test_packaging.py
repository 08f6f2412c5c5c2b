"""The parts of a release agree: versions, licenses, dependencies, names of files."""

import re
import sys
import tomllib
from email.message import Message

import pytest

from pages import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
from licenses import allowed, installed_with, license_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.M)[1] == PROJECT["version"]
    assert re.search(r'version: "(.*)"', CONDA)[1] == PROJECT["version"]
    assert re.search(r"^## (\S+)", changelog, re.M)[1] == PROJECT["version"]


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/**/*.yml")), ids=lambda path: path.name)
def test_github_files_are_valid_yaml(path):
    yaml = pytest.importorskip("yaml")
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_conda_and_pip_have_the_same_requirements():
    run = CONDA.partition("  run:\n")[2].partition("\n\n")[0]
    asked = [line.strip().removeprefix("- ").replace(" ", "") for line in run.split("\n")]
    assert asked[1:] == PROJECT["dependencies"]


def test_licenses_of_bundled_libraries_are_included():
    assert PROJECT["license-files"] == ["LICENSE", "THIRD_PARTY_LICENSES"]
    text = (ROOT / "THIRD_PARTY_LICENSES").read_text(encoding="utf-8")
    for owner in ("Wenzel Jakob", "Thibaut Goetghebuer-Planchon"):
        assert f"{owner} <" in text
    assert "Redistributions in binary form must reproduce" in text
    assert "The above copyright notice and this permission notice shall be included" in text


def test_licenses_of_dependencies_are_permissive():
    found = installed_with("resolvent")
    assert {"numpy", "gymnasium", "cloudpickle"} <= found.keys()  # the last one by the second
    assert [name for name, text in found.items() if not allowed(text)] == []


@pytest.mark.parametrize(
    ("lines", "expected", "fine"),
    [
        ([("License-Expression", "MIT"), ("License", "GPL")], "MIT", True),
        ([("Classifier", "License :: OSI Approved :: MIT License")], "MIT", True),
        (
            [
                ("Classifier", "License :: OSI Approved :: MIT License"),
                ("Classifier", "License :: OSI Approved :: GNU General Public License (GPL)"),
            ],
            "MIT AND GNU General Public License (GPL)",
            False,
        ),
        ([("License", "Apache License 2.0\n\n long text")], "Apache-2.0", True),
        ([("Classifier", "License :: OSI Approved"), ("License", "ISC")], "ISC", True),
        ([], "", False),
    ],
)
def test_licenses_are_read_from_metadata(lines, expected, fine):
    about = Message()
    for name, text in lines:
        about[name] = text
    assert license_of(about) == expected
    assert allowed(expected) is fine


@pytest.mark.parametrize("script", ["packaging/oldest.sh", "tests/sanitize.sh"])
def test_tests_that_scripts_name_exist(script):
    text = (ROOT / script).read_text(encoding="utf-8")
    named = set(re.findall(r"tests/[\w/]+(?:\.\w+)?", text)) - {"tests/"}
    assert len(named) > 8
    assert [path for path in named if not (ROOT / path).exists()] == []
