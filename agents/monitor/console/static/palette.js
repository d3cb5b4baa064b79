// One colour for the ensemble and a muted one for each learner, the same everywhere.

const LEARNERS = 8;

/** The class of a learner's colour. */
export const hue = (index) => `hue-${index % LEARNERS}`;

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
    learners: Array.from({ length: LEARNERS }, (_, i) => of(`--hue-${i}`)),
    font: getComputedStyle(document.body).fontFamily,
  };
}
