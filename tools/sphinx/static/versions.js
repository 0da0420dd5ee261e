// Fills the list of versions from the file that `make site` writes beside them. A choice leads to the same page of that version,
// or to its first page where it has no such page.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.getElementById("versions");
  const versions = window.LOGREEL_VERSIONS || {};
  const names = Object.keys(versions);
  if (!list || names.length < 2) return;
  const address = (name, page) => new URL(`${list.dataset.top.replace(/\/$/, "")}/${encodeURIComponent(name)}/${page}`, location.href).href;
  list.replaceChildren(...names.map((name) => new Option(name, name, false, name === list.dataset.this)));
  list.addEventListener("change", () => {
    const page = location.href.replace(/[?#].*/, "").slice(address(list.dataset.this, "").length);
    location.href = address(list.value, versions[list.value].includes(page) ? page : "index.html");
  });
});
