function showStates() {
  for (const { element, name, count: all, states } of data.machines) {
    const rows = states.map((one) => [
      String(one.state), one.history, distinguishing(one, all),
      lines([...one.transitions.map(({ label, to, count: seen }) =>
        `${label} → ${to === one.state ? "stays" : `state ${to}`} (${count(seen)}×)`), ...unread(one)]),
      count(one.steps)]);
    const header = ["state", "shortest label sequence", "distinguished by", "labels read", "steps"];
    const body = table(header, rows, [0, 4]);
    states.forEach((one, number) => (body.tBodies[0].rows[number].id = `${element}-state-${one.state}`));
    byId("states").append(make("h3", "", name), scrolling(`States: ${name}`, body));
    if (states.length < all) {
      byId("states").append(make("p", "note",
        `Of ${count(all)} states, the first ${count(states.length)} are in this file.`));
    }
  }
}

function lines(texts) {
  return make("td", "", ...texts.map((line) => make("div", "", ...[line].flat())));
}

function distinguishing({ outputs }, all) {
  if (!outputs.length) return make("td", "soft", all > 1 ? "no output of its own" : "the only state");
  return lines(outputs.map(({ query, output, others }) =>
    [query, " ", around(output, (name) => `→ ${name}, unlike ${plural(others, "other state")}`)]));
}

function unread(one) {
  if (!one.unread_count) return [];
  const more = one.unread_count - one.unread.length;
  return [`never read here: ${one.unread.join(", ")}${more ? ` and ${count(more)} more` : ""}`];
}
