import numpy as np
import pytest

from resolvent.machines.tables import is_member, look_up, positions


@pytest.mark.parametrize("dense", [0, 1 << 24])
def test_keys_are_found_by_table_and_by_search(monkeypatch, dense):
    monkeypatch.setattr("resolvent.machines.tables.MAX_TABLE_SIZE", dense)
    keys, wanted = np.array([2, 5, 9]), np.array([9, 3, 2, -1, 10, 5])
    assert look_up(keys, np.array([7, 0, 4], np.int32), wanted).tolist() == [4, -1, 7, -1, -1, 0]
    assert is_member(keys, wanted).tolist() == [True, False, True, False, False, True]
    assert positions(keys, wanted).tolist() == [2, -1, 0, -1, -1, 1]


def test_nothing_is_found_where_there_is_nothing():
    assert positions(np.array([], np.int64), np.array([0, -1])).tolist() == [-1, -1]
