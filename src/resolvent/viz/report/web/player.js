// A step: observation, label read, action, and for each machine the output and its prediction.
const SEEN = 0, READ = 1, DONE = 2, MACHINES = 3;
const player = { trace: 0, step: 0, rows: [] };
const text = (number) => data.player.texts[number];
const current = () => data.player.traces[player.trace];
const lastStep = () => current().steps.length - 1;

function outputsOf(step) {
  return step.slice(MACHINES).map(([happened, predicted, state, verdict, generalized]) =>
    ({ happened: text(happened), predicted: text(predicted), state, verdict, generalized }));
}

function fact(name, value, kind = "", ...more) {
  return make("div", `fact ${kind}`, make("small", "", name), make("b", "", value),
    ...more.map((words) => make("small", "", words)));
}

const KINDS = { 1: "right", 0: "wrong", "-1": "unseen" };

function outcome({ outcome: name }, { happened, predicted, verdict, generalized }) {
  const said = verdict === 1 ? "as predicted"
    : verdict === 0 ? around(predicted, (name) => `predicted ${name}`) : "unseen: no prediction";
  return fact(name, happened, `${KINDS[verdict]}${generalized ? " generalized" : ""}`,
    around(said, (what) => `${what}${generalized ? " (generalized)" : ""}`));
}

function showStep() {
  const { steps, first, length, terminated, number } = current();
  const step = steps[player.step], before = steps[player.step - 1];
  const outputs = outputsOf(step), memory = before ? outputsOf(before) : [];
  const states = outputs.map(({ state }, at) => `${data.machines[at].short} ${stateText(state)}`);
  byId("moment").replaceChildren(
    fact("observation", text(step[SEEN])),
    fact("label read", text(step[READ]) || "none yet"),
    fact("machine states", states[0], "", ...states.slice(1)),
    fact("action", text(step[DONE])),
    ...outputs.map((output, at) => outcome(data.machines[at], output)));
  const end = first + player.step + 1 === length ? (terminated ? ", terminal" : ", last") : "";
  byId("where").textContent = `step ${count(first + player.step)} of ${count(length - 1)}${end}`;
  byId("where").href = address(number, first + player.step);
  byId("position").value = player.step;
  markEnds();
  outputs.forEach(({ state }, at) => light(data.machines[at].element, memory[at]?.state ?? -1, state));
  showRow();
  for (const cell of document.querySelectorAll(".cell")) {
    cell.classList.toggle("lit", cell.dataset.text === words(text(step[SEEN])));
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

const isWrong = (step) => outputsOf(step).some(({ verdict }) => verdict === 0);

function goToWrong() {
  const { steps } = current();
  const ahead = steps.findIndex((step, number) => number > player.step && isWrong(step));
  goTo(ahead >= 0 ? ahead : steps.findIndex(isWrong));
}

function stepRow(step, number, first) {
  const outputs = outputsOf(step), row = make("tr", "step");
  row.append(
    make("td", "number", String(first + number)), make("td", "", text(step[SEEN])),
    make("td", "", text(step[READ])),
    ...outputs.map(({ state }) => make("td", "number", state < 0 ? "?" : String(state))),
    make("td", "", text(step[DONE])), ...outputs.flatMap(verdictCells));
  row.addEventListener("click", () => goTo(number));
  return row;
}

function verdictCells({ happened, predicted, verdict, generalized }) {
  const kind = verdict === 1 ? "" : KINDS[verdict];
  return [make("td", kind, happened),
    make("td", kind, predicted, ...(generalized ? [make("small", "mark", " generalized")] : []))];
}

function showTrace(place, step) {
  player.trace = place;
  const { steps, first, length } = current();
  const states = data.machines.map(({ short, outcome: name }) => short === name ? `${short} state` : short);
  const header = ["step", "observation", "label read", ...states, "action",
    ...data.machines.flatMap(({ outcome: name }) => [name, "predicted"])];
  const all = table(header, [], [0, ...states.map((_, at) => MACHINES + at)]);
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
  const jumps = { first: () => goTo(0), back: () => goTo(player.step - 1),
    forward: () => goTo(player.step + 1), last: () => goTo(Infinity), wrong: goToWrong };
  for (const [id, go] of Object.entries(jumps)) byId(id).addEventListener("click", go);
  const keys = { ArrowLeft: jumps.back, ArrowRight: jumps.forward, Home: jumps.first, End: jumps.last };
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
