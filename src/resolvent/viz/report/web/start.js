function showSections() {
  for (const section of document.querySelectorAll("main section:not([hidden])")) {
    const link = make("a", "", section.querySelector("h2, h3").textContent);
    link.href = `#${section.id}`;
    byId("sections").append(link);
  }
}

showSummary();
showMap();
setUpDrawings();
setUpPlayer();
setUpPlaying();
showStates();
showEvidence();
showTimelines();
showReductions();
showLearning();
showSections();
setUpLinks();
