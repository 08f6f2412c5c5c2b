"""A MkDocs hook: where doctest needs a word for an empty line, readers see the empty line."""

import re
from typing import Any

_LAST = re.compile(r"^<BLANKLINE>\n(?=\n?```$)", re.MULTILINE)


def on_page_markdown(markdown: str, **more: Any) -> str:
    """Return a page as it is shown."""
    return shown(markdown)


def shown(text: str) -> str:
    r"""Write doctest's empty lines as empty lines, and leave them out at the end of a block.

    >>> shown("one\n<BLANKLINE>\ntwo\n<BLANKLINE>\n\n```\n")
    'one\n\ntwo\n\n```\n'
    """
    return re.sub(r"^<BLANKLINE>$", "", _LAST.sub("", text), flags=re.MULTILINE)
