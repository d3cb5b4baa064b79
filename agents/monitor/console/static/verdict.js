// The verdict: a sentence with its colour, the same on the pill and in the tab's icon.
//
// The worker decides it. Only what concerns the connection to the worker itself is decided here,
// because nobody else can know.

import { byId, el, list, set, text } from "./dom.js";
import { duration, time } from "./format.js";

const ICONS = { grey: "#6b7280", green: "#0b6e69", amber: "#b7791f", red: "#b3261e" };
const mark = (colour) =>
  `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${ICONS[colour]}"/><g fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round"><path d="M8 8c6 0 5 8 9 8M8 16h9M8 24c6 0 5-8 9-8" opacity=".75"/><path d="M17 16h4"/></g><circle cx="23.500" cy="16" r="3.200" fill="#fff"/></svg>`,
  )}`;

/** What to show: {word, colour, sentence, concerns}. `since` is when the worker was last heard. */
function judged(link, since, standing, farewell) {
  const seen = since ? ` The figures are from ${time(since)}.` : "";
  if (farewell !== null && link !== "live")
    return { word: "Ended", colour: "grey", sentence: farewell || `This worker has stopped.${seen}` };
  if (link === "lost") {
    const word = since ? `Lost for ${duration((Date.now() - since) / 1000)}` : "Connection lost";
    const sentence = `No connection to this worker.${seen} The page keeps trying to reconnect.`;
    return { word, colour: "red", sentence };
  }
  if (link === "stalled")
    return {
      word: "No news",
      colour: "red",
      sentence: `The worker is connected but sends nothing: it hangs.${seen}`,
    };
  if (!standing)
    return { word: "Connecting", colour: "grey", sentence: "Connecting to the worker." };
  const { state, colour, sentence, concerns } = standing;
  return { word: state[0].toUpperCase() + state.slice(1), colour, sentence, concerns };
}

export function verdict(link, since, standing, farewell) {
  const { word, colour, sentence, concerns = [] } = judged(link, since, standing, farewell);
  set(byId("pill"), "data-colour", colour);
  set(byId("verdict"), "data-colour", colour);
  set(byId("icon"), "href", mark(colour));
  text(byId("pill-text"), word);
  text(byId("sentence"), sentence);
  list(
    byId("concerns"),
    concerns.slice(1),
    (each) => `${each.cause} ${each.text}`,
    (each) => el("li", { "data-colour": each.colour }, `${each.text[0].toUpperCase()}${each.text.slice(1)}.`),
  );
  set(document.body, "data-link", link);
}
