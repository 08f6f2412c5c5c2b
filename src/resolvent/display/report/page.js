
"use strict";
// Texts from the data only ever become text nodes or attribute values that hold text.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

function table(header, rows, right = []) {
  const head = make("tr");
  header.forEach((name, column) => {
    const cell = make("th", right.includes(column) ? "number" : "", name);
    cell.scope = "col";
    head.append(cell);
  });
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr");
    row.forEach((cell, column) => {
      const kind = right.includes(column) ? "number" : "";
      line.append(cell instanceof HTMLTableCellElement ? cell : make("td", kind, cell));
    });
    body.append(line);
  }
  return make("table", "", make("thead", "", head), body);
}

function scrolling(name, content) {
  const box = make("div", "scroll", content);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", name);
  return box;
}

function list(items) {
  return make("ul", "", ...items.map((item) => make("li", "", item)));
}

const count = (number) => number.toLocaleString("en");
const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

function showSummary() {
  const { figures, verdict, sentences } = data.summary;
  const boxes = figures.map(([name, value]) =>
    make("div", "figure", make("b", "", value), make("span", "", name)));
  const rows = data.machines.map(({ name, answers, score }) =>
    [`${name}: ${answers}`, count(score.right), count(score.wrong), count(score.unseen)]);
  byId("summary-body").append(
    make("div", "figures", ...boxes),
    make("p", `verdict ${verdict.kind}`, verdict.text),
    table(["predicts", "right", "wrong", "never shown"], rows, [1, 2, 3]),
    list(sentences));
}

const STATES = [7, 8];
const player = { trace: 0, step: 0, rows: [] };
const text = (number) => data.player.texts[number];
const current = () => data.player.traces[player.trace];

function fact(name, value, kind = "", more = "") {
  const box = make("div", `fact ${kind}`, make("small", "", name), make("b", "", value));
  if (more) box.append(make("small", "", more));
  return box;
}

const KINDS = { 1: "right", 0: "wrong", "-1": "unseen" };

function outcome(name, happened, predicted, verdict) {
  const said = verdict === 1 ? "as predicted"
    : verdict === 0 ? `predicted ${text(predicted)}` : "never shown: no prediction";
  return fact(name, text(happened), KINDS[verdict], said);
}

function stateText(state) {
  return state < 0 ? "not known" : `state ${state}`;
}

