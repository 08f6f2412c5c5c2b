"""The text of certificates, worked out by hand."""

import pytest

from resolvent.inference.exact.certificate import MinimalityProof


@pytest.mark.parametrize(
    ("certificate", "line"),
    [
        (MinimalityProof(7, 7, unique=True), "7 states, proven minimal: 6 are impossible; unique"),
        (MinimalityProof(2, 2, unique=True), "2 states, proven minimal: 1 is impossible; unique"),
        (MinimalityProof(1, 1, unique=True), "1 state, proven minimal; unique"),
        (
            MinimalityProof(3, 3, unique=False),
            "3 states, proven minimal: 2 are impossible; "
            "not unique: another machine of the same size fits as well",
        ),
        (
            MinimalityProof(3, 3),
            "3 states, proven minimal: 2 are impossible; whether it is unique is not decided",
        ),
        (MinimalityProof(9, 6), "at most 9 states, at least 6: not proven (time ran out)"),
    ],
)
def test_text_of_a_certificate(certificate, line):
    assert str(certificate) == line
    assert certificate.proven is ("proven minimal" in line)
