// Puts the page together.

import { Charts } from "./charts.js";
import { byId, set, text } from "./dom.js";
import { figures } from "./figures.js";
import { count, duration, time } from "./format.js";
import { connect } from "./link.js";
import { Panel } from "./panel.js";
import { Picture } from "./picture.js";
import { Store } from "./store.js";
import * as tables from "./tables.js";

const store = new Store();
const panel = new Panel(store);
const choose = (name) => panel.open(name);
const picture = new Picture(store, choose);
const charts = new Charts(store);

let link = "connecting";
let since = null;
let note = "";
let unwell = "";
let judged = "";

const STATES = {
  connecting: "Connecting",
  live: "Live",
  starting: "Starting",
  trouble: "Trouble",
  stalled: "No news",
  lost: "Connection lost",
};

function announce(message) {
  text(byId("announce"), message);
}

function banner() {
  const node = byId("banner");
  const verdict = store.now?.verdict;
  const seen = since ? ` The figures shown are from ${time(since)}.` : "";
  let said = note;
  if (link === "lost")
    said = `No connection to this worker.${seen} The page keeps trying to reconnect.`;
  else if (link === "stalled") said = `The worker is connected but sends nothing.${seen}`;
  else if (verdict?.text)
    said = [`${sentence(verdict.text)}${dated(store.now.at)}`, note].filter(Boolean).join(" ");
  node.hidden = !said;
  set(node, "data-kind", said === note ? "note" : "trouble");
  text(node, said);
  set(document.body, "data-link", link);
}

/** What the pill says: how the link is, and while it is live, how the system is. */
function pill() {
  const level = store.now?.verdict.level;
  const state = link === "live" && level && level !== "well" ? level : link;
  set(byId("link"), "data-state", state);
  if (link !== "lost") text(byId("link-text"), STATES[state]);
}

const sentence = (said) => `${said[0].toUpperCase()}${said.slice(1)}.`;
const dated = (at) => (at ? ` Figures are from ${time(at)}.` : "");

function hello(about) {
  const restarted = store.hello(about);
  text(byId("name"), about.name);
  document.title = `${about.name} · hb console`;
  byId("metrics").hidden = !about.metrics;
  text(byId("foot"), `hb ${about.version}, worker ${about.worker}, since ${time(about.started)}`);
  if (!restarted) return;
  note = `The worker has restarted, at ${time(about.started)}. Nothing that was learned is lost.`;
  announce(note);
  setTimeout(() => {
    note = "";
    banner();
  }, 15000);
}

function snapshot(now) {
  store.snapshot(now);
  pill();
  banner();
  judge(now.verdict);
  if (!now.rates) return;
  const about = store.about;
  const learners = `${count(about.learners.length)} learner${about.learners.length === 1 ? "" : "s"}`;
  const workers = `${count(now.workers)} worker${now.workers === 1 ? "" : "s"}`;
  text(byId("about"), `fusion ${about.mode} · ${learners} · ${workers}`);
  figures(store);
  picture.draw();
  charts.draw();
  tables.learners(store, choose);
  tables.diagnoses(store);
  tables.labels(store);
  tables.dead(store);
  tables.tasks(store);
  health(now);
}

/** Say aloud when the system gets into trouble or out of it, and only then. */
function judge(verdict) {
  if (verdict.text === judged) return;
  announce(verdict.text ? sentence(verdict.text) : "All is well again.");
  judged = verdict.text;
}

/** Announce to screen readers when an agent falls silent or recovers, and only then. */
function health(now) {
  const bad = Object.entries(now.health).filter(([, each]) => !each.well);
  const names = bad.map(([name]) => name).join();
  if (names === unwell) return;
  announce(
    bad.length
      ? bad.map(([name, each]) => `${name}: ${each.text}`).join(". ")
      : "All agents are well again.",
  );
  unwell = names;
}

connect(
  (kind, data) => (kind === "hello" ? hello(data) : snapshot(data)),
  (state, last) => {
    const healed = link === "lost" && state === "live";
    link = state;
    since = last;
    pill();
    if (state === "lost") text(byId("link-text"), STATES.lost);
    if (state !== "live")
      announce(state === "lost" ? "Connection lost." : "No news from the worker.");
    else if (healed && !note) announce("Connected again.");
    banner();
  },
);

setInterval(() => {
  if (link === "lost" && since)
    text(byId("link-text"), `Lost for ${duration((Date.now() - since) / 1000)}`);
}, 1000);
