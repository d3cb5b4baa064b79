// Details of one learner or one diagnosis: requested when the panel opens, and every few seconds
// while it is open.

import { diagnosis } from "./diagnosis.js";
import { byId, el } from "./dom.js";
import { count, decimal, percent } from "./format.js";

const EVERY = { learner: 5000, diagnosis: 2000 };
const READING = {
  learner: "Reading the learner's counts from the broker.",
  diagnosis: "Reading the diagnosis and looking for its label.",
};

export class Panel {
  #kind = null;
  #name = null;
  #timer = null;
  #opener = null;

  /** `left()` is called when the panel is closed. */
  constructor(store, left) {
    this.store = store;
    this.left = left;
    this.dialog = byId("panel");
    byId("panel-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.#closed());
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close(); // a click beside the panel
    });
  }

  open(kind, name) {
    if (!(kind in EVERY)) return;
    clearTimeout(this.#timer);
    this.#kind = kind;
    this.#name = name;
    byId("panel-name").textContent = kind === "learner" ? name : "Diagnosis";
    byId("panel-body").replaceChildren(el("p", { class: "quiet" }, READING[kind]));
    if (!this.dialog.open) {
      this.#opener = document.activeElement;
      this.dialog.showModal();
    }
    this.#ask();
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  #closed() {
    clearTimeout(this.#timer);
    const name = this.#name;
    this.#name = null;
    this.left();
    const opener = this.#opener?.isConnected
      ? this.#opener
      : document.querySelector(`[data-learner="${CSS.escape(name)}"]`);
    opener?.focus();
  }

  async #ask() {
    const [kind, name] = [this.#kind, this.#name];
    let shown;
    try {
      const answer = await fetch(`${kind}/${encodeURIComponent(name)}`);
      const said = await answer.json();
      if (!answer.ok) shown = [trouble(said.error)];
      else shown = kind === "learner" ? this.#show(said) : diagnosis(said, this.store.about);
    } catch {
      shown = [trouble("The worker does not answer.")];
    }
    if (this.#name !== name || this.#kind !== kind) return;
    byId("panel-body").replaceChildren(...shown);
    this.#timer = setTimeout(() => this.#ask(), EVERY[kind]);
  }

  #show(learner) {
    return [
      this.#summary(learner),
      rules(learner),
      cubes(learner),
      sizes(learner),
      extremes(learner),
    ];
  }

  #summary(learner) {
    const { now, about } = this.store;
    const name = learner.name;
    const rates = now?.rates?.[name] ?? {};
    const health = now?.health?.[name];
    const features = about.learners.find((each) => each.name === name)?.features ?? [];
    const pairs = [
      ["Error rate", percent(rates.per)],
      ["Miss rate", percent(rates.fnr)],
      ["False alarms", percent(rates.fpr)],
      ["Weight", decimal(now?.weights?.[name], 3)],
      ["Exploring", percent(now?.exploration?.[name])],
      ["Labels", count(learner.labelled)],
    ];
    return el(
      "section",
      {},
      el(
        "p",
        { class: health && !health.well ? "unwell" : "quiet" },
        `${health?.text ?? "unknown"}; ${learner.feedback} feedback.`,
      ),
      accuracy(overall(now, name)),
      el(
        "dl",
        { class: "tiles" },
        ...pairs.map(([title, value]) => el("div", {}, el("dt", {}, title), el("dd", {}, value))),
      ),
      el(
        "p",
        { class: "quiet features" },
        `${count(features.length)} feature${features.length === 1 ? "" : "s"}: ${features.join(", ")}.`,
      ),
    );
  }
}

/** Its accuracy over labelled patients, with the interval. */
function overall(now, name) {
  const [mean, low, high] = now?.accuracy?.[name] ?? [null, 0, 1];
  return { accuracy: mean, low, high };
}

const trouble = (said) => el("p", { class: "unwell", role: "alert" }, said);

function rules(learner) {
  const rows = learner.rules.map((rule) =>
    el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        rule.name,
        el("span", { class: "note" }, rule.learns ? `${rule.kind}, learns` : rule.kind),
      ),
      el("td", { class: "number" }, count(rule.trials)),
      el("td", {}, accuracy(rule)),
    ),
  );
  return section(
    "Rules",
    `Accuracy over all cubes, with a 95 % interval for the mean chance of being right so far; it holds at all times.`,
    grid("The learner's rules", [["Rule"], ["Trials", "number"], ["Accuracy"]], rows),
  );
}

