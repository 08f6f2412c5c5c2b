// The player steps by itself, unless the reader asks for less motion.
let timer = 0;

function pause() {
  clearInterval(timer);
  timer = 0;
  byId("play").textContent = "Play";
  byId("moment").setAttribute("aria-live", "polite");
}

function play() {
  if (player.step === lastStep()) goTo(0);
  byId("play").textContent = "Pause";
  byId("moment").setAttribute("aria-live", "off");
  clearInterval(timer);
  timer = setInterval(() => {
    goTo(player.step + 1);
    if (player.step === lastStep()) pause();
  }, Number(byId("speed").value));
}

function setUpPlaying() {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const offer = () => {
    byId("playing").hidden = still.matches;
    if (still.matches) pause();
  };
  still.addEventListener("change", offer);
  offer();
  byId("play").addEventListener("click", () => (timer ? pause() : play()));
  byId("speed").addEventListener("change", () => timer && play());
  byId("trace").addEventListener("change", pause);
}
