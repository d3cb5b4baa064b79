// What the charts show: the series of each, and a sentence about the newest point.

import { count, decimal, listed, percent } from "./format.js";
import { stroke } from "./palette.js";

/** The labels of a point that count in the error rates: all but those of history. */
export const live = (point) => point.n - (point.h ?? 0);

const percentOf = (value) => (value === null ? null : 100 * value);

function experts(store) {
  return Object.keys(store.now?.weights ?? {});
}

export const CURVES = [
  {
    id: "error",
    title: "Error rate",
    waits: "Waiting for the first label.",
    unit: "%",
    series(store, span, ink) {
      const best = store.now.best;
      const names = ["ensemble", ...store.about.learners.map((learner) => learner.name)];
      const made = names.map((name, i) => ({
        name,
        y: (point) => percentOf(point[span][i]),
        ...(name === "ensemble"
          ? { colour: ink.accent, width: 3 }
          : {
              ...stroke(store.about, name, ink),
              ...(name === best ? { width: 2.25, dash: "6px,4px" } : { width: 1.25, faint: true }),
            }),
        label: name,
      }));
      return [
        ...made.slice(1).filter((each) => each.name !== best),
        ...made.filter((each) => each.name === best),
        made[0],
      ];
    },
    says(store, span) {
      const rates = span === "e" ? store.now.rates : store.now.recent;
      const best = store.now.best;
      if (!rates.ensemble || rates.ensemble.per === null)
        return store.now.taught ? "Labels of history do not count here." : "No labels learned yet.";
      const theirs = best === null ? "" : `, best learner ${best} ${percent(rates[best]?.per)}`;
      return `Ensemble ${percent(rates.ensemble.per)}${theirs}, after ${count(store.now.labelled)} labels.`;
    },
  },
  {
    id: "weights",
    title: "Weights",
    waits: "Waiting for the first diagnosis.",
    series: (store, _span, ink) =>
      experts(store).map((name) => ({
        name,
        label: name,
        y: (point) => point.w[name] ?? null,
        ...stroke(store.about, name, ink),
        width: 2,
      })),
    says(store) {
      const shown = Object.entries(store.now.weights)
        .sort((a, b) => b[1] - a[1])
        .slice(0, 4);
      if (!shown.length) return "No diagnoses yet.";
      const said = shown.map(([name, weight]) => `${name} ${decimal(weight)}`);
      return `Weights in the latest diagnosis: ${listed(said)}.`;
    },
  },
  {
    id: "regret",
    title: "Regret and its bound",
    waits: "Waiting for the first label.",
    theory: true,
    series: (store, _span, ink) => [
      {
        name: "bound",
        label: "bound",
        y: (point) => point.b,
        colour: ink.quiet,
        width: 1.5,
        dash: "2px,3px",
        fill: ink.tint,
      },
      { name: "regret", label: "regret", y: (point) => point.g, colour: ink.accent, width: 3 },
    ],
    says(store) {
      const { regret, bound } = store.now;
      if (regret === null) return "No labels learned yet.";
      const allowed =
        bound === null ? "no theorem bounds it here" : `the bound is ${decimal(bound, 1)}`;
      return `${decimal(regret, 1)} expected errors more than the best expert; ${allowed}.`;
    },
  },
  {
    id: "exploration",
    title: "Exploration",
    waits: "Waiting for the first instance.",
    theory: true,
    unit: "%",
    series: (store, _span, ink) =>
      store.about.learners.map(({ name }, i) => ({
        name,
        label: name,
        y: (point) => percentOf(point.x[i]),
        ...stroke(store.about, name, ink),
        width: 2,
      })),
    says(store) {
      const shown = Object.entries(store.now.exploration).filter(([, share]) => share !== null);
      if (!shown.length) return "No decisions yet.";
      if (store.about.learners.every(({ rules }) => rules.length === 1))
        return "Each learner has only one rule, so there is nothing to explore.";
      const most = shown.reduce((a, b) => (b[1] > a[1] ? b : a));
      return `Share of decisions that explored a rule; highest for ${most[0]}, ${percent(most[1])}.`;
    },
  },
];
