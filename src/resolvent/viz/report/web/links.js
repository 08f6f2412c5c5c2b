// A step has an address, #trace-335-step-4, by the numbers that traces and steps have everywhere.
const address = (trace, step) => `#trace-${trace}-step-${step}`;

function placeOf(hash) {
  const [, trace, step] = /^#trace-(\d+)-step-(\d+)$/.exec(hash) ?? [];
  const place = data.player.traces.findIndex(({ number, first, steps }) =>
    number === Number(trace) && first <= step && step < first + steps.length);
  return place < 0 ? null : { place, step: step - data.player.traces[place].first };
}

function stepLink(trace, step, words) {
  const hash = address(trace, step);
  if (!placeOf(hash)) return words;
  const link = make("a", "", words);
  link.href = hash;
  link.addEventListener("click", () => follow(hash));
  return link;
}

function follow(hash) {
  const found = placeOf(hash);
  if (!found) return;
  byId("trace").value = found.place;
  showTrace(found.place, found.step);
  byId("moment").scrollIntoView({ block: "nearest" });
}

function setUpLinks() {
  window.addEventListener("hashchange", () => follow(location.hash));
  follow(location.hash);
}
