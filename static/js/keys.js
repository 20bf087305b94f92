// Shortcuts of the chat. All need a modifier, so none can fire while somebody dictates or types.

function neighbour(step) {
  const links = [...document.querySelectorAll("#recent a")];
  const here = links.findIndex((link) => link.getAttribute("aria-current"));
  return links[here + step];
}

export function chatKeys() {
  document.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && key === ".") {
      // What works now comes before what only waits in line.
      const stop =
        document.querySelector("[data-busy] [data-stop-run]") ||
        document.querySelector("[data-stop-run]");
      if (!stop) return;
      event.preventDefault();
      stop.click();
    }
    if (event.altKey && (key === "j" || key === "k")) {
      const link = neighbour(key === "j" ? 1 : -1);
      if (!link) return;
      event.preventDefault();
      link.click();
    }
  });
}
