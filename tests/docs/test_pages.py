"""The pages hang together: all are in the navigation, links lead somewhere, tables are true."""

import re
import runpy

import gymnasium as gym
import pytest

import resolvent as rs
from pages import DOCS, PAGES, ROOT, blocks, missing_packages, run_script
from resolvent.registration import WORLDS

CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
IN_DOCS = [page for page in PAGES if page.startswith("docs/")]


def prose(page):
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """What MkDocs calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {
        re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
        for heading in headings
    }


def test_every_page_is_in_the_navigation_once():
    navigation = CONFIGURATION.partition("\nnav:\n")[2]
    listed = re.findall(r"[\w/-]+\.md$", navigation, re.MULTILINE)
    assert sorted(f"docs/{page}" for page in listed) == sorted(IN_DOCS)


@pytest.mark.parametrize("page", PAGES)
def test_links_have_targets(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        assert not target.startswith(("http:", "https:", "/")), target
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(str(file.resolve().relative_to(ROOT))), target


def test_every_decision_is_listed():
    pages = {path.name for path in (DOCS / "decisions").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", PAGES["docs/decisions/README.md"])) == pages


def test_every_public_name_is_in_the_reference():
    directives = [
        name
        for page in IN_DOCS
        for name in re.findall(r"^<!-- resolvent\.(.*) -->$", PAGES[page], re.MULTILINE)
    ]
    assert len(directives) == len(set(directives))
    assert set(rs.__all__) <= set(directives)
    for package in (rs.errors, rs.wrappers, rs.config):
        name = package.__name__.rpartition(".")[2]
        public = getattr(package, "__all__", [n for n in vars(package) if _is_error(package, n)])
        public = [n for n in public if n != "StepLocation"]  # the type of a field, described there
        documented = {directive.rpartition(".")[2] for directive in directives}
        assert set(public) <= documented, f"{name}: {set(public) - documented}"


def _is_error(module, name):
    value = getattr(module, name)
    return isinstance(value, type) and value.__module__ == module.__name__ and name[0] != "_"


def test_the_table_of_environments_is_correct():
    rows = dict(
        re.findall(
            r"^\| `(resolvent/\w+-v0)` \| (\d+, \d) \|",
            PAGES["docs/reference/environments.md"],
            re.M,
        )
    )
    truth = {}
    for name in WORLDS:
        machines = gym.make(f"resolvent/{name}-v0").unwrapped.machines()
        truth[f"resolvent/{name}-v0"] = f"{machines.transition.states}, {machines.reward.states}"
    assert rows == truth


def test_generated_pages_are_up_to_date():
    written = runpy.run_path(str(DOCS / "generate.py"))["written"]()
    for path, text in written.items():
        assert path.read_text(encoding="utf-8") == text, "run `python docs/generate.py`"


def scripts():
    """Blocks of Python that are no doctests, nor fragments that tests/test_foreign.py runs."""
    for page in (one for one in PAGES if not str(one).endswith(("foreign.md", "foreign-noise.md"))):
        for number, block in enumerate(blocks(page, "python")):
            if ">>>" not in block:
                yield pytest.param(block, id=f"{page}-{number}")


@pytest.mark.parametrize("script", list(scripts()))
def test_scripts_run_where_their_packages_are_installed(script, tmp_path):
    missing = missing_packages(script)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    path = tmp_path / "script.py"
    path.write_text(script, encoding="utf-8")
    done = run_script(path, tmp_path)
    assert done.returncode == 0, done.stderr
