// The drawings follow the player, and lead to the table of states.
const LEAST_SCALE = 0.65;

function stateText(state) {
  return state < 0 ? "unknown state" : `state ${state}`;
}

function light(element, before, now) {
  const figure = byId(element);
  for (const one of figure.querySelectorAll(".lit")) one.classList.remove("lit");
  if (now >= 0) {
    figure.querySelector(`.rs-state[data-state="${now}"]`)?.classList.add("lit");
  }
  if (before >= 0 && before !== now) {
    figure.querySelector(`.rs-arrow[data-from="${before}"][data-to="${now}"]`)?.classList.add("lit");
  }
  const state = figure.querySelector(".rs-state.lit");
  if (state) bringIntoView(figure.querySelector(".drawing"), state);
  const drawn = now < 0 || state || !figure.querySelector("svg");
  const link = figure.querySelector(".now");
  link.textContent = `${stateText(now)}${drawn ? "" : ", not drawn"}`;
  if (now >= 0) link.href = `#${element}-state-${now}`;
  else link.removeAttribute("href");
}

function bringIntoView(box, element) {
  const frame = box.getBoundingClientRect(), place = element.getBoundingClientRect();
  if (place.top < frame.top || place.bottom > frame.bottom) {
    box.scrollTop += (place.top + place.bottom - frame.top - frame.bottom) / 2;
  }
  if (place.left < frame.left || place.right > frame.right) {
    box.scrollLeft += (place.left + place.right - frame.left - frame.right) / 2;
  }
}

// A wide drawing gets the whole width, and shrinks a little before it has to be scrolled.
function setUpDrawings() {
  for (const { element } of data.machines) {
    const figure = byId(element), picture = figure.querySelector("svg");
    if (!picture) continue;
    const width = picture.width.baseVal.value;
    picture.style.width = `clamp(${Math.round(LEAST_SCALE * width)}px, 100%, ${width}px)`;
    figure.classList.toggle("wide", width > 560);
    picture.addEventListener("click", (event) => {
      const state = event.target.closest(".rs-state[data-state]");
      if (state) location.hash = `${element}-state-${state.dataset.state}`;
    });
  }
}
