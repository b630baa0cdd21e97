"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Filters of the requirements: a row is shown if it has the status, the level and every word asked for.
  const form = $(".filters");
  const rows = all("#requirements tbody tr").map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const filter = () => {
    const status = $("#by-status").value;
    const level = $("#by-level").value;
    const words = $("#by-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const { row, text } of rows) {
      const shown =
        (!status || row.dataset.status === status) &&
        (!level || row.dataset.level === level) &&
        words.every((word) => text.includes(word));
      row.hidden = !shown;
      count += shown;
    }
    $("#shown").textContent = `${count} of ${rows.length} requirements shown`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("change", filter); // all that tells of an option picked through WebDriver
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  filter();

  // A link to a requirement or an exchange opens whatever holds it, and puts the focus there.
  const open = () => {
    const element = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!element) return;
    if (element.hidden) {
      form.reset();
      rows.forEach(({ row }) => (row.hidden = false));
    }
    for (let up = element; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    if (element.tagName === "TR") all(":scope > td.main > details", element).forEach((d) => (d.open = true));
    element.scrollIntoView();
    if (element.matches("[tabindex]")) element.focus({ preventScroll: true });
  };
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) open();
  });
  if (location.hash) open();

  // Copy buttons; where the page has no clipboard, the line is selected instead.
  const told = $("#told");
  for (const button of all(".copy")) {
    button.hidden = false;
    button.setAttribute("aria-label", "Copy the curl command");
    button.addEventListener("click", async () => {
      const code = $("code", button.parentElement);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
        told.textContent = "The curl command was copied.";
      } catch {
        getSelection().selectAllChildren(code);
        told.textContent = "The curl command is selected.";
      }
      setTimeout(() => {
        button.textContent = "Copy";
        told.textContent = "";
      }, 2000);
    });
  }
})();
