from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvent.diagnosis.tallies import tallied

LARGE = 2**61  # times four answers there would be no room in 64 bits


@pytest.mark.parametrize("scale", [1, LARGE // 5])
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1))
def test_a_tally_counts_as_a_counter_does(rows, scale):
    questions = [question * scale for question, _ in rows]
    answers = [answer for _, answer in rows]
    tally = tallied(np.array(questions, np.int64), np.array(answers, np.int32), 4)
    told = zip(tally.question.tolist(), tally.answer.tolist(), tally.count.tolist(), strict=True)
    counter = Counter(zip(questions, answers, strict=True))
    assert [*told] == sorted((*row, count) for row, count in counter.items())
    asked = Counter(questions)
    most = {one: max(n for (q, _), n in counter.items() if q == one) for one in asked}
    assert tally.asked.tolist() == [asked[one] for one in sorted(asked)]
    assert tally.differing.tolist() == [asked[one] - most[one] for one in sorted(asked)]
    assert tally.repeated == sum(number for number in asked.values() if number > 1)
    assert tally.contradicted.tolist() == [one for one in sorted(asked) if asked[one] > most[one]]
    question, answered = tally.worst()
    assert asked[question] - most[question] == max(asked[one] - most[one] for one in asked)
    assert sum(count for _, count in answered) == asked[question]
    assert answered[0][1] == most[question]
