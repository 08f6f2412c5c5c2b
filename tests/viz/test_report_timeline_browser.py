"""The timeline of merges in a real browser."""

from dataclasses import replace

import resolvent as rs
from resolvent.viz.report.machine import MOST_COLUMNS, MOST_ROWS
from synthetic_pair import synthetic


def texts(page, selector):
    return page.eval_on_selector_all(selector, "all => all.map(one => one.textContent)")


def test_each_decision_of_the_house_is_drawn(house, opened):
    path, _, pair = house
    page = opened(path)
    for place, machine in enumerate((pair.transition, pair.reward)):
        chart = page.locator("#found .timeline").nth(place)
        new = [one.target for one in machine.decisions if one.new]
        assert chart.locator(".column").count() == len(machine.decisions)
        assert chart.locator(".name").all_text_contents() == list(map(str, new))
        assert chart.locator(".dot").count() == len(new)
        bars = chart.locator(".column .least")
        heights = [float(bars.nth(at).get_attribute("height")) for at in range(bars.count())]
        agreeing = [one.agreeing for one in machine.decisions if not one.new]
        by_height = sorted(range(len(heights)), key=heights.__getitem__)
        assert [agreeing[at] for at in by_height] == sorted(agreeing)


def test_keys_move_along_the_timeline_and_not_the_player(house, opened):
    path, _, pair = house
    page = opened(path)
    before = page.locator("#where").inner_text()
    chart = page.locator("#found .timeline").first
    chart.focus()
    readout = page.locator("#found .readout").first
    last = len(pair.transition.decisions)
    for key, number in (("Home", 1), ("ArrowRight", 2), ("End", last), ("ArrowRight", last)):
        page.keyboard.press(key)
        assert readout.inner_text().startswith(f"Decision {number}: ")
        assert chart.get_attribute("aria-valuenow") == str(number)
        assert chart.get_attribute("aria-valuetext") == readout.inner_text()
    page.keyboard.press("ArrowLeft")
    assert chart.get_attribute("aria-valuenow") == str(last - 1)
    assert chart.locator(".chosen").count() == 1
    assert page.locator("#where").inner_text() == before
    page.locator("#found details").first.locator("summary").click()
    current = page.locator("#found details").first.locator("tr.current td").first
    assert current.inner_text() == str(last - 1)


def test_the_pointer_tells_a_decision(house, opened):
    path, _, _ = house
    page = opened(path)
    page.locator("#found .timeline .column").nth(3).hover()
    title = page.locator("#found .timeline .column title").nth(3).text_content()
    assert title.startswith("Decision 4: ")
    assert page.locator("#found .readout").first.inner_text() == title


def test_many_decisions_are_few_columns_and_it_says_so(opened, tmp_path):
    _, traces = synthetic(80, 1500, 40)
    result = rs.infer(traces)
    total = len(result.machines.transition.decisions)
    assert total > MOST_COLUMNS
    pair = result.machines
    rs.report(pair, traces, tmp_path / "many.html")
    page = opened(tmp_path / "many.html")
    chart = page.locator("#found .timeline").first
    assert chart.locator(".column").count() == MOST_COLUMNS
    data = page.locator("#found").inner_text()
    assert f"Each column stands for up to 2 of {total} decisions" in data
    assert page.locator("#found details").first.locator("tbody tr").count() == min(total, MOST_ROWS)
    assert chart.bounding_box()["width"] <= page.locator("#found").bounding_box()["width"]


def test_without_a_log_there_is_a_sentence_and_no_chart(house, opened, tmp_path):
    _, traces, pair = house
    bare = pair.replacing(*(replace(one, decisions=None) for one in pair.values()))
    rs.report(bare, traces, tmp_path / "old.html")
    page = opened(tmp_path / "old.html")
    assert "No merges are recorded" in page.locator("#found").inner_text()
    assert page.locator("#found svg, #found .timeline").count() == 0


def test_without_decisions_there_is_no_chart(opened, tmp_path):
    traces = rs.TraceSet([rs.Trace(["a", "b"], [None, None], ["go"], [0])])
    rs.infer(traces).report(tmp_path / "still.html")
    page = opened(tmp_path / "still.html")
    assert page.locator("#found svg").count() == 0
    assert "no decision was needed" in page.locator("#found").inner_text()


def test_hostile_labels_do_nothing(opened, tmp_path):
    evil = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>"
    trace = rs.Trace(["a", "b", "a"], [None, evil, evil], ["go", "go"], [0, 1])
    rs.infer(rs.TraceSet([trace])).report(tmp_path / "evil.html")
    page = opened(tmp_path / "evil.html")
    assert page.locator("img").count() == 0
    assert evil in page.locator("#found .readout").first.inner_text()
    assert all(evil in title for title in texts(page, "#found title"))
