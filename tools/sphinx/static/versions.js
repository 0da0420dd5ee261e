// Fills the list of versions from the file that `make site` writes beside them; leads to the first page of the chosen one.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("versions");
  const versions = window.LOGREEL_VERSIONS || [];
  if (!list || versions.length < 2) return;
  list.replaceChildren(...versions.map((name) => new Option(name, name, false, name === list.dataset.this)));
  list.addEventListener("change", () => {
    location.href = `${list.dataset.top.replace(/\/$/, "")}/${encodeURIComponent(list.value)}/index.html`;
  });
});
