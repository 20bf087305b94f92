// Shows, while a reviewer writes, exactly what the chat will be told; a ready reason fills the field.

function update(field) {
  const shown = document.getElementById(field.dataset.told);
  shown.textContent = field.value.trim() || shown.dataset.empty;
}

document.addEventListener("input", (event) => {
  if (event.target.dataset.told) update(event.target);
});

document.addEventListener("change", (event) => {
  const fills = event.target.dataset.fills;
  if (!fills || !event.target.value) return;
  const field = document.getElementById(fills);
  field.value = event.target.value;
  update(field);
});
