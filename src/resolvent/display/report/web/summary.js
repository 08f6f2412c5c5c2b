function showSummary() {
  const { figures, verdict, sentences } = data.summary;
  const boxes = figures.map(([name, value]) =>
    make("div", "figure", make("b", "", value), make("span", "", name)));
  const rows = data.machines.map(({ name, answers, score }) =>
    [`${name}: ${answers}`, count(score.right), count(score.wrong), count(score.unseen)]);
  byId("summary-body").append(
    make("div", "figures", ...boxes),
    make("p", `verdict ${verdict.kind}`, verdict.text, ...shown(verdict)),
    scrolling("How many predictions are right",
      table(["predicts", "right", "wrong", "never shown"], rows, [1, 2, 3])),
    list(sentences));
}

function shown({ place }) {
  return place ? [" ", stepLink(...place, "Show it")] : [];
}
