"""The site builds without a warning, and asks nobody for anything."""

import os
import re
import subprocess
import sys

import pytest

from pages import ROOT

pytest.importorskip("mkdocs", reason="the documentation group is not installed")
pytest.importorskip("material", reason="the documentation group is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    done = subprocess.run(
        [*command, "--config-file", ROOT / "mkdocs.yml"],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


def test_pages_fetch_nothing(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|link|iframe|source)\b[^>]*", text)
        assert [tag for tag in fetched if re.search(r"""(src|href)=["']?(https?:)?//""", tag)] == []
        assert 'class="mermaid"' not in text  # for these the theme would fetch a script
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text(encoding="utf-8"))


def test_examples_in_docstrings_are_code_and_not_quotations(site):
    for page in (site / "reference").glob("*.html"):
        assert "<blockquote>" not in page.read_text(encoding="utf-8"), page.name


def test_no_page_shows_the_doctest_mark_of_an_empty_line(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "&lt;BLANKLINE&gt;" not in text or page.name == "structure.html", page


def test_the_site_has_schemas_and_no_sources(site):
    assert (site / "formats" / "machines.schema.json").exists()
    assert list(site.rglob("*.py")) == []
