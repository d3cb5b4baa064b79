// The system as a live picture: topics, learners, the ensemble, and what flows between them.

import { byId, set, svg, text } from "./dom.js";
import { count, cut, decimal, listed, percent, perSecond } from "./format.js";
import { arrange } from "./layout.js";
import { hue } from "./palette.js";

export const STATES = {
  working: "working",
  idle: "idle",
  behind: "behind",
  silent: "silent",
  unfed: "no instances",
  unheld: "no worker",
};

const NARROWEST = 240;

export class Picture {
  #made = "";
  #nodes = {};

  /** `choose(name)` is called when a learner is selected. */
  constructor(store, choose) {
    this.store = store;
    this.choose = choose;
    this.place = byId("picture");
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  draw() {
    const { about, now } = this.store;
    if (!now?.rates || this.place.clientWidth < NARROWEST) return; // not shown, or without styles yet
    const learners = about.learners.map((learner) => learner.name);
    const state = JSON.stringify([this.place.clientWidth, learners, about.colours, about.contextual]);
    if (state !== this.#made)
      this.#make(arrange(this.place.clientWidth, learners, about.contextual), learners);
    this.#made = state;
    this.#update(now, learners);
  }

  // Building it.

  #make(plan, learners) {
    const focused = document.activeElement?.closest?.("[data-learner]")?.dataset.learner;
    this.#nodes = { ways: new Map(), learners: new Map(), passed: new Map() };
    const root = svg("svg", {
      width: plan.width,
      height: plan.height,
      viewBox: `0 0 ${plan.width} ${plan.height}`,
      role: "group",
      "aria-labelledby": "h-picture",
      "aria-describedby": "picture-text",
    });
    root.append(arrowhead(), this.#group(plan.boxes.group));
    for (const way of plan.ways) root.append(this.#way(way));
    for (const [id, box] of Object.entries(plan.boxes)) {
      if (id.startsWith("learner."))
        root.append(this.#learner(id.slice(8), box));
      else if (id === "ensemble") root.append(this.#ensemble(box));
      else if (id !== "group") root.append(this.#topic(id, box));
    }
    this.place.replaceChildren(root);
    if (focused) this.#nodes.learners.get(focused)?.card.focus();
  }

  #group(box) {
    return svg("rect", { class: "group", x: box.x, y: box.y, width: box.w, height: box.h, rx: 14 });
  }

  #way({ id, way, d, at, anchor, named }) {
    const flow = svg("path", { class: "flow", d });
    const group = svg(
      "g",
      { class: "way", "aria-hidden": "true" },
      svg("path", { class: "pipe", d, "marker-end": "url(#arrow)" }),
      flow,
    );
    let label = null;
    if (at) {
      label = svg("text", { class: "rate", x: at.x, y: at.y, "text-anchor": anchor });
      group.append(label);
    }
    if (named)
      group.append(
        svg("text", { class: "small", x: at.x, y: at.y - 14, "text-anchor": anchor }, named),
      );
    this.#nodes.ways.set(id, { way, flow, label, group });
    return group;
  }

  #topic(id, box) {
    const small = box.w < 110;
    const name = id.startsWith("instances.")
      ? "instances"
      : id === "deadletter"
        ? "dead letters"
        : id;
    const passed = svg("text", { class: "small", x: box.x + 26, y: box.y + 33 });
    const ticks = [0, 5, 10].map((step) => `M${box.x + 8 + step},${box.y + 12} v20`).join(" ");
    this.#nodes.passed.set(id, passed);
    return svg(
      "g",
      { class: `topic${id === "deadletter" ? " dead" : ""}`, "aria-hidden": "true" },
      svg("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 10 }),
      svg("path", { class: "ticks", d: ticks }),
      svg("text", { class: "name", x: box.x + 26, y: box.y + 19 }, cut(name, small ? 12 : 16)),
      passed,
    );
  }

  #learner(name, box) {
    const own = hue(this.store.about, name);
    const tall = box.h >= 50;
    const small = box.w < 150; // too small for its state, unless it is not well
    const line = svg("text", { class: "small", x: box.x + 16, y: box.y + (tall ? 39 : 30) });
    const state = svg("text", {
      class: "state",
      x: box.x + box.w - 12,
      y: box.y + (tall ? 20 : 15),
      "text-anchor": "end",
    });
    const bar = svg("rect", {
      class: `bar ${own}`,
      x: box.x + 16,
      y: box.y + box.h - 10,
      height: 4,
      rx: 2,
      width: 0,
    });
    const card = svg(
      "g",
      { class: "learner", role: "button", tabindex: "0", "data-learner": name },
      svg("rect", { class: "box", x: box.x, y: box.y, width: box.w, height: box.h, rx: 12 }),
      svg("rect", {
        class: `stripe ${own}`,
        x: box.x,
        y: box.y + 10,
        width: 4,
        height: box.h - 20,
        rx: 2,
      }),
      svg(
        "text",
        { class: "name", x: box.x + 16, y: box.y + (tall ? 20 : 15) },
        cut(name, small ? 11 : 14),
      ),
      state,
      line,
      ...(tall
        ? [
            svg("rect", {
              class: "rail",
              x: box.x + 16,
              y: box.y + box.h - 10,
              width: box.w - 32,
              height: 4,
              rx: 2,
            }),
            bar,
          ]
        : []),
    );
    card.addEventListener("click", () => this.choose(name));
    card.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(name);
    });
    this.#nodes.learners.set(name, { card, line, state, bar, small, room: box.w - 32 });
    return card;
  }

  #ensemble(box) {
    const x = box.x + box.w / 2;
    const line = (kind, y) =>
      svg("text", { class: kind, x, y: box.y + y, "text-anchor": "middle" });
    const parts = {
      title: line("name", 24),
      mode: line("small", 42),
      error: line("big", 76),
      note: line("small", 98),
    };
    const group = svg(
      "g",
      { class: "ensemble", "aria-hidden": "true" },
      svg("rect", { class: "box", x: box.x, y: box.y, width: box.w, height: box.h, rx: 16 }),
      ...Object.values(parts),
    );
    text(parts.title, "ensemble");
    this.#nodes.ensemble = { group, ...parts };
    return group;
  }

