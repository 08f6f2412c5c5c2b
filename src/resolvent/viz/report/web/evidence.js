function heatMap({ shown, matrix }) {
  const most = Math.log1p(Math.max(1, ...matrix.map((entry) => entry[3])));
  const at = new Map();
  for (const [first, second, queries, support, depth] of matrix) {
    at.set(`${first},${second}`, { queries, support, depth });
    at.set(`${second},${first}`, { queries, support, depth });
  }
  const numbers = Array.from({ length: shown }, (_, number) => number);
  const heat = table(["", ...numbers.map(String)], []);
  heat.className = "heat";
  for (const first of numbers) {
    const head = make("th", "", String(first));
    head.scope = "row";
    const row = make("tr", "", head);
    for (const second of numbers) row.append(heatCell(first, second, at.get(`${first},${second}`), most));
    heat.tBodies[0].append(row);
  }
  return heat;
}

function heatCell(first, second, entry, most) {
  if (!entry) return make("td", "self", "·");
  if (entry.depth < 0) {
    const cell = make("td", "none", "0");
    cell.title = `nothing distinguishes states ${first} and ${second}`;
    return cell;
  }
  const after = entry.depth ? ` after reading ${plural(entry.depth, "label")}` : "";
  const cell = make("td", "", String(entry.queries), make("small", "", `${count(entry.support)}×`));
  cell.style.setProperty("--h", (Math.log1p(entry.support) / most).toFixed(3));
  cell.title = `states ${first} and ${second}: ${plural(entry.queries, "query")}${after}, ` +
    `observed ${count(entry.support)} times`;
  return cell;
}

function locations(all) {
  return make("td", "", ...all.map(([trace, step]) =>
    make("div", "", stepLink(trace, step, `trace ${trace}, step ${step}`))));
}

function showEvidence() {
  for (const { name, count: all, proof } of data.machines) {
    const section = byId("evidence");
    section.append(make("h3", "", name));
    if (proof.left_out) {
      section.append(make("p", "note", `The pairs of states are left out: ${proof.left_out}`));
    } else if (all > 1) {
      section.append(
        make("p", "note", "Pairs of states: the number of queries that distinguish them, and how often " +
          "these were observed; red if nothing does." +
          (proof.shown < all ? ` The first ${proof.shown} of ${count(all)} states.` : "")),
        scrolling(`Pairs of states: ${name}`, heatMap(proof)),
        make("h4", "", proof.weakest.length < proof.pairs
          ? `The weakest ${proof.weakest.length} of ${count(proof.pairs)} pairs` : "Pairs of states"),
        scrolling(`Weakest pairs: ${name}`, table(
          ["states", "distinguished by, for example", "queries", "steps", "outputs", "first seen"],
          proof.weakest.map((one) => [one.states.join(", "), one.by, count(one.queries),
            count(one.support), make("td", "", ...one.outputs.flatMap((output, at) => at ? [" / ", output] : [output])),
            locations(one.locations)]), [2, 3])));
    } else {
      section.append(make("p", "note", "One state: there is nothing to distinguish."));
    }
    section.append(
      make("h4", "", proof.complete ? "Structure complete" : "Not structure complete"),
      make("p", "note", "The paper's conditions under which the inferred machine must be the true one:"),
      list(proof.completeness));
    if (proof.least.length) section.append(make("h4", "", "Least evidence"), list(proof.least));
    if (proof.next.length) {
      section.append(make("h4", "", "What to collect next"), list(proof.next));
      if (proof.more) section.append(make("p", "note", `and ${count(proof.more)} more`));
    }
  }
}
