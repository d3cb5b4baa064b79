// Puts the page together.

import { Charts } from "./charts.js";
import { byId, text } from "./dom.js";
import { figures } from "./figures.js";
import { count, time } from "./format.js";
import { connect } from "./link.js";
import { Panel } from "./panel.js";
import { Picture } from "./picture.js";
import { Route, goTo } from "./route.js";
import { Store } from "./store.js";
import * as tables from "./tables.js";
import { verdict } from "./verdict.js";

const store = new Store();
const panel = new Panel(store, () => route.leave());
const picture = new Picture(store, (name) => goTo("learner", name));
const charts = new Charts(store);
const route = new Route(
  () => charts.draw(true),
  (kind, name) => panel.open(kind, name),
  () => panel.close(),
);

let link = "connecting";
let since = null;
let farewell = null;
let judged = null;
let unwell = "";

function announce(message) {
  text(byId("announce"), message);
}

const show = () => verdict(link, since, store.now?.standing, farewell);

function hello(about) {
  const restarted = store.hello(about);
  farewell = null;
  text(byId("name"), about.name);
  document.title = `${about.name} · hb console`;
  byId("metrics").hidden = !about.metrics;
  text(byId("foot"), `hb ${about.version}, worker ${about.worker}, since ${time(about.started)}`);
  if (restarted) tell(`The worker has restarted, at ${time(about.started)}. Nothing that was learned is lost.`);
}

/** Show a note for a while. */
function tell(note) {
  const node = byId("banner");
  text(node, note);
  node.hidden = false;
  announce(note);
  setTimeout(() => {
    if (node.textContent === note) node.hidden = true;
  }, 15000);
}

function snapshot(now) {
  store.snapshot(now);
  show();
  judge(now.standing);
  if (!now.rates) return;
  const about = store.about;
  const learners = `${count(about.learners.length)} learner${about.learners.length === 1 ? "" : "s"}`;
  const workers = `${count(now.workers)} worker${now.workers === 1 ? "" : "s"}`;
  text(byId("about"), `fusion ${about.mode} · ${learners} · ${workers} · ${time(now.at)}`);
  figures(store);
  picture.draw();
  charts.draw();
  tables.learners(store);
  tables.diagnoses(store);
  tables.labels(store);
  tables.dead(store);
  tables.tasks(store);
  health(now);
  route.begin();
}

/** Say aloud when the verdict changes, and only then. */
function judge(standing) {
  const said = `${standing.state} ${standing.cause}`;
  if (said === judged) return;
  if (judged !== null) announce(standing.sentence);
  judged = said;
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

function bye(last) {
  farewell = last.farewell;
  announce(farewell || "This worker has stopped.");
}

connect(
  (kind, data) => ({ hello, snapshot, bye })[kind](data),
  (state, last) => {
    const healed = link === "lost" && state === "live";
    link = state;
    since = last;
    show();
    if (state === "lost" && farewell === null) announce("Connection lost.");
    else if (state === "stalled") announce("No news from the worker.");
    else if (healed && byId("banner").hidden) announce("Connected again.");
  },
);

setInterval(() => {
  if (link === "lost") show();
}, 1000);
