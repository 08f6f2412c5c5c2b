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
    const { rows, states, named } = data.policy;
    byId("learning").append(make("h3", "", "Policy"),
      scrolling("Policy", table(["augmented state", "best action", "value"], rows, [2])));
    if (!named) {
      byId("learning").append(make("p", "note", "Actions are shown by the environment's numbers: the policy does not name them."));
    }
    if (rows.length < states) {
      byId("learning").append(make("p", "note",
        `The ${count(rows.length)} most valuable of ${count(states)} augmented states.`));
    }
  }
  byId("learning").hidden = !data.curve && !data.policy;
}