/** A dot with its interval on a scale from 0 to 100 %, and the same in figures. */
function accuracy({ accuracy: mean, low, high }) {
  if (mean === null) return el("span", { class: "quiet" }, "not tried yet");
  const known = low !== null && low !== undefined;
  const range = el("span", { class: "range" });
  range.style.left = `${100 * (known ? low : mean)}%`;
  range.style.width = `${known ? 100 * (high - low) : 0}%`;
  const dot = el("span", { class: "mean" });
  dot.style.left = `${100 * mean}%`;
  return el(
    "span",
    { class: "accuracy" },
    el("span", { class: "scale", "aria-hidden": "true" }, range, dot),
    el("span", { class: "number" }, percent(mean)),
    known ? el("span", { class: "note" }, `${percent(low)} to ${percent(high)}`) : "",
  );
}

function cubes(learner) {
  const rows = learner.phases.map((phase) =>
    el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        `${phase.phase}${phase.phase === learner.phase && learner.phases.length > 1 ? " (now)" : ""}`,
      ),
      el("td", { class: "number" }, count(phase.cuts)),
      el("td", { class: "number" }, count(BigInt(phase.cubes))),
      el("td", { class: "number" }, count(phase.visited)),
      el("td", { class: "number" }, count(phase.labels)),
    ),
  );
  const visited = `${count(learner.visited)} cubes visited in the current phase`;
  const thin = `${count(learner.thin)} of them are thin, with fewer than ${learner.thin_below} labels`;
  const said = `${visited}; ${thin}.`;
  return section(
    "Cubes",
    said,
    grid(
      "Cubes by phase",
      [
        ["Phase"],
        ["Cuts", "number"],
        ["Cubes", "number"],
        ["Visited", "number"],
        ["Labels", "number"],
      ],
      rows,
    ),
  );
}

function sizes(learner) {
  const most = Math.max(...learner.sizes.map((size) => size.cubes), 1);
  const bars = learner.sizes.map((size) => {
    const name =
      size.below === null
        ? `${count(size.from)} or more`
        : size.below === size.from + 1
          ? count(size.from)
          : `${count(size.from)} to ${count(size.below - 1)}`;
    const bar = el("span", { class: "bar", "aria-hidden": "true", hidden: size.cubes === 0 });
    bar.style.width = `${(100 * size.cubes) / most}%`;
    return el(
      "li",
      {},
      el("span", {}, name),
      el("span", { class: "track" }, bar),
      el("span", { class: "number" }, count(size.cubes)),
    );
  });
  return section(
    "Labels in a cube",
    "How many cubes have this many labels.",
    el("ul", { class: "bars" }, ...bars),
  );
}

function extremes(learner) {
  const part = (title, found) =>
    grid(
      title,
      [["Cube"], ["Labels", "number"], ["Accuracy"], ["Best rule"]],
      found.map((cube) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", class: "id" }, `#${cube.cube}`),
          el("td", { class: "number" }, count(cube.labels)),
          el("td", {}, accuracy(cube)),
          el("td", {}, cube.best),
        ),
      ),
      true,
    );
  return section(
    "Biggest and thinnest",
    `Cubes are shown by number only; ${count(learner.withheld)} with fewer than ${learner.shown_from} labels are not.`,
    part("Biggest cubes", learner.biggest),
    part("Thinnest cubes", learner.thinnest),
  );
}

function section(title, said, ...content) {
  return el("section", {}, el("h3", {}, title), el("p", { class: "quiet" }, said), ...content);
}

function grid(caption, columns, rows, visible = false) {
  const head = columns.map(([title, kind]) =>
    el("th", { scope: "col", class: kind ?? null }, title),
  );
  const body = rows.length
    ? rows
    : [el("tr", {}, el("td", { colspan: columns.length, class: "quiet" }, "None yet."))];
  return el(
    "table",
    {},
    el("caption", { class: visible ? null : "sr" }, caption),
    el("thead", {}, el("tr", {}, ...head)),
    el("tbody", {}, ...body),
  );
}
