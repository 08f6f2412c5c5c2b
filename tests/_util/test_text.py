"""Numbers and texts in words."""

import pytest

from resolvent._util.text import amount, odds_text, percent, short, visible


def test_amounts():
    assert (amount(1, "trace"), amount(18239, "step")) == ("1 trace", "18,239 steps")


@pytest.mark.parametrize(
    ("share", "text"), [(0.951, "95%"), (0.999, ">99%"), (1, "100%"), (0.001, "<1%"), (0, "0%")]
)
def test_only_1_is_written_as_100_percent(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("log_odds", "text"),
    [
        (-27.6, "10⁻¹² as likely"),
        (-1.2, "0.3 times as likely"),
        (0.5, "1.6 times as likely"),
        (1000, "10⁴³⁴ times as likely"),
    ],
)
def test_odds(log_odds, text):
    assert odds_text(log_odds) == text


def test_invisible_characters_are_escaped():
    assert (visible("key"), visible("two\nlines")) == ("key", "two\\nlines")
    assert visible("\u202eyek") == "\\u202eyek"


def test_long_texts_lose_their_middle():
    assert (short("corridor"), short("a" * 20, 7)) == ("corridor", "aaa…aaa")