  // Keeping it up to date.

  #update(now, learners) {
    const rates = {
      ...now.flows,
      feedback: learners.reduce((sum, name) => sum + (now.flows[`feedback.${name}`] ?? 0), 0),
    };
    for (const { way, flow, label, group } of this.#nodes.ways.values()) {
      const rate = rates[way] ?? 0;
      set(group, "class", rate ? "way moving" : "way");
      if (rate) flow.style.setProperty("--pace", `${pace(rate)}s`);
      if (label) text(label, perSecond(rate));
    }
    for (const [id, node] of this.#nodes.passed) text(node, this.#passed(id, now, learners));
    const trusted = Math.max(...Object.values(now.weights), 0);
    for (const [name, node] of this.#nodes.learners) this.#updateLearner(name, node, now, trusted);
    this.#updateEnsemble(now);
    text(byId("picture-text"), inWords(now, learners, rates));
  }

  #passed(id, now, learners) {
    if (id === "deadletter") return `${count(now.dead.counted)}${now.dead.all ? "" : "+"}`;
    if (id !== "feedback") return short(now.passed[id] ?? 0);
    return short(learners.reduce((sum, name) => sum + now.passed[`feedback.${name}`], 0));
  }

  #updateLearner(name, node, now, trusted) {
    const health = now.health[name] ?? { state: "idle", text: "", well: true };
    const weight = now.weights[name];
    const error = percent(now.rates[name]?.per);
    const said =
      weight === undefined ? `error ${error}` : `error ${error} · weight ${decimal(weight)}`;
    const state = STATES[health.state];
    text(node.line, node.small ? (health.well ? `error ${error}` : state) : said);
    text(node.state, node.small ? "" : state);
    set(node.card, "class", `learner is-${health.state}${health.well ? "" : " unwell"}`);
    set(
      node.card,
      "aria-label",
      `${name}: ${said.replace(" ·", ",")}, ${health.text}. Show details`,
    );
    set(
      node.bar,
      "width",
      String(trusted ? (node.room * (weight ?? 0)) / Math.max(trusted, 0.5) : 0),
    );
  }

  #updateEnsemble(now) {
    const health = now.health.ensemble ?? { state: "idle", well: true };
    const node = this.#nodes.ensemble;
    text(node.mode, `fusion ${this.store.about.mode}`);
    text(node.error, percent(now.rates.ensemble?.per));
    text(node.note, health.well ? "error rate" : STATES[health.state]);
    set(node.group, "class", `ensemble is-${health.state}${health.well ? "" : " unwell"}`);
  }
}

function arrowhead() {
  const marker = svg("marker", {
    id: "arrow",
    viewBox: "0 0 8 8",
    refX: 7,
    refY: 4,
    markerWidth: 6,
    markerHeight: 6,
    orient: "auto",
  });
  marker.append(svg("path", { class: "tip", d: "M0,0.5 L7.500,4 L0,7.500 z" }));
  return svg("defs", {}, marker);
}

/** Seconds that a dot takes to reach the position of the next: the busier, the fewer. */
const pace = (rate) => Math.max(0.3, 1.8 - 0.4 * Math.log10(1 + rate)).toFixed(2);

function short(n) {
  if (n < 10000) return count(n);
  return n < 1e6 ? `${(n / 1000).toFixed(0)}k` : `${(n / 1e6).toFixed(1)}M`;
}

function inWords(now, learners, rates) {
  const heard = learners.map((name) => {
    const decides = perSecond(rates[`instances.${name}`] ?? 0);
    return `${name} decides ${decides}, state: ${now.health[name]?.text ?? "unknown"}`;
  });
  return [
    `Patients arrive as instances at ${learners.length} learners: ${listed(heard)}.`,
    `The ensemble gets ${perSecond(rates.predictions)} predictions`,
    `and ${perSecond(rates.labels)} labels, sends ${perSecond(rates.diagnoses)} diagnoses,`,
    `and returns ${perSecond(rates.feedback)} labels as feedback.`,
  ].join(" ");
}
