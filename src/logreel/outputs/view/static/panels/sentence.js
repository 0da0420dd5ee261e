// What a panel says in place of its content.

/** Return an element that says a sentence in the middle of a panel. */
export function sentence(text, bad = false) {
  const element = document.createElement("div");
  element.className = bad ? "sentence bad" : "sentence";
  element.textContent = text;
  if (bad) element.setAttribute("role", "alert");
  return element;
}
