// What the console does beyond links and forms: copies ids, keeps a theme, answers keys, stays up to date.
"use strict";

const root = document.documentElement;
const THEMES = ["", "light", "dark"];

function dress(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    button.textContent = `Theme: ${theme || "system"}`;
  }
}

function kept(name) {
  try { return localStorage.getItem(name) || ""; } catch { return ""; }
}

function keep(name, value) {
  try { localStorage.setItem(name, value); } catch { /* A browser that keeps nothing forgets the theme. */ }
}

dress(kept("theme"));

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy) {
    navigator.clipboard?.writeText(button.dataset.copy).then(() => {
      const shown = button.textContent;
      button.textContent = "copied";
      setTimeout(() => { button.textContent = shown; }, 1000);
    });
  } else if ("themeSwitch" in button.dataset) {
    const next = THEMES[(THEMES.indexOf(kept("theme")) + 1) % THEMES.length];
    keep("theme", next);
    dress(next);
  }
});

// --- keys ---------------------------------------------------------------------------------------------------

const GO = { n: "now", e: "events", a: "approvals", g: "agents", f: "fleet", m: "money" };
let leading = false;
let at = -1;

function rows() {
  return [...document.querySelectorAll("main tbody tr, main .row")].filter((row) => row.querySelector("a"));
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  all[at]?.classList.remove("at");
  at = Math.max(0, Math.min(all.length - 1, at + by));
  all[at].classList.add("at");
  all[at].querySelector("a").focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (leading) {
    leading = false;
    const link = document.querySelector(`nav a[data-place="${GO[event.key]}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (event.key === "g") leading = true;
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "?") document.querySelector("#keys")?.showModal();
  else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); }
  }
});
