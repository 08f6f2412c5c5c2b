"""The page as people read it: by light and dark, by keyboard, on a phone, on paper."""

import pytest

# Each piece of text with its colour and every ground below it, from the nearest on.
TEXTS = """() => {
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, script, style")) continue;
    if (element.closest("[aria-disabled=true]")) continue;
    const grounds = [];
    let opacity = 1;
    for (let one = element; one; one = one.parentElement) {
      opacity *= Number(getComputedStyle(one).opacity);
      grounds.push(getComputedStyle(one).backgroundColor);
    }
    found.push({ words: element.textContent.slice(0, 40), colour: getComputedStyle(element).color,
      opacity, grounds });
  }
  return found;
}"""

LIT = """() => ["transition", "reward"].flatMap((kind) => {
  const state = document.querySelector(`#${kind} .rs-state.lit`);
  const box = getComputedStyle(state.querySelector("rect"));
  return [...state.querySelectorAll("text")].map((one) =>
    [getComputedStyle(one).fill, box.fill, box.stroke]);
})"""


def parts(colour):
    """The red, green and blue of a computed colour, and how much it covers."""
    numbers = colour[colour.index("(") + 1 : -1].replace("/", ",").split(",")
    red, green, blue, *alpha = map(float, numbers)
    return (red, green, blue), alpha[0] if alpha else 1.0


def over(colour, ground):
    """What is seen of a colour, perhaps with an alpha, on a ground without."""
    shade, alpha = colour
    return tuple(
        alpha * one + (1 - alpha) * other for one, other in zip(shade, ground, strict=True)
    )


def luminance(shade):
    """WCAG 2.2, "relative luminance"."""
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4
        for one in (part / 255 for part in shade)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_on_white():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((118, 118, 118), (255, 255, 255)) == pytest.approx(4.54, abs=0.01)


def ground_of(grounds):
    shade = (255.0, 255.0, 255.0)
    for ground in reversed(grounds):
        shade = over(parts(ground), shade)
    return shade


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("report", ["wrong", "lamp", "grid"])
def test_every_text_stands_out(report, scheme, opened, request):
    made = request.getfixturevalue(report)
    page = opened(made[0] if report == "grid" else made, color_scheme=scheme)
    texts = page.evaluate(TEXTS)
    assert len(texts) > 100
    for text in texts:
        ground = ground_of(text["grounds"])
        shade, alpha = parts(text["colour"])
        found = contrast(over((shade, alpha * text["opacity"]), ground), ground)
        assert found >= 4.5, (text["words"], text["colour"], ground)
    body = ground_of(texts[0]["grounds"])
    assert (luminance(body) < 0.05) == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_lit_state_stands_out(house, opened, scheme):
    page = opened(house[0], color_scheme=scheme)
    page.locator("#transition").scroll_into_view_if_needed()
    plain = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    for text, fill, stroke in page.evaluate(LIT):
        assert contrast(parts(text)[0], parts(fill)[0]) >= 4.5
        assert contrast(parts(stroke)[0], parts(plain)[0]) >= 3  # WCAG: graphical objects


def test_tab_reaches_every_control_and_shows_where_it_is(house, opened):
    page = opened(house[0])
    met = []
    for _ in range(20):
        page.keyboard.press("Tab")
        name, width, style = page.evaluate(
            "() => { const one = document.activeElement, look = getComputedStyle(one);"
            " return [one.id || one.hash || one.ariaLabel, look.outlineWidth, look.outlineStyle]; }"
        )
        assert (style, float(width.removesuffix("px")) >= 2) == ("solid", True), name
        met.append(name)
    assert met[:4] == ["#summary", "#replay", "#states", "#evidence"]
    start = met.index("trace")
    assert met[start : start + 9] == [
        *("trace", "first", "back", "forward", "last", "play", "speed", "position", "where")
    ]
    assert "Drawing of the Transition Machine" in met


@pytest.mark.parametrize(("report", "width"), [("house", 320), ("wrong", 390), ("grid", 390)])
def test_a_phone_need_not_scroll_sideways(report, width, opened, request):
    made = request.getfixturevalue(report)
    window = {"width": width, "height": 844}
    page = opened(made if report == "wrong" else made[0], viewport=window)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.locator("#transition").scroll_into_view_if_needed()
    for button in page.locator(".buttons button:visible").all():
        box = button.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.click("#last")
    assert page.locator("#transition .rs-state.lit").count() == 1


def test_the_controls_stay_in_view(grid, opened):
    page = opened(grid[0])
    page.locator("#map .cell.lit").scroll_into_view_if_needed()
    page.mouse.wheel(0, 300)
    header, controls = (page.locator(one).bounding_box() for one in ("header", ".controls"))
    assert header["y"] == 0
    assert controls["y"] >= header["height"] - 1
    assert controls["y"] < 100


def test_paper_cuts_nothing_off(grid, opened):
    page = opened(grid[0], viewport={"width": 760, "height": 1000})
    page.emulate_media(media="print")
    cut = page.evaluate(
        """() => [...document.querySelectorAll(".scroll, .drawing")].filter((box) =>
          getComputedStyle(box).overflowY !== "visible" ||
          box.getBoundingClientRect().right > innerWidth).map((box) => box.ariaLabel)"""
    )
    assert cut == []
    picture, box = (
        page.locator(f"#transition {one}").bounding_box() for one in ("svg", ".drawing")
    )
    assert picture["width"] <= box["width"]
    assert page.locator("#forward").is_hidden()
    assert page.locator("#steps tr.step:visible").count() == 40
    assert len(page.pdf()) > 10_000


def test_what_took_no_part_in_the_search_is_listed_by_name(house, opened):
    page = opened(house[0])
    listed = page.locator("#found details", has_text="Transition Machine: outputs that are")
    assert "(19)" in listed.locator("summary").inner_text()
    assert not listed.locator("table").is_visible()
    listed.locator("summary").click()
    assert "(corridor, left)" in listed.locator("table").inner_text()
