function showSummary() {
  const { figures, verdict, sentences } = data.summary;
  const boxes = figures.map(([name, value]) =>
    make("div", "figure", make("b", "", value), make("span", "", name)));
  const columns = scoreColumns();
  const rows = data.machines.map(({ name, output, score }) =>
    [`${name}: ${output}`, ...columns.map(([field]) => count(score[field]))]);
  byId("summary-body").append(
    make("div", "figures", ...boxes),
    make("p", `verdict ${verdict.kind}`, verdict.text, ...shown(verdict)),
    scrolling("Number of right predictions",
      table(["predicts", ...columns.map(([, words]) => words)], rows, columns.map((_, at) => at + 1))),
    list(sentences));
}

// Generalized outputs are counted apart, if there are any.
function scoreColumns() {
  const generalizes = data.machines.some(({ score }) => score.assumed_right || score.assumed_wrong);
  return [["right", "right"], ["wrong", "wrong"],
    ...(generalizes ? [["assumed_right", "generalized, right"], ["assumed_wrong", "generalized, wrong"]] : []),
    ["unseen", "unseen"]];
}

function shown({ location }) {
  return location ? [" ", stepLink(...location, "Show it")] : [];
}
