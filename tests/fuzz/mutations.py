"""Ways to damage bytes, texts and JSON, all drawn from one source of chance."""

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (
    0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 1000, 32767, 65536, 10**6, 10**7, 2**31 - 1, 2**31,
    -(2**31), 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64, 10**19, 10**40, 10**400,
    0.5, -0.0, 1e-320, 1e16, 1e300, 1.7976931348623157e308, -1e308, 0.1 + 0.2,
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "\t", "\0", "None", "null", "true", "NaN", "Infinity", "-1", "1e999", "0x10",
    "é", "e\u0301", "ß", "\u202e", "\ufeff", "\u2028", "\x1b[31m", "😀", "\U0010ffff", "ا",
    "<script>", "a,b", 'a"b', "a'b", "a&b", "!a", "a|b", "(", ")", "[]", "{}", "\\", "\\u0000",
    "../..", "/", "%00", "%s", "{0}", "$", "__class__", "observation", "reward", "label",
    "transition", "terminated", "١٢", "²", "q_1", "(1, 2)", "9" * 400, "a" * 1000,
)  # fmt: skip
TOKENS = (
    b"[", b"]", b"{", b"}", b",", b":", b'"', b"null", b"true", b"false", b"NaN", b"Infinity",
    b"-Infinity", b"1e999", b"-0", b"0.0", b"1" * 400, b'"\\ud800"', b"\\u0000", b"\n", b"\r",
    b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b" " * 50, b"#", b"'", b";", b"\t",
    b"[" * 300, b'{"a":' * 300, b"(" * 300, b"!" * 300,
)  # fmt: skip
_WORD = re.compile(rb"\w+|[^\w\s]")


def damaged(draw: Random, data: bytes) -> bytes:
    """Return bytes with one to four places changed."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice(_WAYS)(draw, data)
    return data


def _flip(draw: Random, data: bytes) -> bytes:
    if not data:
        return data
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :]


def _byte(draw: Random, data: bytes) -> bytes:
    place = draw.randint(0, len(data))
    return data[:place] + draw.randbytes(draw.randint(1, 4)) + data[place + draw.randint(0, 4) :]


def _cut(draw: Random, data: bytes) -> bytes:
    return data[: draw.randint(0, len(data))]


def _drop(draw: Random, data: bytes) -> bytes:
    start = draw.randint(0, len(data))
    return data[:start] + data[start + draw.choice((1, 2, 5, 50)) :]


def _repeat(draw: Random, data: bytes) -> bytes:
    start = draw.randint(0, len(data))
    part = data[start : start + draw.choice((1, 5, 50, 500))]
    return data[:start] + part * draw.choice((2, 3, 20)) + data[start:]


def _swap(draw: Random, data: bytes) -> bytes:
    a, b, c = sorted(draw.randint(0, len(data)) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _token(draw: Random, data: bytes) -> bytes:
    place = draw.randint(0, len(data))
    return data[:place] + draw.choice(TOKENS) + data[place:]


def _word(draw: Random, data: bytes) -> bytes:
    """Put a token, a number or another word of the same bytes in a word's place."""
    words = list(_WORD.finditer(data[:20_000]))
    if not words:
        return data + draw.choice(TOKENS)
    one, other = draw.choice(words), draw.choice(words)
    new = draw.choice((other.group(), draw.choice(TOKENS), str(draw.choice(NUMBERS)).encode(), b""))
    return data[: one.start()] + new + data[one.end() :]


_WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _flip, _byte, _cut, _drop, _repeat, _swap, _token, _word, _word,
)  # fmt: skip


def odd_value(draw: Random, depth: int = 0) -> Any:
    """Return any JSON value, mostly an odd one."""
    kind = draw.randrange(10)
    if kind < 4:
        return draw.choice(NUMBERS)
    if kind < 7:
        return draw.choice(TEXTS)
    if kind == 7:
        return draw.choice((None, True, False))
    if depth > 2 or kind == 8:
        return draw.choice(([], {}, [[]], [None], {"a": []}, _nested(draw)))
    if draw.random() < 0.5:
        return [odd_value(draw, depth + 1) for _ in range(draw.randint(1, 3))]
    return {draw.choice(TEXTS): odd_value(draw, depth + 1) for _ in range(draw.randint(1, 3))}


def _nested(draw: Random) -> Any:
    value: Any = draw.choice((0, "a", None))
    for _ in range(draw.choice((5, 60, 400, 2000))):
        value = [value]
    return value


def damaged_json(draw: Random, value: Any) -> Any:
    """Return a JSON value with one to three places changed; the value given stays as it is."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        value = _changed(draw, value)
    return value


def _changed(draw: Random, value: Any) -> Any:
    """Walk down a random path, and change what is there; only lists on the way are copied."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        key = draw.choice(list(value))
        way = draw.randrange(12)
        if way == 0:
            return {name: one for name, one in value.items() if name != key}
        if way == 1:
            return value | {draw.choice(TEXTS): value[key]}
        if way == 2:
            return {
                (draw.choice(TEXTS) if name == key else name): one for name, one in value.items()
            }
        return value | {key: _changed(draw, value[key])}
    if isinstance(value, (list, tuple)) and value and draw.random() < 0.85:
        place = draw.randrange(len(value))
        before, here, after = list(value[:place]), value[place], list(value[place + 1 :])
        way = draw.randrange(12)
        if way == 0:
            return before + after
        if way == 1:
            return before + [here] * draw.choice((2, 3, 30)) + after
        if way == 2:
            return [*after, here, *before]
        if way == 3:
            return before
        return [*before, _changed(draw, here), *after]
    return _other(draw, value)


def _other(draw: Random, value: Any) -> Any:
    if isinstance(value, int) and draw.random() < 0.7:
        return value + draw.choice((-1, 1, -1, 1, 2, -value, 10**9))
    if isinstance(value, str) and draw.random() < 0.4:
        place = draw.randint(0, len(value))
        return value[:place] + draw.choice(TEXTS) + value[place:]
    if draw.random() < 0.2:
        return [value]
    return odd_value(draw)


def tweaked_json(draw: Random, value: Any) -> Any:
    """Return a JSON value in which one number or text is another one of its kind.

    Most of these pass the first checks, so that what is behind them is tried, too.
    """
    if isinstance(value, dict) and value:
        key = draw.choice(list(value))
        return value | {key: tweaked_json(draw, value[key])}
    if isinstance(value, list) and value:
        place = draw.randrange(len(value))
        return [*value[:place], tweaked_json(draw, value[place]), *value[place + 1 :]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice((value + 1, value - 1, 0, 1, 2, 3))
    if isinstance(value, float):
        return draw.choice((0.0, 1.0, -value, value * 2, 1e308, 1e-300))
    if isinstance(value, str):
        return draw.choice(TEXTS)
    return draw.choice((value, None, 0, []))


def json_bytes(draw: Random, value: Any) -> bytes:
    """Write a JSON value in one of the ways that software writes it, not all of them valid."""
    ascii_only = draw.random() < 0.7
    separators = draw.choice(((",", ":"), (", ", ": ")))
    try:
        text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    except RecursionError:
        return b"[" * 3000 + b"]" * 3000
    return text.encode("utf-8", "surrogatepass")


def damaged_document(draw: Random, value: Any) -> bytes:
    """Return a JSON document that is damaged in its structure, its bytes, or both."""
    if draw.random() < 0.65:
        data = json_bytes(draw, damaged_json(draw, value))
        return damaged(draw, data) if draw.random() < 0.1 else data
    return damaged(draw, json_bytes(draw, value))
