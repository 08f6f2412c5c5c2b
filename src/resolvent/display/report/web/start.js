function showSections() {
  for (const section of document.querySelectorAll("main > section:not([hidden])")) {
    const link = make("a", "", section.querySelector("h2").textContent);
    link.href = `#${section.id}`;
    byId("sections").append(link);
  }
}

showSummary();
showMap();
setUpPlayer();
showStates();
showEvidence();
showTimelines();
showLearning();
showSections();
