// Curves over the labels learned: each a figure with a sentence that describes it.

import { byId, el, table, text } from "./dom.js";
import { CURVES, live } from "./curves.js";
import { count, cut, time } from "./format.js";
import { colours } from "./palette.js";

const ROWS = 8;
const NAMED = 12;
const WIDE = 1500; // as in base.css
const SETTLED = 30; // labels after which a rate is more than noise; the axis is scaled by rates from then on

export class Charts {
  #drawn = "";
  constructor(store) {
    this.store = store;
    this.span = "e";
    for (const chart of CURVES)
      byId(chart.theory ? "theory-charts" : "charts").append(frame(chart));
    document.addEventListener("hb-theme", () => this.draw(true));
    addEventListener("load", () => this.draw(true)); // the chart library loads last
    byId("span").addEventListener("change", (event) => {
      this.span = event.target.value;
      this.draw(true);
    });
  }

  /** Draw, if anything is new. */
  draw(forced = false) {
    const { store } = this;
    if (!store.now?.rates) return;
    for (const chart of CURVES) text(byId(`says-${chart.id}`), chart.says(store, this.span));
    const newest = `${store.points.length} ${store.points.at(-1)?.t} ${store.marks.length}`;
    const state = `${newest} ${store.now.best} ${document.body.dataset.view}`;
    if (!window.Plotly || (!forced && state === this.#drawn)) return;
    this.#drawn = state;
    const ink = colours();
    for (const chart of CURVES) this.#one(chart, ink);
  }

  #one(chart, ink) {
    const { points, marks } = this.store;
    const node = byId(`plot-${chart.id}`);
    const series = chart.series(this.store, this.span, ink);
    const x = points.map((point) => point.n);
    const traces = series.map((each) => trace(each, x, points.map(each.y), chart.unit));
    const none = traces.every(({ y }) => y.every((value) => value === null));
    node.hidden = none;
    byId(`none-${chart.id}`).hidden = !none;
    if (none || !node.clientWidth) return; // of another view, or nothing to draw
    const shown = series.map((each, i) => ({
      ...each,
      value: traces[i].y.findLast((y) => y !== null),
    }));
    const high = top(traces, points.map(settled));
    const place = layout(chart, ink, traces, shown, node.clientWidth, high);
    place.shapes = marks.filter((mark) => inside(mark, place.xaxis.range)).map((mark) => line(mark, ink));
    const spots = markers(marks, place.xaxis.range, place.yaxis.range[1], ink);
    window.Plotly.react(node, [...traces, spots], place, {
      displayModeBar: false,
      responsive: true,
      doubleClick: false,
    });
    node.setAttribute("aria-label", `${chart.title}. ${chart.says(this.store, this.span)}`);
    rows(chart, series, points);
  }
}

const MARKS = { restart: "solid", workers: "dot", settings: "dash" };

const inside = (mark, [from, to]) => mark.n >= from && mark.n <= to;

/** A line where something happened: a restart, other workers, other settings. */
function line(mark, ink) {
  return {
    type: "line",
    x0: mark.n,
    x1: mark.n,
    y0: 0,
    y1: 1,
    yref: "paper",
    layer: "below",
    line: { color: ink.quiet, width: 1, dash: MARKS[mark.kind] ?? "dot" },
  };
}

/** What happened, under the pointer at the top of its line. */
function markers(marks, range, high, ink) {
  const shown = marks.filter((mark) => inside(mark, range));
  return {
    type: "scatter",
    mode: "markers",
    name: "",
    x: shown.map((mark) => mark.n),
    y: shown.map(() => high * 0.97),
    text: shown.map((mark) => `${time(mark.t)} ${mark.text}`),
    hovertemplate: "%{text}<extra></extra>",
    marker: { color: ink.quiet, symbol: "triangle-down", size: 9 },
    cliponaxis: false,
  };
}

function frame(chart) {
  return el(
    "figure",
    { class: "card chart" },
    el(
      "figcaption",
      {},
      el("h3", {}, chart.title),
      el("p", { id: `says-${chart.id}`, class: "quiet" }),
    ),
    el("p", { id: `none-${chart.id}`, class: "nothing quiet" }, chart.waits),
    el("div", {
      id: `plot-${chart.id}`,
      class: "plot",
      role: "img",
      "aria-label": chart.title,
      hidden: true,
    }),
    el(
      "details",
      {},
      el("summary", {}, "As a table"),
      el(
        "table",
        { id: `rows-${chart.id}` },
        el("caption", { class: "sr" }, `${chart.title}, newest first`),
      ),
    ),
  );
}

function trace(each, x, y, unit = "") {
  return {
    type: "scatter",
    mode: y.filter((value) => value !== null).length === 1 ? "markers" : "lines",
    marker: { color: each.colour, size: 8 },
    name: each.label,
    x,
    y,
    connectgaps: true,
    line: { color: each.colour, width: each.width, dash: each.dash ?? "solid", shape: "linear" },
    opacity: each.faint ? 0.8 : 1,
    fill: each.fill ? "tozeroy" : "none",
    fillcolor: each.fill,
    hovertemplate: unit ? "%{y:.1f} %" : "%{y:.2f}",
  };
}

function layout(chart, ink, traces, series, width, high) {
  const axis = {
    color: ink.quiet,
    gridcolor: ink.line,
    linecolor: ink.line,
    zeroline: false,
    fixedrange: true,
    tickfont: { size: 11 },
  };
  return {
    height: innerWidth >= WIDE ? 340 : 232,
    margin: { l: 40, r: Math.min(96, Math.max(60, width * 0.18)), t: 10, b: 38 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: ink.font, size: 12, color: ink.quiet },
    showlegend: false,
    dragmode: false,
    hovermode: "x unified",
    hoverlabel: { bgcolor: ink.surface, bordercolor: ink.line, font: { color: ink.ink, size: 12 } },
    xaxis: {
      ...axis,
      title: { text: "labels learned", font: { size: 11 }, standoff: 6 },
      showgrid: false,
      nticks: 6,
      range: span(traces),
      tickformat: ",d",
    },
    yaxis: { ...axis, range: [0, high], nticks: 5, ticksuffix: chart.unit ? " %" : "" },
    annotations: labels(series, high, ink),
  };
}

/** From the first label, unless the curves begin much later, as on a worker that started recently. */
function span(traces) {
  const x = traces[0]?.x ?? [];
  const last = Math.max(x.at(-1) ?? 0, 1);
  const first = x[0] ?? 0;
  return [first < 0.2 * last ? 0 : Math.min(first, last - 1), last];
}

/** With only a few labels, rates jump; they start again after history. */
const settled = (point) => (live(point) || point.n) >= SETTLED;

/** The highest value to show: that of settled points, if there are any. */
function top(traces, settled) {
  const calm = traces.flatMap(({ y }) => y.filter((value, i) => value !== null && settled[i]));
  const all = traces.flatMap(({ y }) => y.filter((value) => value !== null));
  return (Math.max(...(calm.length ? calm : all), 0) || 1) * 1.12;
}

/** Names at the ends of the lines, moved apart where they would overlap. */
function labels(series, high, ink) {
  const apart = high * 0.085;
  const known = series.filter((each) => each.value !== undefined).sort((a, b) => a.value - b.value);
  const plain = known.length > 8 ? known.filter((each) => !each.faint) : known;
  const shown = plain.slice(-NAMED); // with very many, only the highest
  let floor = -Infinity;
  const placed = shown.map((each) => {
    floor = Math.max(Math.min(each.value, high), floor + apart);
    return { each, y: floor };
  });
  const over = Math.max(0, (placed.at(-1)?.y ?? 0) - high);
  return placed.map(({ each, y }) => ({
    x: 1,
    xref: "paper",
    xanchor: "left",
    xshift: 6,
    y: y - over,
    yanchor: "middle",
    text: cut(each.label, 13),
    showarrow: false,
    font: { size: 11, color: each.faint ? ink.quiet : each.colour },
  }));
}

function rows(chart, series, points) {
  const node = byId(`rows-${chart.id}`);
  const names = ["labels", ...series.map((each) => each.label)];
  if (node.dataset.names !== names.join()) {
    node.tHead?.remove();
    for (const body of [...node.tBodies]) body.remove();
    node.dataset.names = names.join();
  }
  const body = table(
    node,
    names.map((name) => [name, "number"]),
  );
  const step = Math.max(1, Math.floor(points.length / ROWS));
  const picked = points
    .filter((_, i) => (points.length - 1 - i) % step === 0)
    .slice(-ROWS)
    .reverse();
  const show = (value) =>
    value === null ? "-" : chart.unit ? `${value.toFixed(1)} %` : value.toFixed(2);
  body.replaceChildren(
    ...picked.map((point) =>
      el(
        "tr",
        {},
        el("th", { scope: "row", class: "number" }, count(point.n)),
        ...series.map((each) => el("td", { class: "number" }, show(each.y(point)))),
      ),
    ),
  );
}
