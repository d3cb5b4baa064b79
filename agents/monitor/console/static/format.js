// Numbers as people read them.

const whole = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DASH = "-";
const STICK = "\u00a0"; // keeps a sign on the line of its number
const JOIN = "\u2060"; // keeps an interval on one line

export const count = (n) => (n === null || n === undefined ? DASH : whole.format(n));

export function percent(share, digits = 1) {
  return share === null || share === undefined ? DASH : `${(100 * share).toFixed(digits)}${STICK}%`;
}

export function decimal(value, digits = 2) {
  return value === null || value === undefined ? DASH : value.toFixed(digits);
}

/** Records per second: few digits, and the unit. */
export function perSecond(rate) {
  if (!rate) return "0/s";
  if (rate < 10) return `${rate.toFixed(1)}/s`;
  if (rate < 10000) return `${whole.format(Math.round(rate))}/s`;
  return `${(rate / 1000).toFixed(1)}k/s`;
}

const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** Day and time. */
export const day = (ms) => date.format(new Date(ms));

export const time = (ms) => clock.format(new Date(ms));

export function interval(low, high, digits = 0) {
  return low === null || low === undefined
    ? ""
    : `${(100 * low).toFixed(digits)}${JOIN}–${JOIN}${(100 * high).toFixed(digits)}${STICK}%`;
}

export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** A name cut to fit. */
export const cut = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

/** "a", "a and b", "a, b and c". */
export function listed(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
