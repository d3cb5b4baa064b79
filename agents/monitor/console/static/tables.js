// Learners, diagnoses, labels, dead letters and tasks, as tables and lists.

import { byId, el, list, set, table, text } from "./dom.js";
import { count, decimal, interval, percent, perSecond, time } from "./format.js";
import { hue } from "./palette.js";
import { STATES } from "./picture.js";
import { goTo } from "./route.js";

const MANY = 12;

export function learners(store) {
  const { about, now } = store;
  const body = table(byId("learners"), [
    ["Learner"],
    ["Error rate", "number"],
    ["Last 1,000", "number"],
    ["Miss rate", "number"],
    ["False alarms", "number"],
    ["Weight", "number"],
    ["Exploring", "number"],
    ["Learned", "number"],
    ["State"],
  ]);
  const names = ["ensemble", ...about.learners.map((learner) => learner.name)];
  list(
    body,
    names,
    (name) => name,
    (name) => learnerRow(name, about),
    (row, name) => {
      const rates = now.rates[name] ?? {};
      const own = name !== "ensemble";
      const health = now.health[name] ?? { state: "idle", text: "", well: true };
      const said = [
        percent(rates.per),
        percent(now.recent[name]?.per),
        percent(rates.fnr),
        percent(rates.fpr),
        own ? decimal(now.weights[name], 3) : "",
        own ? percent(now.exploration[name]) : "",
        count(own ? now.learned[name] : now.labelled + now.taught),
      ];
      said.forEach((value, i) => text(row.cells[i + 1], value));
      const state = row.cells[8].firstChild;
      text(state.firstChild, health.text);
      text(state.lastChild, STATES[health.state]);
      set(state, "class", `state is-${health.state}${health.well ? "" : " unwell"}`);
      set(row, "class", `${own ? "" : "ours"}${name === now.best ? " best" : ""}`.trim());
    },
  );
}

function learnerRow(name, about) {
  const own = name !== "ensemble";
  const head = own
    ? el(
        "button",
        { type: "button", class: "name", onclick: () => goTo("learner", name) },
        el("span", { class: `swatch ${hue(about, name)}`, "aria-hidden": "true" }),
        name,
      )
    : el(
        "span",
        { class: "name" },
        el("span", { class: "swatch ours", "aria-hidden": "true" }),
        name,
      );
  const numbers = Array.from({ length: 7 }, () => el("td", { class: "number" }));
  const state = el("span", {}, el("span", { class: "long" }), el("span", { class: "short" }));
  return el("tr", {}, el("th", { scope: "row" }, head), ...numbers, el("td", {}, state));
}

export function diagnoses(store) {
  const { about, now } = store;
  const columns = [["Patient"], ["Diagnosis"], ["Chance"], ["Votes, and how often each was right on such patients"]];
  const node = byId("diagnoses");
  const body = table(node, columns);
  const held = isHeld(node) && body.rows.length === now.diagnoses.length;
  text(byId("diagnoses-note"), held ? HELD : SELECT);
  if (held) return;
  const rows = now.diagnoses.length ? now.diagnoses : [null];
  list(
    body,
    rows,
    (each) => (each ? `${each.token}${each.at}` : "none"),
    (each) => (each ? diagnosisRow(each, about) : empty(4, "None yet.")),
  );
}

const SELECT = "Select one for what it rests on and, once it has come, its label. Ids are shortened.";
const HELD = "Held while you are on one; newer ones follow when you leave.";

/** Rows must not move away under the pointer, nor take the focus with them. */
const isHeld = (node) => node.contains(document.activeElement) || node.matches(":hover");

function empty(span, said) {
  return el("tr", { role: "row" }, el("td", { colspan: span, class: "quiet", role: "cell" }, said));
}

