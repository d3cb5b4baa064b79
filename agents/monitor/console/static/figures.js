// The figures that matter most, and the run so far in words.

import { live } from "./curves.js";
import { byId, el, list, set, text } from "./dom.js";
import { count, decimal, interval, listed, percent, perSecond } from "./format.js";

const ENSEMBLE = "ensemble";

/** Which figure a cause is about: that figure takes its colour. */
const ABOUT = {
  per_target: "error",
  below_baseline: "error",
  error_risen: "error",
  fnr_target: "miss",
  miss_target: "excluded",
  guessing: "miss",
  join_filling: "waiting",
};

export function figures(store) {
  const now = store.now;
  const colours = {};
  for (const { cause, colour } of now.standing.concerns) colours[ABOUT[cause]] ??= colour;
  list(byId("figures"), entries(store), (each) => each.id, make, (node, entry) =>
    update(node, entry, colours[entry.id]),
  );
  text(byId("words"), words(store));
}

function entries({ now, about }) {
  const { last, answers } = now;
  const [errors, error, low, high] = last.error;
  const [ill, miss, least, most] = last.miss;
  const asked = (answers.given ?? 0) + (answers.referred ?? 0);
  const over = `last ${count(errors)} label${errors === 1 ? "" : "s"}`;
  return [
    {
      id: "error",
      name: "Error rate",
      value: percent(error),
      note: errors ? `${over}, ${interval(low, high, 1)}` : "waiting for the first label",
      more: [goal(now.targets.per), errors ? `all labels ${percent(now.rates[ENSEMBLE]?.per)}` : ""],
      main: true,
    },
    {
      id: "miss",
      name: "Miss rate",
      value: percent(miss),
      note: ill ? `of ${count(ill)} ${about.positive}, ${interval(least, most)}` : `no ${about.positive} yet`,
      more: [goal(now.targets.fnr), errors ? `false alarms ${percent(last.alarm[1])}` : ""],
    },
    ...excluded(now),
    {
      id: "usual",
      name: "Baseline",
      value: percent(last.usual_error),
      note: last.usual === null ? "" : `error rate of always answering ${last.usual}`,
    },
    {
      id: "referred",
      name: "Referred",
      value: percent(asked ? answers.referred / asked : null),
      note: asked ? `${count(answers.referred)} of ${count(asked)} patients` : "",
    },
    {
      id: "waiting",
      name: "Waiting for a label",
      value: count(now.labels.waiting),
      note: `${count(now.labelled)} labels learned`,
      more: [now.taught && `and ${count(now.taught)} of history`],
    },
    {
      id: "diagnosed",
      name: "Diagnosed",
      value: count(now.diagnosed),
      note: `${perSecond(now.flows.diagnoses)}, ${count(now.incomplete)} incomplete`,
    },
  ];
}

/** What the settings promise of labels that a diagnosis excludes; not the miss rate, which also counts best guesses. */
function excluded({ missed, miss_targets }) {
  const over = ([label, target]) => (missed[label] ?? 0) - target;
  const [worst, ...others] = Object.entries(miss_targets).sort((a, b) => over(b) - over(a));
  if (!worst) return [];
  const [label, target] = worst;
  const rest = others.map(([name, most]) => `${name} ${percent(missed[name])} (${goal(most)})`);
  return [
    {
      id: "excluded",
      name: "Wrongly excluded",
      value: percent(missed[label]),
      note: `of all ${label}`,
      more: [goal(target), ...rest],
    },
  ];
}

const goal = (target) => (target === undefined ? "" : `target ${percent(target)}`);

function make(entry) {
  return el(
    "div",
    { class: entry.main ? "figure main" : "figure", id: `figure-${entry.id}` },
    el("dt", {}, entry.name),
    el(
      "dd",
      {},
      el("span", { class: "value" }),
      el("span", { class: "note" }),
      el("span", { class: "more" }),
    ),
  );
}

function update(node, entry, colour) {
  text(node.querySelector(".value"), entry.value);
  text(node.querySelector(".note"), entry.note);
  text(node.querySelector(".more"), (entry.more ?? []).filter(Boolean).join(", "));
  set(node, "data-colour", colour ?? "");
}

/** The run so far, in plain sentences. */
export function words(store) {
  const { now, points } = store;
  if (!now.diagnosed)
    return "No patient has been diagnosed yet. All learners start with equal weight.";
  if (!now.labelled && !now.taught) {
    const said = `${count(now.diagnosed)} patients have been diagnosed;`;
    return `${said} no labels have arrived yet, so nothing has been learned.`;
  }
  return [errors(now), course(points), trust(now, points)].filter(Boolean).join(" ");
}

function errors(now) {
  if (!now.labelled) {
    const said = `The ensemble has learned ${count(now.taught)} labels of history;`;
    return `${said} no label of a patient since then has arrived yet.`;
  }
  const ours = now.rates[ENSEMBLE].per;
  const known = `For ${count(now.labelled)} patients with a known label,`;
  const said = `${known} the ensemble's error rate is ${percent(ours)}`;
  if (now.best === null) return `${said}.`;
  return `${said}; that of its best learner, ${now.best}, is ${percent(now.rates[now.best].per)}.`;
}

/** How the error developed: the first hundred labels beside the last hundred, without history. */
function course(points) {
  const last = points.at(-1);
  const early = points.find((point) => live(point) >= 100);
  if (!last || !early || live(last) < 2 * live(early)) return "";
  const before = points.findLast((point) => live(point) <= live(last) - 100);
  const wrong = (point) => Math.round(point.e[0] * live(point)); // rates are rounded, errors whole
  const newest = live(last) - live(before);
  const lately = (wrong(last) - wrong(before)) / newest;
  const first = `It got ${percent(early.e[0])} of the first ${count(live(early))} wrong`;
  return `${first}, and ${percent(lately)} of the last ${count(newest)}.`;
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
