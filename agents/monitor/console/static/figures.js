// The figures that matter most, and the same in words.

import { byId, el, list, set, text } from "./dom.js";
import { count, decimal, listed, percent, perSecond } from "./format.js";

const ENSEMBLE = "ensemble";

export function figures(store) {
  const now = store.now;
  list(byId("figures"), entries(now), (each) => each.id, make, update);
  text(byId("words"), words(store));
}

function entries(now) {
  const ours = now.rates[ENSEMBLE] ?? {};
  const best = now.best === null ? null : now.rates[now.best].per;
  return [
    {
      id: "error",
      name: "Error rate",
      value: percent(ours.per),
      note:
        best === null
          ? "no labels learned yet"
          : `${goal(now, "per")}best learner, ${now.best}: ${percent(best)}`,
      main: true,
    },
    {
      id: "missed",
      name: "Missed (FNR)",
      value: percent(ours.fnr),
      note: `${goal(now, "fnr")}false alarms (FPR) ${percent(ours.fpr)}`,
    },
    {
      id: "diagnosed",
      name: "Diagnosed",
      value: count(now.diagnosed),
      note: `${perSecond(now.flows.diagnoses)}, ${count(now.answers.referred ?? 0)} referred, ${count(now.incomplete)} incomplete`,
    },
    {
      id: "labelled",
      name: "Labels learned",
      value: count(now.labelled),
      note: `${count(now.labels.waiting)} awaited`,
    },
    {
      id: "regret",
      name: "Regret",
      value: decimal(now.regret, 1),
      note:
        now.bound === null
          ? "no bound for this fusion rule"
          : `at most ${decimal(now.bound, 1)} by theory`,
      share: now.bound ? now.regret / now.bound : null,
    },
  ];
}

/** The target rate in the settings, if there is one. */
const goal = (now, rate) => (rate in now.targets ? `target ${percent(now.targets[rate])}, ` : "");

function make(entry) {
  return el(
    "div",
    { class: entry.main ? "figure main" : "figure", id: `figure-${entry.id}` },
    el("dt", {}, entry.name),
    el("dd", {}, el("span", { class: "value" }), el("span", { class: "note" })),
    el("span", { class: "gauge", "aria-hidden": "true" }, el("span")),
  );
}

function update(node, entry) {
  text(node.querySelector(".value"), entry.value);
  text(node.querySelector(".note"), entry.note);
  const gauge = node.querySelector(".gauge");
  gauge.hidden = entry.share === null || entry.share === undefined;
  if (!gauge.hidden) {
    const share = Math.min(Math.max(entry.share, 0), 1);
    gauge.firstChild.style.width = `${(100 * share).toFixed(1)}%`;
    set(gauge, "data-over", String(entry.share > 1));
  }
}

/** The run so far, in plain sentences. */
export function words(store) {
  const { now, points } = store;
  if (!now.diagnosed)
    return "No patient has been diagnosed yet. All learners start with equal weight.";
  if (!now.labelled) {
    const said = `${count(now.diagnosed)} patients have been diagnosed;`;
    return `${said} no labels have arrived yet, so nothing has been learned.`;
  }
  return [errors(now), course(points), trust(now, points), regret(now)].filter(Boolean).join(" ");
}

function errors(now) {
  const ours = now.rates[ENSEMBLE].per;
  const known = `For ${count(now.labelled)} patients with a known label,`;
  const said = `${known} the ensemble's error rate is ${percent(ours)}`;
  if (now.best === null) return `${said}.`;
  return `${said}; that of its best learner, ${now.best}, is ${percent(now.rates[now.best].per)}.`;
}

/** How the error developed: the first hundred labels beside the last hundred. */
function course(points) {
  const last = points.at(-1);
  const early = points.find((point) => point.n >= 100);
  if (!last || !early || last.n < 2 * early.n) return "";
  const before = points.findLast((point) => point.n <= last.n - 100);
  const wrong = (point) => Math.round(point.e[0] * point.n); // rates are rounded, errors are whole
  const lately = (wrong(last) - wrong(before)) / (last.n - before.n);
  const first = `It got ${percent(early.e[0])} of the first ${count(early.n)} wrong`;
  return `${first}, and ${percent(lately)} of the last ${count(last.n - before.n)}.`;
}

function trust(now, points) {
  const experts = Object.entries(now.weights).sort((a, b) => b[1] - a[1]);
  if (experts.length < 2) return "";
  const first = Object.values(points.find((point) => Object.keys(point.w).length)?.w ?? {});
  const equal = first.length && Math.max(...first) - Math.min(...first) < 0.005;
  const began = equal ? `Weights started equal at ${decimal(first[0])}; now` : "Now";
  const shown = experts.slice(0, 4).map(([name, weight]) => `${name} has ${decimal(weight)}`);
  const rest = experts.length > 4 ? `, ${experts.length - 4} others share the rest` : "";
  return `${began} ${listed(shown)}${rest}.`;
}

function regret(now) {
  if (now.regret === null || now.bound === null) return "";
  const held = now.regret <= now.bound ? "below" : "above";
  return `Regret is ${decimal(now.regret, 1)} errors, ${held} its bound of ${decimal(now.bound, 1)}.`;
}
