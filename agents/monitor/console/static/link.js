// The connection to the worker. It reconnects by itself and reports its state.

const SILENCE = 5000;
const RETRY = 2000;

/** Calls receive("hello" | "snapshot" | "bye", data) and report(state, since): connecting, live, stalled, lost. */
export function connect(receive, report) {
  let source = null;
  let last = null;
  let state = "connecting";

  function become(next) {
    if (next === state) return;
    state = next;
    report(state, last);
  }

  function take(kind, message) {
    last = Date.now();
    receive(kind, JSON.parse(message.data));
    become("live");
  }

  function open() {
    source = new EventSource("events");
    source.addEventListener("hello", (message) => take("hello", message));
    source.addEventListener("snapshot", (message) => take("snapshot", message));
    source.addEventListener("bye", (message) => receive("bye", JSON.parse(message.data)));
    source.addEventListener("error", () => {
      become("lost");
      // After a response that is not a stream the browser gives up, so the page reconnects itself.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY);
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
