// One colour for the ensemble and a muted one for each learner and expert, the same everywhere.
//
// The worker numbers them once and remembers the numbers, so that a name keeps its colour when
// others come and go. From the ninth on colours come again, with another kind of line.

const HUES = 8;
const DASHES = ["solid", "2px,2px", "8px,3px,2px,3px"];

const numberOf = (about, name) => about.colours[name] ?? 0;

/** The class of a learner's colour. */
export const hue = (about, name) => `hue-${numberOf(about, name) % HUES}`;

/** How a learner's or an expert's curve is drawn. */
export function stroke(about, name, ink) {
  const number = numberOf(about, name);
  const dash = DASHES[Math.floor(number / HUES) % DASHES.length];
  return { colour: ink.learners[number % HUES], dash };
}

/** The colours of the current theme, for the charts. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    ink: of("--ink"),
    quiet: of("--quiet"),
    line: of("--line"),
    surface: of("--surface"),
    accent: of("--accent"),
    tint: of("--tint"),
    learners: Array.from({ length: HUES }, (_, i) => of(`--hue-${i}`)),
    font: getComputedStyle(document.body).fontFamily,
  };
}
