function showStates() {
  for (const { element, name, count: all, states } of data.machines) {
    const rows = states.map((one) => [
      String(one.state), one.history, told(one, all),
      lines([...one.moves.map(({ label, to, count: seen }) =>
        `${label} → ${to === one.state ? "stays" : `state ${to}`} (${count(seen)}×)`), ...unread(one)]),
      count(one.steps)]);
    const header = ["state", "shortest history", "told from others by", "events read", "steps seen"];
    const found = table(header, rows, [0, 4]);
    states.forEach((one, number) => (found.tBodies[0].rows[number].id = `${element}-state-${one.state}`));
    byId("states").append(make("h3", "", name), scrolling(`States: ${name}`, found));
    if (states.length < all) {
      byId("states").append(make("p", "note",
        `Of ${count(all)} states, the first ${count(states.length)} are in this file.`));
    }
  }
}

function lines(texts) {
  return make("td", "", ...texts.map((line) => make("div", "", ...[line].flat())));
}

function told({ answers }, all) {
  if (!answers.length) return make("td", "soft", all > 1 ? "no answer of its own" : "the only state");
  return lines(answers.map(({ question, output, others }) =>
    [question, " ", around(output, (name) => `→ ${name}, unlike in ${plural(others, "other state")}`)]));
}

function unread(one) {
  if (!one.unread_count) return [];
  const more = one.unread_count - one.unread.length;
  return [`never read here: ${one.unread.join(", ")}${more ? ` and ${count(more)} more` : ""}`];
}
