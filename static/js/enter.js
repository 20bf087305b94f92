// Enter sends, Shift+Enter makes a line; never while an input method is composing a character.

export function enterSends(field) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (field.value.trim()) field.form.requestSubmit();
  });
}
