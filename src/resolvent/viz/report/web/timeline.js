// The log of merges from left to right: a dot for each new state, a bar for each merge.
const TIME = { left: 56, right: 14, dots: 22, lane: 16, top: 50, ground: 170, height: 196, widest: 46 };

function timelineScale(columns) {
  const most = Math.max(...columns.map((one) => one.most ?? 0));
  const each = Math.min(TIME.widest, 1100 / columns.length);
  const up = (outputs) =>
    TIME.ground - (TIME.ground - TIME.top) * Math.log1p(outputs) / Math.log1p(Math.max(1, most));
  return { most, each, up, across: (place) => TIME.left + each * (place + 0.5),
    width: Math.max(240, TIME.left + each * columns.length + TIME.right) };
}

function timelineGrid({ most, up, width }) {
  const lines = [];
  for (let outputs = 1, last = TIME.ground; outputs <= most; outputs *= 10) {
    const y = up(outputs);
    if (last - y < 13) continue;
    last = y;
    lines.push(svg("line", { x1: TIME.left, x2: width - TIME.right, y1: y, y2: y, class: "rule" }),
      svg("text", { x: TIME.left - 7, y: y + 4, "text-anchor": "end" }, count(outputs)));
  }
  lines.push(svg("line", { x1: TIME.left, x2: width - TIME.right, y1: TIME.ground, y2: TIME.ground,
    class: "ground" }));
  return lines;
}

function timelineColumn(one, place, { each, up, across }) {
  const x = across(place), wide = Math.max(1.5, Math.min(18, each * 0.62)), left = x - wide / 2;
  const bar = (outputs, kind) => svg("rect", { x: left, width: wide, y: up(outputs),
    height: TIME.ground - up(outputs), class: kind });
  const group = svg("g", { class: "column" }, svg("title", {}, one.text),
    svg("rect", { x: x - each / 2, width: each, y: 0, height: TIME.height, class: "hit" }));
  if (one.new.length && each >= 10) {
    group.append(svg("line", { x1: x, x2: x, y1: TIME.dots, y2: TIME.ground, class: "stem" }));
  }
  if (one.merges && one.most > one.least) group.append(bar(one.most, "most"));
  if (one.merges && one.least) group.append(bar(one.least, "least"));
  if (one.merges && !one.least) {
    group.append(svg("rect", { x: left, width: wide, y: TIME.ground - 5, height: 5, class: "bare" }));
  }
  return group;
}

// A dot for each new state; where a column stands for several decisions, a mark as high as the
// share of them that found one. The number of the first stands where there is room for it.
function timelineDots(columns, { each, across }) {
  const marks = [];
  let taken = -Infinity;
  columns.forEach((one, place) => {
    if (!one.new.length) return;
    const x = across(place), decided = one.last - one.first + 1, large = each >= 24;
    const tall = Math.max(2, TIME.lane * one.new.length / decided), wide = Math.max(1.5, each * 0.62);
    marks.push(decided > 1
      ? svg("rect", { x: x - wide / 2, width: wide, y: TIME.dots + 12 - tall, height: tall, class: "dot small" })
      : svg("circle", { cx: x, cy: TIME.dots, r: large ? 11 : Math.min(4, each * 0.45 + 1),
        class: large ? "dot" : "dot small" }));
    const name = String(one.new[0]), half = 3.5 * name.length;
    if (!large && x - half < taken + 12) return;
    marks.push(svg("text", { x, y: TIME.dots + (large ? 4 : -10), class: "name" }, name));
    taken = x + half;
  });
  return svg("g", { "pointer-events": "none" }, ...marks);
}

// On narrow screens it scrolls rather than shrink beyond reading.
function timelinePicture({ columns, total }, drawn, scale) {
  const label = (x, anchor, words) =>
    svg("text", { x, y: TIME.height - 9, "text-anchor": anchor }, words);
  const picture = svg("svg", { width: scale.width, viewBox: `0 0 ${scale.width} ${TIME.height}`,
    "aria-hidden": "true" }, ...timelineGrid(scale), ...drawn, timelineDots(columns, scale),
  label(TIME.left, "start", "decision 1"),
  ...(total > 1 ? [label(scale.across(columns.length - 0.5), "end", count(total))] : []));
  picture.style.minWidth = `${Math.min(scale.width, 640)}px`;
  return picture;
}