function diagnosisRow(each, about) {
  return el(
    "tr",
    // The button is there for keyboards and screen readers; its clicks arrive here as well.
    { role: "row", class: "opens", onclick: () => goTo("diagnosis", each.token) },
    el(
      "th",
      { scope: "row", role: "rowheader" },
      el(
        "button",
        { type: "button", class: "name" },
        el("span", { class: "id" }, each.id),
        el("span", { class: "sr" }, "details"),
      ),
      el("span", { class: "note" }, time(each.at)),
    ),
    el(
      "td",
      { role: "cell" },
      el("span", { class: each.label === about.positive ? "label positive" : "label" }, each.label),
      ...badges(each),
    ),
    el("td", { role: "cell" }, chance(each)),
    el(
      "td",
      { role: "cell" },
      el(
        "ul",
        { class: "votes" },
        ...each.votes.map((vote) => chip(vote, each.label, about)),
      ),
    ),
  );
}

/** What to know before relying on a diagnosis. */
export function badges(each) {
  const shown = [
    each.untaught && ["untaught", "made before enough labels were learned"],
    each.referred && ["referred", "no answer: the patient needs a second look"],
    each.returns && ["return visit", "this person was diagnosed before"],
    !each.complete && ["incomplete", `without ${each.missing.join(", ")}`],
  ];
  return shown
    .filter(Boolean)
    .map(([kind, title]) => el("span", { class: `badge ${kind.replace(" ", "-")}`, title }, kind));
}

/** The chance of the label as a bar; the share of the weight where there is no chance. */
export function chance(each, label = each.label) {
  const share = each.chance?.[label] ?? null;
  if (share === null)
    return el("span", { class: "note" }, each.share === null ? "" : `${percent(each.share, 0)} of the weight`);
  const bar = el("span", { class: "bar" });
  bar.style.width = `${(100 * share).toFixed(1)}%`;
  return el(
    "span",
    { class: "chance" },
    el("span", { class: "rail", "aria-hidden": "true" }, bar),
    el("span", { class: "number" }, chanceText(share)),
  );
}

/** Nothing is ever certain, so nothing is rounded to certainty. */
function chanceText(share) {
  if (share > 0.9995) return `>${percent(0.999)}`;
  return share < 0.0005 ? `<${percent(0.001)}` : percent(share);
}

function chip(vote, decided, about) {
  const sure = vote.accuracy === null ? "" : percent(vote.accuracy, 0);
  const range = interval(vote.low, vote.high);
  const trials = vote.trials === null ? "few" : count(vote.trials);
  const tried = `${trials} trials of rule ${vote.rule}`;
  const right = sure ? `, right ${sure} of the time on such patients${range && ` (${range})`}` : "";
  const trying = vote.exploring ? "; exploring" : "";
  const label = vote.label ?? "no opinion";
  const title = `${vote.learner}: ${label}${right}; ${tried}${trying}`;
  return el(
    "li",
    { class: `vote${vote.label === decided ? "" : " against"}`, title },
    el("span", { class: `swatch ${hue(about, vote.learner)}`, "aria-hidden": "true" }),
    el("span", {}, `${vote.learner} `, el("b", {}, label)),
    sure
      ? el("span", { class: "sure" }, `${sure} `, el("small", {}, range))
      : el("span", { class: "sure" }, vote.trials === null ? "few such patients" : "no such patient yet"),
    vote.exploring ? el("span", { class: "trying" }, "exploring") : null,
  );
}

export function labels(store) {
  const now = store.now.labels;
  const entries = [
    ["Waiting", count(now.waiting), `limit ${count(now.limit)}`],
    ["Settled", count(now.settled), perSecond(store.now.flows.labels)],
    ["Before their patient", count(now.parked), "parked"],
    ["Repeated", count(now.duplicate), "ignored"],
    ["Conflicting", count(now.conflict), "the first one counts"],
    ["Unknown patient", count(now.unknown), "dead letter"],
    ["Expired", count(now.expired), "no label in time"],
    ...corrections(now),
    ...comingAgain(now.repeated),
  ];
  const place = byId("labels");
  if (!place.firstChild) place.append(el("dl", { class: "pairs" }));
  list(
    place.firstChild,
    entries,
    ([name]) => name,
    ([name]) =>
      el(
        "div",
        {},
        el("dt", {}, name),
        el("dd", {}, el("b", { class: "value" }), el("span", { class: "note" })),
      ),
    (row, [, value, note]) => {
      text(row.querySelector(".value"), value);
      text(row.querySelector(".note"), note);
    },
  );
}

