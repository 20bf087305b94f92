// A stream that ends may mean that the session has: then the sign-in page is what helps.

/** Load the page anew when the server leads us away from it; drafts are kept. */
export async function signedIn(url) {
  try {
    const answer = await fetch(url, { method: "HEAD" });
    if (answer.redirected) location.reload();
  } catch {
    // No line at all; the stream tries again by itself.
  }
}