function timelineChart(name, timeline, choose) {
  const { columns } = timeline, scale = timelineScale(columns);
  const drawn = columns.map((one, place) => timelineColumn(one, place, scale));
  const picture = timelinePicture(timeline, drawn, scale);
  const box = make("div", "timeline", picture);
  box.tabIndex = 0;
  const facts = { role: "slider", "aria-label": `Timeline of decisions: ${name}`,
    "aria-orientation": "horizontal", "aria-valuemin": 1, "aria-valuemax": columns.length };
  for (const [fact, value] of Object.entries(facts)) box.setAttribute(fact, value);
  let at = 0;
  const go = (place) => {
    drawn[at].classList.remove("chosen");
    at = Math.max(0, Math.min(columns.length - 1, place));
    drawn[at].classList.add("chosen");
    box.setAttribute("aria-valuenow", at + 1);
    box.setAttribute("aria-valuetext", columns[at].text);
    choose(columns[at]);
  };
  const targets = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => Infinity };
  box.addEventListener("keydown", (event) => {
    const target = targets[event.key];
    if (!target || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(target());
    box.scrollLeft = picture.clientWidth * (at + 0.5) / columns.length - box.clientWidth / 2;
  });
  drawn.forEach((column, place) => column.addEventListener("pointerenter", () => go(place)));
  go(0);
  return box;
}

function timelineKey({ bare, columns, total }) {
  const key = make("p", "note", "From the first decision to the last.",
    make("span", "key new"), "a new state", make("span", "key merge"),
    "a merge, its height the number of outputs that agree (logarithmic scale)");
  if (bare) key.append(make("span", "key bare"), "a merge without any output to compare");
  if (columns.length < total) {
    key.append(make("br"), `Each column stands for up to ${Math.ceil(total / columns.length)} of ` +
      `${plural(total, "decision")}: full color up to the fewest outputs that agree, pale up to the most; ` +
      "above them, the number of new states.");
  }
  return key;
}

function decisionTable(name, rows) {
  return scrolling(name, table(["", "decision", "outputs that agree", "tree nodes folded"],
    rows.map(([number, words, agreeing, folded]) => [count(number), words,
      agreeing === null ? "" : count(agreeing), folded === null ? "" : count(folded)]), [0, 2, 3]));
}

function showTimeline({ name, timeline }) {
  const section = byId("found");
  section.append(make("h3", "", name), make("p", "", timeline.summary));
  if (!timeline.total) return;
  const { rows, weakest, total, merges, constants } = timeline;
  const readout = make("p", "readout");
  const all = decisionTable(`Decisions: ${name}`, rows);
  const lines = all.querySelectorAll("tbody tr");
  const choose = ({ first, last, text }) => {
    readout.textContent = text;
    lines.forEach((line, place) => line.classList.toggle("current", place + 1 >= first && place < last));
    if (lines[first - 1]) all.scrollTop = lines[first - 1].offsetTop - 60;
  };
  const drawn = make("div", "", timelineChart(name, timeline, choose), readout);
  const beside = make("div", "beside", drawn);
  section.append(timelineKey(timeline), beside);
  if (merges) {
    beside.append(make("div", "", make("h4", "", "Merges with the least evidence"),
      make("p", "note", "If a merge is wrong, it is most likely one of these." +
        (weakest.length < merges ? ` The weakest ${weakest.length} of ${plural(merges, "merge")}.` : "") +
        (constants ? " Outputs that are the same in every state do not count." : "")),
      decisionTable(`Weakest merges: ${name}`, weakest)));
  }
  const words = rows.length < total ? `The first ${count(rows.length)} of ${plural(total, "decision")}`
    : `Every decision in order (${count(total)})`;
  section.append(make("details", "", make("summary", "", words), all));
}

function showTimelines() {
  for (const sentence of data.found) byId("found").append(make("p", "", sentence));
  data.machines.filter(({ timeline }) => timeline).forEach(showTimeline);
}
