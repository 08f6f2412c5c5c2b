// Labels and outputs that were left out of the search.
function leftOutList(words, listed, all, content) {
  const note = listed < all ? ` The first ${count(listed)} are listed.` : "";
  return make("details", "", make("summary", "", `${words} (${count(all)})`),
    ...(note ? [make("p", "note", note)] : []), content);
}

function showReductions() {
  const section = byId("found");
  section.append(make("h3", "", "Left out of the search"));
  for (const { name, output, left_out: leftOut } of data.machines) {
    const { labels, label_count: labelCount, outputs, output_count: outputCount } = leftOut;
    if (labels.length) {
      section.append(leftOutList(`${name}: labels that change nothing`, labels.length, labelCount, list(labels)));
    }
    if (outputs.length) {
      section.append(leftOutList(`${name}: outputs that are the same in every state`, outputs.length,
        outputCount, scrolling(`Outputs without memory: ${name}`, table(["observation and action", output], outputs))));
    }
    if (!labels.length && !outputs.length) section.append(make("p", "note", `${name}: nothing.`));
  }
}
