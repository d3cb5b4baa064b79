// Deep links: what follows # in the address.
//
//   #overview, #theory       a view
//   #learner=NAME            a learner's details
//   #diagnosis=TOKEN         a diagnosis and its label
//   #diagnoses, #tasks, …    a part of the overview, by the id of its element

import { set } from "./dom.js";

const VIEWS = ["overview", "theory"];

/** Calls shown(view) when the view changes, open(kind, name) for details and close() without. */
export class Route {
  constructor(shown, open, close) {
    this.shown = shown;
    this.open = open;
    this.close = close;
    this.follows = false;
    addEventListener("hashchange", () => this.follow());
    this.#show(this.#view());
  }

  /** Go where the address says; for details, once the page knows what there is. */
  follow() {
    const [kind, name] = this.#parts();
    this.#show(this.#view());
    if (name !== undefined) return this.open(kind, name);
    this.close();
    const place = kind && !VIEWS.includes(kind) && document.getElementById(kind);
    if (place && kind !== "main") place.closest("section")?.scrollIntoView();
  }

  /** Follow the address once, when there is something to show. */
  begin() {
    if (this.follows) return;
    this.follows = true;
    this.follow();
  }

  /** Leave the details: back to the view that they were opened from. */
  leave() {
    if (this.#parts()[1] === undefined) return;
    const view = document.body.dataset.view;
    history.replaceState(null, "", view === "overview" ? location.pathname : `#${view}`);
  }

  #parts() {
    const [kind, name] = location.hash.slice(1).split("=", 2);
    try {
      return [kind, name === undefined ? undefined : decodeURIComponent(name)];
    } catch {
      return ["", undefined]; // not an address of ours
    }
  }

  #view() {
    const [kind, name] = this.#parts();
    if (name !== undefined || kind === "main") return document.body.dataset.view;
    return kind === "theory" ? "theory" : "overview";
  }

  #show(view) {
    const changed = document.body.dataset.view !== view;
    set(document.body, "data-view", view);
    for (const link of document.querySelectorAll("nav [data-view]")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (changed) this.shown(view);
  }
}

/** Go to the details of a learner or a diagnosis. */
export const goTo = (kind, name) => {
  location.hash = `${kind}=${encodeURIComponent(name)}`;
};
