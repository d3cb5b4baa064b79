// The connection to the worker. It heals by itself; how it is doing is said plainly.

const SILENCE = 5000;
const AGAIN = 2000;

/** Calls hear("hello" | "snapshot", data) and tell(state, since): connecting, live, stalled, lost. */
export function connect(hear, tell) {
  let source = null;
  let last = null;
  let state = "connecting";

  function become(next) {
    if (next === state) return;
    state = next;
    tell(state, last);
  }

  function take(kind, message) {
    last = Date.now();
    hear(kind, JSON.parse(message.data));
    become("live");
  }

  function open() {
    source = new EventSource("events");
    source.addEventListener("hello", (message) => take("hello", message));
    source.addEventListener("snapshot", (message) => take("snapshot", message));
    source.addEventListener("error", () => {
      become("lost");
      // After an answer that is no stream the browser gives up: then we ask again.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, AGAIN);
    });
  }

  setInterval(() => {
    if (state === "live" && Date.now() - last > SILENCE) become("stalled");
  }, 1000);
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
  open();
}