function corrections({ amended, withdrawn, unlearned }) {
  if (!amended && !withdrawn) return [];
  return [
    ["Amended", count(amended), "recounted"],
    ["Withdrawn", count(withdrawn), "recounted"],
    ...(unlearned ? [["Not unlearned", count(unlearned), "rules that learn keep them as they were"]] : []),
  ];
}

/** Patients whose id came before: the same words as in `hb status`. */
function comingAgain({ duplicate, conflict, over }) {
  const twice = duplicate + conflict;
  return [
    ...(twice ? [["Second predictions", count(twice), "are ids reused?"]] : []),
    ...(over ? [["After their label", count(over), "was a learner late, or are ids reused?"]] : []),
  ];
}

export function dead(store) {
  const { dead: letters } = store.now;
  const place = byId("dead");
  if (!place.firstChild) place.append(el("p", { class: "quiet" }), el("ul", { class: "reasons" }));
  const [said, reasons] = place.children;
  text(
    said,
    letters.counted
      ? letters.all
        ? `${count(letters.counted)} records could not be used.`
        : `Of the latest ${count(letters.counted)}:`
      : "None: every record could be used.",
  );
  list(
    reasons,
    letters.reasons,
    (each) => `${each.reason} ${each.topic}`,
    (each) =>
      el(
        "li",
        {},
        el("b", {}, `${each.reason}`),
        el("span", { class: "number value" }),
        el("span", { class: "note" }, `${each.topic}: ${each.meaning || "unknown reason"}`),
      ),
    (row, each) => {
      text(row.querySelector(".value"), count(each.count));
    },
  );
}

export function tasks(store) {
  const { now } = store;
  const body = table(byId("tasks"), [["Task"], ["Worker"], ["Behind", "number"], ["State"]]);
  const rows = now.tasks.length > MANY ? byAgent(now.tasks) : now.tasks.map(one);
  list(
    body,
    rows,
    (row) => row.name,
    () =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }),
        el("td"),
        el("td", { class: "number" }),
        el("td", {}, el("span")),
      ),
    (node, row) => {
      text(node.cells[0], row.name);
      text(node.cells[1], row.holder);
      text(node.cells[2], count(row.behind));
      text(node.cells[3].firstChild, row.state);
      set(node.cells[3].firstChild, "class", row.well ? "state" : "state unwell");
    },
  );
  text(byId("workers"), now.workers === 1 ? "1 worker" : `${count(now.workers)} workers`);
}

function one(task) {
  const state = !task.holder ? "unassigned" : (task.phase ?? "assigned");
  const reason = task.reason ? `: ${task.reason}` : "";
  return {
    name: `${task.agent}/${task.partition}`,
    holder: task.holder ?? "none",
    behind: task.behind,
    state: state + reason,
    well: task.holder !== null && (task.phase === undefined || task.phase === "running"),
  };
}

function byAgent(all) {
  return [...Map.groupBy(all, (task) => task.agent)].map(([agent, mine]) => {
    const free = mine.filter((task) => !task.holder).length;
    const holders = new Set(mine.map((task) => task.holder).filter(Boolean));
    const bad = mine.map(one).filter((row) => !row.well);
    return {
      name: `${agent} (${mine.length})`,
      holder: `${holders.size} worker${holders.size === 1 ? "" : "s"}${free ? `, ${free} unassigned` : ""}`,
      behind: mine.reduce((sum, task) => sum + task.behind, 0),
      state: bad.length ? `${bad.length} not running` : "running",
      well: bad.length === 0,
    };
  });
}
