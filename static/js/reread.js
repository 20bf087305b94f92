// Takes the transcript anew from the server: our place in the events is no longer known there.

export async function reread(url, live, change) {
  const answer = await fetch(url);
  if (!answer.ok || answer.redirected) {
    location.reload();
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  live.clear();
  change(() => {
    for (const id of ["transcript", "head"]) {
      document.getElementById(id).replaceChildren(...fresh.getElementById(id).childNodes);
    }
  });
}
