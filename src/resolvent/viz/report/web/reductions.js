// Labels and answers that took no part in the search.
function leftOutList(words, listed, all, content) {
  const note = listed < all ? ` The first ${count(listed)} are listed.` : "";
  return make("details", "", make("summary", "", `${words} (${count(all)})`),
    ...(note ? [make("p", "note", note)] : []), content);
}

function showReductions() {
  const section = byId("found");
  section.append(make("h3", "", "Left out of the search"));
  for (const { name, answers: what, spared } of data.machines) {
    const { labels, all_labels: everyLabel, answers, all_answers: everyAnswer } = spared;
    if (labels.length) {
      section.append(leftOutList(`${name}: labels that change nothing`, labels.length, everyLabel, list(labels)));
    }
    if (answers.length) {
      section.append(leftOutList(`${name}: answers that are the same in every state`, answers.length,
        everyAnswer, scrolling(`Answers without memory: ${name}`, table(["observation and action", what], answers))));
    }
    if (!labels.length && !answers.length) section.append(make("p", "note", `${name}: nothing.`));
  }
}
