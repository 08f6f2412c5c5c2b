"""What a report says + drawings of the machines → the text of one HTML page.

Data stands in the page as JSON that no browser takes for markup, and its script
only ever sets text. A content policy by hashes lets nothing else run or load.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from resolvent.errors import ResolventError
from resolvent.machines import Machine, to_svg, to_text
from resolvent.machines.picture.style import SCREEN_STYLE

_SCRIPTS = (
    *("elements", "links", "summary", "drawings", "player", "playing", "map"),
    *("states", "evidence", "reductions", "timeline", "learning", "start"),
)
_INERT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def page(title: str, contents: Mapping[str, Any], machines: Iterable[Machine]) -> str:
    """Write the page, with a drawing of each of the machines that `contents` tells of."""
    style = _part("page.css")
    script = "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    parts = {
        "policy": content_policy(script, (style, SCREEN_STYLE), bool(contents.get("pictures"))),
        "title": escape(title),
        "style": style,
        "script": script,
        "data": inert_json(contents),
        "drawings": "".join(
            _filled(
                "figure.html",
                {
                    "element": about["element"],
                    "name": escape(about["name"]),
                    "drawing": drawing(machine),
                },
            )
            for about, machine in zip(contents["machines"], machines, strict=True)
        ),
    }
    return _filled("page.html", parts)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    first, *others = _part(template).split("{{")
    # Each part is put in once, so that nothing in one is taken for the name of another.
    pieces = (piece.split("}}", 1) for piece in others)
    return first + "".join(parts[name] + rest for name, rest in pieces)


def drawing(machine: Machine) -> str:
    """Draw a machine, or write it as text where nothing can draw."""
    try:
        return to_svg(machine)
    except ResolventError as error:
        return f"<p class='note'>{escape(str(error))}</p><pre>{escape(to_text(machine))}</pre>"


def inert_json(value: Any) -> str:
    r"""Write JSON that can stand in a script element: no text in it can end that.

    >>> inert_json(["</script>", "\u2028"])
    '["\\u003c/script\\u003e","\\u2028"]'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # ASCII: no U+2028 in it
    for character, escaped in _INERT.items():
        text = text.replace(character, escaped)
    return text


def content_policy(script: str, styles: tuple[str, ...], pictures: bool) -> str:
    """Allow this script, these style sheets and pictures that the page holds, and nothing else."""
    allowed = " ".join(map(_hash, styles))
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {allowed}; "
        f"{'img-src data:; ' * pictures}base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return files(__package__).joinpath("web", name).read_text(encoding="utf-8")
