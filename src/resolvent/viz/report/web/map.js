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
    ...mapKey());
  byId("map-body").append(key, scrolling("Map of the observations", grid));
  byId("map").hidden = false;
}

function fillCell(box, cell) {
  box.append(make("b", "", cell.labels.join(", ")), cell.text);
  box.dataset.text = cell.text;
  const depends = cell.depends.map((place) => data.machines[place]);
  box.classList.add(...depends.map(cellMark));
  box.title = [cell.text, ...cell.labels, ...depends.map(({ output }) => `${output} depends on memory`)]
    .join("; ");
}

// The two machines of the paper have a mark of their own, all others one together.
function cellMark({ element }) {
  return ["transition", "reward"].includes(element) ? element : "other";
}

function mapKey() {
  const outputsByMark = new Map();
  for (const machine of data.machines) {
    const mark = cellMark(machine);
    outputsByMark.set(mark, [...(outputsByMark.get(mark) ?? []), machine.output]);
  }
  return [...outputsByMark].flatMap(([mark, outputs]) => [make("span", `key ${mark}`),
    `${outputs.join(" or ")} depends on memory`]);
}
