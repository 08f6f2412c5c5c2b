const STATES = [7, 8];
const player = { trace: 0, step: 0, rows: [] };
const text = (number) => data.player.texts[number];
const current = () => data.player.traces[player.trace];
const lastStep = () => current().steps.length - 1;

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

function showStep() {
  const { steps, first, length, terminated, number } = current();
  const step = steps[player.step], before = steps[player.step - 1];
  const [seen, read, done, next, reward, predicted, promised, , , right, paid] = step;
  byId("moment").replaceChildren(
    fact("sees", text(seen)),
    fact("event read", text(read) || "nothing yet"),
    fact("remembers", `TM ${stateText(step[7])}`, "", `RM ${stateText(step[8])}`),
    fact("does", text(done)),
    outcome("then sees", next, predicted, right),
    outcome("is paid", reward, promised, paid));
  const end = first + player.step + 1 === length ? (terminated ? ", the end" : ", last") : "";
  byId("where").textContent = `step ${count(first + player.step)} of ${count(length - 1)}${end}`;
  byId("where").href = address(number, first + player.step);
  byId("position").value = player.step;
  markEnds();
  ["transition", "reward"].forEach((kind, machine) =>
    light(kind, before ? before[STATES[machine]] : -1, step[STATES[machine]]));
  showRow();
  for (const cell of document.querySelectorAll(".cell")) {
    cell.classList.toggle("lit", cell.dataset.text === text(seen));
  }
}

// Not `disabled`: the button would lose the focus, and the keys their place.
function markEnds() {
  for (const id of ["first", "back"]) byId(id).ariaDisabled = player.step === 0;
  for (const id of ["last", "forward"]) byId(id).ariaDisabled = player.step === lastStep();
}

function showRow() {
  const row = player.rows[player.step], box = byId("steps").querySelector(".scroll");
  for (const other of box.querySelectorAll(".current")) {
    other.classList.remove("current");
    other.removeAttribute("aria-current");
  }
  row.classList.add("current");
  row.setAttribute("aria-current", "step");
  const head = box.querySelector("thead").offsetHeight;
  if (row.offsetTop < box.scrollTop + head) box.scrollTop = row.offsetTop - head;
  const bottom = row.offsetTop + row.offsetHeight;
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}

function goTo(step) {
  player.step = Math.max(0, Math.min(lastStep(), step));
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

function showTrace(place, step) {
  player.trace = place;
  const { steps, first, length } = current();
  const header = ["step", "sees", "event read", "TM", "RM", "does", "then sees", "predicted",
    "is paid", "predicted"];
  const all = table(header, [], [0, 3, 4]);
  player.rows = steps.map((one, number) => stepRow(one, number, first));
  all.tBodies[0].append(...player.rows);
  byId("steps").replaceChildren(scrolling("All steps of the trace", all));
  if (steps.length < length) {
    byId("steps").append(make("p", "note",
      `Of ${count(length)} steps, ${count(steps.length)} are in this file.`));
  }
  byId("position").max = lastStep();
  byId("wrong").hidden = !steps.some(isWrong);
  goTo(step ?? Math.max(0, steps.findIndex(isWrong)));
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
