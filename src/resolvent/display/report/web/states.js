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