function light(kind, before, now) {
  const figure = byId(kind);
  for (const element of figure.querySelectorAll(".lit")) element.classList.remove("lit");
  if (now >= 0) {
    figure.querySelector(`.rs-state[data-state="${now}"]`)?.classList.add("lit");
  }
  if (before >= 0 && before !== now) {
    figure.querySelector(`.rs-arrow[data-from="${before}"][data-to="${now}"]`)?.classList.add("lit");
  }
  const state = figure.querySelector(".rs-state.lit");
  if (state) bringIntoView(figure.querySelector(".drawing"), state);
  const drawn = now < 0 || state || !figure.querySelector("svg");
  figure.querySelector(".now").textContent =
    `· ${stateText(now)}${drawn ? "" : ", not drawn"}`;
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

function showStep() {
  const { steps, first, length, terminated } = current();
  const step = steps[player.step], before = steps[player.step - 1];
  const [seen, read, done, next, reward, predicted, promised, , , right, paid] = step;
  byId("moment").replaceChildren(
    fact("sees", text(seen)),
    fact("event read", text(read) || "none"),
    fact("remembers", `TM ${stateText(step[7])}`, "", `RM ${stateText(step[8])}`),
    fact("does", text(done)),
    outcome("then sees", next, predicted, right),
    outcome("is paid", reward, promised, paid));
  const end = first + player.step + 1 === length ? (terminated ? ", the end" : ", last") : "";
  byId("where").textContent = `step ${first + player.step} of ${length - 1}${end}`;
  byId("position").value = player.step;
  byId("first").disabled = byId("back").disabled = player.step === 0;
  byId("last").disabled = byId("forward").disabled = player.step === steps.length - 1;
  ["transition", "reward"].forEach((kind, machine) =>
    light(kind, before ? before[STATES[machine]] : -1, step[STATES[machine]]));
  player.rows.forEach((row, number) => {
    row.classList.toggle("current", number === player.step);
    if (number === player.step) row.setAttribute("aria-current", "step");
    else row.removeAttribute("aria-current");
  });
  showRow();
  for (const cell of document.querySelectorAll(".cell")) {
    cell.classList.toggle("lit", cell.dataset.text === text(seen));
  }
}

function showRow() {
  const row = player.rows[player.step], box = byId("steps").querySelector(".scroll");
  const head = box.querySelector("thead").offsetHeight;
  if (row.offsetTop < box.scrollTop + head) box.scrollTop = row.offsetTop - head;
  const bottom = row.offsetTop + row.offsetHeight;
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

function goTo(step) {
  player.step = Math.max(0, Math.min(current().steps.length - 1, step));
  showStep();
}

const isWrong = (step) => step[9] === 0 || step[10] === 0;

function goToWrong() {
  const { steps } = current();
  const ahead = steps.findIndex((step, number) => number > player.step && isWrong(step));
  goTo(ahead >= 0 ? ahead : steps.findIndex(isWrong));
}

function stepRow(step, number, first) {
  const verdict = (value, kind) => make("td", kind === 1 ? "" : KINDS[kind], text(value));
  const row = make("tr", "step");
  const states = [7, 8].map((place) => step[place] < 0 ? "?" : String(step[place]));
  row.append(
    make("td", "number", String(first + number)), make("td", "", text(step[0])),
    make("td", "", text(step[1])), make("td", "number", states[0]),
    make("td", "number", states[1]), make("td", "", text(step[2])),
    verdict(step[3], step[9]), verdict(step[5], step[9]),
    verdict(step[4], step[10]), verdict(step[6], step[10]));
  row.addEventListener("click", () => goTo(number));
  return row;
}

function showTrace(number) {
  player.trace = number;
  const { steps, first, length } = current();
  const header = ["step", "sees", "event read", "TM", "RM", "does", "then sees", "predicted",
    "is paid", "predicted"];
  const steplist = table(header, [], [0, 3, 4]);
  player.rows = steps.map((step, place) => stepRow(step, place, first));
  steplist.tBodies[0].append(...player.rows);
  byId("steps").replaceChildren(scrolling("All steps of the trace", steplist));
  if (steps.length < length) {
    byId("steps").append(make("p", "note",
      `Of ${count(length)} steps, ${count(steps.length)} are in this file.`));
  }
  byId("position").max = steps.length - 1;
  byId("wrong").hidden = !steps.some(isWrong);
  goTo(Math.max(0, steps.findIndex(isWrong)));
}

function setUpPlayer() {
  const choice = byId("trace");
  data.player.traces.forEach(({ number, why, length }, place) => {
    const option = make("option", "", `${count(number)} (${plural(length, "step")}): ${why}`);
    option.value = place;
    choice.append(option);
  });
  choice.addEventListener("change", () => showTrace(Number(choice.value)));
  byId("position").addEventListener("input", () => goTo(Number(byId("position").value)));
  const ways = { first: () => goTo(0), back: () => goTo(player.step - 1),
    forward: () => goTo(player.step + 1), last: () => goTo(Infinity), wrong: goToWrong };
  for (const [id, go] of Object.entries(ways)) byId(id).addEventListener("click", go);
  const keys = { ArrowLeft: ways.back, ArrowRight: ways.forward, Home: ways.first, End: ways.last };
  document.addEventListener("keydown", (event) => {
    const elsewhere = event.target.closest?.("select, input, .drawing, .scroll");
    const go = keys[event.key];
    if (!go || elsewhere || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key.startsWith("Arrow") || event.target.closest?.("#replay")) {
      event.preventDefault();
      go();
    }
  });
  showTrace(0);
}

function showMap() {
  if (!data.map) return;
  const { x, y, cells } = data.map;
  const across = x[1] - x[0] + 1, up = y[1] - y[0] + 1;
  const at = new Map(cells.map((cell) => [`${cell.x},${cell.y}`, cell]));
  const grid = make("div", across > 20 ? "grid small" : "grid");
  grid.style.gridTemplateColumns = `repeat(${across}, max-content)`;
  for (let row = y[1]; row > y[1] - up; row--) {
    for (let column = x[0]; column <= x[1]; column++) {
      const cell = at.get(`${column},${row}`);
      const box = make("div", cell ? "cell" : "cell void");
      if (cell) fillCell(box, cell);
      grid.append(box);
    }
  }
  const key = make("p", "note", "Each cell is an observation, x to the right and y upwards.",
    make("span", "key transition"), "what is seen next depends on memory",
    make("span", "key reward"), "the reward depends on memory");
  byId("map-body").append(key, scrolling("Map of the observations", grid));
  byId("map").hidden = false;
}

function fillCell(box, cell) {
  box.append(make("b", "", cell.labels.join(", ")), cell.text);
  box.dataset.text = cell.text;
  const depends = ["transition", "reward"].filter((kind) => cell[kind]);
  box.classList.add(...depends);
  box.title = [cell.text, ...cell.labels, ...depends.map((kind) => `${kind} depends on memory`)]
    .join("; ");
}

function showStates() {
  for (const { name, count: all, states } of data.machines) {
    const rows = states.map((one) => [
      String(one.state), one.history, lines(one.answers.map(answerText)),
      lines([...one.moves.map(({ label, to, count: seen }) =>
        `${label} → ${to === one.state ? "stays" : to} (${count(seen)}×)`), ...unread(one)]),
      count(one.steps)]);
    const header = ["state", "shortest history", "told from others by", "events read", "steps seen"];
    byId("states").append(make("h3", "", name), scrolling(`States: ${name}`, table(header, rows, [0, 4])));
    if (states.length < all) {
      byId("states").append(make("p", "note",
        `Of ${count(all)} states, the first ${count(states.length)} are in this file.`));
    }
  }
}

function lines(texts) {
  return make("td", "", ...texts.map((line) => make("div", "", line)));
}

function answerText({ question, output, others }) {
  return `${question} → ${output}, unlike ${plural(others, "other")}`;
}

function unread(one) {
  if (!one.unread_count) return [];
  const more = one.unread_count - one.unread.length;
  return [`never read here: ${one.unread.join(", ")}${more ? ` and ${count(more)} more` : ""}`];
}

function heatMap({ shown, matrix }) {
  const most = Math.log1p(Math.max(1, ...matrix.map((entry) => entry[3])));
  const at = new Map();
  for (const [one, other, questions, support, depth] of matrix) {
    at.set(`${one},${other}`, { questions, support, depth });
    at.set(`${other},${one}`, { questions, support, depth });
  }
  const numbers = Array.from({ length: shown }, (_, number) => number);
  const heat = table(["", ...numbers.map(String)], []);
  heat.className = "heat";
  for (const one of numbers) {
    const head = make("th", "", String(one));
    head.scope = "row";
    const row = make("tr", "", head);
    for (const other of numbers) row.append(heatCell(one, other, at.get(`${one},${other}`), most));
    heat.tBodies[0].append(row);
  }
  return heat;
}

function heatCell(one, other, entry, most) {
  if (!entry) return make("td", "self", "·");
  if (entry.depth < 0) {
    const cell = make("td", "none", "0");
    cell.title = `nothing tells states ${one} and ${other} apart`;
    return cell;
  }
  const after = entry.depth ? ` after reading ${plural(entry.depth, "label")}` : "";
  const cell = make("td", "", String(entry.questions), make("small", "", `${count(entry.support)}×`));
  cell.style.setProperty("--h", (Math.log1p(entry.support) / most).toFixed(3));
  cell.title = `states ${one} and ${other}: ${plural(entry.questions, "question")}${after}, ` +
    `asked ${count(entry.support)} times`;
  return cell;
}

function showEvidence() {
  for (const { name, count: all, proof } of data.machines) {
    const section = byId("evidence");
    section.append(make("h3", "", name));
    if (all > 1) {
      section.append(
        make("p", "note", "State against state: how many questions tell them apart, and how often " +
          "these were asked; red where nothing does." +
          (proof.shown < all ? ` The first ${proof.shown} of ${count(all)} states.` : "")),
        scrolling(`What tells states apart: ${name}`, heatMap(proof)),
        make("h4", "", proof.weakest.length < proof.pairs
          ? `The weakest ${proof.weakest.length} of ${count(proof.pairs)} pairs` : "What tells them apart"),
        scrolling(`Weakest pairs: ${name}`, table(
          ["states", "told apart by, such as", "questions", "asked", "answers", "first seen"],
          proof.weakest.map((one) => [one.states.join(", "), one.by, count(one.questions),
            count(one.support), one.answers.join(" / "),
            one.places.map(([trace, step]) => `trace ${trace}, step ${step}`).join("; ")]), [2, 3])));
    } else {
      section.append(make("p", "note", "One state: there is nothing to tell apart."));
    }
    section.append(
      make("h4", "", proof.complete ? "Structure complete" : "Not structure complete"),
      list(proof.completeness));
    if (proof.least.length) section.append(make("h4", "", "Where the data is thinnest"), list(proof.least));
    if (proof.next.length) {
      section.append(make("h4", "", "What to collect next"), list(proof.next));
      if (proof.more) section.append(make("p", "note", `and ${count(proof.more)} more`));
    }
  }
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function showCurve({ means, episodes, each }) {
  const low = Math.min(...means), high = Math.max(...means), span = high - low || 1;
  const across = (number) => 60 + 720 * number / Math.max(1, means.length - 1);
  const up = (value) => 190 - 170 * (value - low) / span;
  const path = means.map((mean, number) =>
    `${number ? "L" : "M"}${across(number).toFixed(1)} ${up(mean).toFixed(1)}`).join("");
  const label = (x, y, anchor, words) => svg("text", { x, y, "text-anchor": anchor }, words);
  const short = (value) => Number(value.toPrecision(4)).toString();
  byId("learning").append(make("h3", "", "Return by episode"),
    svg("svg", { viewBox: "0 0 800 225", class: "curve", role: "img",
      "aria-label": `Return over ${plural(episodes, "episode")}, from ${short(low)} to ${short(high)}` },
    svg("line", { x1: 60, x2: 780, y1: 190, y2: 190 }), svg("line", { x1: 60, x2: 780, y1: 20, y2: 20 }),
    svg("path", { d: path }), label(52, 24, "end", short(high)), label(52, 194, "end", short(low)),
    label(60, 212, "start", "episode 1"), label(780, 212, "end", `episode ${count(episodes)}`)));
  if (each > 1) byId("learning").append(make("p", "note", `Means of up to ${each} episodes each.`));
}

function showLearning() {
  if (data.curve) showCurve(data.curve);
  if (data.policy) {
    const { rows, situations } = data.policy;
    byId("learning").append(make("h3", "", "Policy"),
      scrolling("Policy", table(["situation", "best action", "worth"], rows, [1, 2])));
    if (rows.length < situations) {
      byId("learning").append(make("p", "note",
        `The ${count(rows.length)} most valuable of ${count(situations)} situations.`));
    }
  }
  byId("learning").hidden = !data.curve && !data.policy;
}

function showSections() {
  for (const section of document.querySelectorAll("main > section:not([hidden])")) {
    const link = make("a", "", section.querySelector("h2").textContent);
    link.href = `#${section.id}`;
    byId("sections").append(link);
  }
}

showSummary();
showMap();
setUpPlayer();
showStates();
showEvidence();
showLearning();
showSections();
