// One diagnosis: the answer, how sure it is, what it rests on, and its label once that has come.

import { el } from "./dom.js";
import { count, day, decimal, interval, percent, time } from "./format.js";
import { hue } from "./palette.js";
import { badges, chance } from "./tables.js";

/** The panel's content. */
export function diagnosis(each, about) {
  return [
    answer(each, about),
    truth(each),
    sure(each, about),
    why(each),
    opinions(each, about),
    visits(each),
  ].filter(Boolean);
}

function answer(each, about) {
  const left = each.cannot_exclude.length
    ? `It may be ${each.cannot_exclude.join(" or ")}; the best guess is ${each.label}.`
    : `The best guess is ${each.label}.`;
  return el(
    "section",
    {},
    el(
      "p",
      { class: "answer" },
      el(
        "b",
        { class: !each.referred && each.label === about.positive ? "label positive" : "label" },
        each.referred ? "refer" : each.label,
      ),
      ...badges(each),
    ),
    each.referred ? el("p", {}, left) : null,
    el(
      "p",
      { class: "quiet" },
      `Patient ${each.id}, diagnosed at ${time(each.at)}`,
      each.learned === null ? "." : `, after ${count(each.learned)} labels.`,
    ),
  );
}

function truth(each) {
  if (each.truth === null)
    return section(
      "Label",
      el(
        "p",
        { id: "truth", class: "quiet" },
        each.readable ? "Not known yet." : "This worker may not read labels.",
      ),
    );
  if (each.truth.label === null)
    return section(
      "Label",
      el("p", { id: "truth", class: "quiet" }, `Withdrawn at ${time(each.truth.at)}.`),
    );
  const right = each.truth.label === each.label;
  const guess = each.referred ? "the best guess" : "the diagnosis";
  return section(
    "Label",
    el(
      "p",
      { id: "truth" },
      el("b", { class: "label" }, each.truth.label),
      el(
        "span",
        { class: right ? "quiet" : "unwell" },
        ` ${guess} was ${right ? "right" : "wrong"}; it came at ${time(each.truth.at)}.`,
      ),
    ),
  );
}

function sure(each, about) {
  const [cases, right, low, high] = each.track ?? [0, 0, 0, 1];
  const record = cases
    ? `Of ${count(cases)} patients diagnosed like this before, ${percent(right / cases)} had this label (${interval(low, high, 1)}, which holds 95 times in 100).`
    : "Nobody has been diagnosed like this before.";
  return section(
    "Chance",
    each.chance
      ? el(
          "ul",
          { class: "chances" },
          ...about.labels.map((label) =>
            el("li", {}, el("span", {}, label), chance(each, label)),
          ),
        )
      : null,
    el("p", { class: "record" }, record),
  );
}

function why(each) {
  const items = each.why;
  return section(
    "To know",
    items.length
      ? el("ul", { class: "why" }, ...items.map((said) => el("li", {}, said)))
      : el("p", { class: "quiet" }, "Nothing unusual."),
  );
}

function opinions(each, about) {
  const rows = each.votes.flatMap((vote) => [
    el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        el(
          "span",
          { class: "name" },
          el("span", { class: `swatch ${hue(about, vote.learner)}`, "aria-hidden": "true" }),
          vote.learner,
        ),
      ),
      el("td", {}, vote.label ?? "no opinion", note(vote)),
      el(
        "td",
        { class: "number" },
        vote.accuracy === null ? "-" : percent(vote.accuracy),
        vote.low === null ? null : el("span", { class: "note" }, interval(vote.low, vote.high)),
      ),
      el("td", { class: "number" }, decimal(vote.weight, 2)),
    ),
    reasons(each.reasons[vote.learner], each.label),
  ]);
  const head = [["Learner"], ["Says"], ["Right on such patients", "number"], ["Weight", "number"]];
  return section(
    "What the learners said",
    el(
      "table",
      {},
      el("caption", { class: "sr" }, "Each learner's opinion"),
      el(
        "thead",
        {},
        el("tr", {}, ...head.map(([name, kind]) => el("th", { scope: "col", class: kind ?? null }, name))),
      ),
      el("tbody", {}, ...rows.filter(Boolean)),
    ),
    Object.keys(each.reasons).length > 0 &&
      el(
        "p",
        { class: "quiet" },
        "A part is what the feature added to the log-odds of the label: 0.7 doubles the odds, -0.7 halves them. The rest is what no single feature brings.",
      ),
    each.votes.length > 0 &&
      el(
        "p",
        { class: "quiet" },
        "Such patients are those of the same cube: alike in this learner's features. An interval is about a fixed rule, as long as patients do not change. Rules that learn have none.",
      ),
  );
}

function note(vote) {
  const said = [
    vote.trials === null
      ? `rule ${vote.rule}, tried on few such patients`
      : `rule ${vote.rule}, tried on ${count(vote.trials)} such patients`,
    vote.exploring ? "exploring" : "",
    vote.missing ? `${count(vote.missing)} values missing` : "",
  ];
  return el("span", { class: "note" }, said.filter(Boolean).join("; "));
}

/** What moved a learner, for learners that publish their reasons. */
function reasons(why, label) {
  if (!why) return null;
  const part = ([name, value]) =>
    el("li", {}, `${name} `, el("b", { class: value < 0 ? "against" : "for" }, signed(value)));
  return el(
    "tr",
    { class: "reasons-of" },
    el(
      "td",
      { colspan: 4 },
      el("span", { class: "note" }, `For ${label}, rule ${why.rule}:`),
      el("ul", { class: "parts" }, ...why.parts.map(part), part(["the rest", why.rest])),
    ),
  );
}

const signed = (value) => `${value < 0 ? "-" : "+"}${decimal(Math.abs(value))}`;

/** The same person's other visits among the latest diagnoses. */
function visits(each) {
  if (!each.visits.length) return null;
  return section(
    "Other visits of this person",
    el(
      "ul",
      { class: "visits" },
      ...each.visits.map((visit) =>
        el(
          "li",
          {},
          el("a", { href: `#diagnosis=${visit.token}` }, day(visit.at)),
          ` ${visit.referred ? `refer (${visit.label}?)` : visit.label}`,
        ),
      ),
    ),
  );
}

function section(title, ...content) {
  return el("section", {}, el("h3", {}, title), ...content.filter(Boolean));
}
