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

document.addEventListener("mouseover", (event) => { // A time says what it is here, too.
  const time = event.target.closest("time[datetime]");
  if (!time || time.title !== time.dateTime) return;
  const here = new Date(time.dateTime);
  if (!Number.isNaN(here.getTime())) time.title = `${time.dateTime}, here ${here.toLocaleString()}`;
});

// --- keys ---------------------------------------------------------------------------------------------------

const GO = { n: "now", e: "events", a: "approvals", g: "agents", f: "fleet", t: "tree", m: "money" };
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

function choose() { // The row that one is at: for what is done with several of them.
  const box = rows()[at]?.querySelector("input[type=checkbox]");
  if (box) { box.checked = !box.checked; tell(); }
}

function tell() { // The buttons say how many they would be about.
  const count = document.querySelectorAll("[name=chosen]:checked").length;
  for (const button of document.querySelectorAll("[data-chosen]")) {
    const what = count === 0 ? "the chosen" : count === 1 ? "1 event" : `${count} events`;
    button.textContent = `${button.dataset.chosen} ${what}`;
    button.disabled = !count;
  }
}

function act() { // The first thing that can be done with the row.
  rows()[at]?.querySelector(".acts button:not(:disabled), .acts .button, .acts summary, td button")?.focus();
}

function unfold() { // What a chart shows, as a table.
  const charts = [...document.querySelectorAll("main details")].filter((one) => one.querySelector("table"));
  const open = charts.some((one) => one.open);
  for (const one of charts) one.open = !open;
}

document.addEventListener("change", (event) => { if (event.target.name === "chosen") tell(); });
tell();

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  if (leading) {
    leading = false;
    const link = document.querySelector(`nav a[data-place="${GO[event.key]}"]`);
    if (link) { event.preventDefault(); link.click(); }
    return;
  }
  if (event.key === "g") leading = true;
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "x") choose();
  else if (event.key === ".") act();
  else if (event.key === "t") unfold();
  else if (event.key === "?") document.querySelector("#keys")?.showModal();
  else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); }
  }
});

// --- staying up to date -------------------------------------------------------------------------------------

// The server tells when something has happened in the workspace. Then the page asks for its parts again and puts
// those that have changed in their places. How often is the server's to say: it knows how many pages are open. It
// also says how soon it speaks again; when it does not, it is away, whatever the connection looks like.
const live = document.querySelector("[data-live]");
const begun = (page) => page.querySelector("[data-began]")?.dataset.began || "";
let began = begun(document);
let place = "";
let wanted = false;
let running = false;
let quiet = 10000;
let back = 3000;
let heard = Date.now();
let hush = null;
let cut = null;

const pause = (ms) => new Promise((go) => { setTimeout(go, ms); });

function say(state, tone) {
  const words = `● ${state}`;
  if (live.textContent === words) return; // What is read aloud is read once.
  live.textContent = words;
  live.className = `state ${tone}`;
}

function since(at) {
  return `since ${new Date(at).toLocaleTimeString([], { hourCycle: "h23" })}`;
}

function listen() { // To be heard of within what was promised, from now on.
  clearTimeout(hush);
  hush = setTimeout(() => { cut?.abort(); }, quiet);
}

function replace(fresh) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.id);
    const busy = part.contains(document.activeElement) || part.querySelector("details[open], input:checked");
    if (next && !busy && next.innerHTML !== part.innerHTML) {
      part.replaceChildren(...next.childNodes);
      part.classList.remove("changed");
      void part.offsetWidth; // So that the fade begins again.
      part.classList.add("changed");
      tell();
    }
  }
}

async function refresh() {
  wanted = true;
  if (running || document.hidden) return;
  running = true;
  try {
    while (wanted) {
      wanted = false;
      const headers = { accept: "text/html", "sexton-as-of": place, "sexton-shown": began };
      const answer = await fetch(location.href, { headers, signal: cut?.signal });
      if (!answer.ok) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      replace(fresh);
      began = begun(fresh);
      say("live", "green");
    }
  } catch {
    if (!cut?.signal.aborted) { // Where the server is away, the page asks again once it is back.
      say(`behind ${since(heard)}`, "amber");
      setTimeout(refresh, back * (1 + Math.random()));
    }
  } finally {
    running = false;
  }
}

function hear(told) {
  const id = /^id: (\S+)$/m.exec(told);
  const within = /"within_ms":(\d+)/.exec(told);
  back = Number(/^retry: (\d+)$/m.exec(told)?.[1] || back);
  quiet = Number(/"quiet_ms":(\d+)/.exec(told)?.[1] || quiet);
  if (!id || !within) return;
  place = id[1];
  setTimeout(refresh, Number(within[1]) * Math.random());
}

async function follow(address) {
  for (;;) {
    try {
      cut = new AbortController();
      listen();
      const answer = await fetch(address, { headers: { accept: "text/event-stream" }, signal: cut.signal });
      if (answer.status === 401 || answer.status === 403) { say("signed out: reload the page", "red"); return; }
      if (!answer.ok) throw new Error(answer.statusText);
      say("live", "green");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        const told = (rest + read.value).split("\n\n");
        rest = told.pop();
        told.forEach(hear);
        heard = Date.now();
        listen();
      }
    } catch { /* The server is not there for a moment. */ }
    clearTimeout(hush);
    cut.abort();
    say(`away ${since(heard)}`, "amber");
    await pause(back * (1 + Math.random()));
  }
}

if (live) {
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  follow(live.dataset.live);
}
