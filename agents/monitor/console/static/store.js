// What the page knows: which worker it talks to, the newest snapshot, and the curves.
//
// Curves are drawn over the number of labels, which is counted for the whole system. So the curves of
// an earlier worker continue into those of the next; if the count drops by half, it is another
// system: labels are withdrawn one by one.

const MOST = 2000;

export class Store {
  constructor() {
    this.about = null;
    this.now = null;
    this.points = [];
    this.marks = [];
  }

  /** Store the first event of a worker; return whether it is a different worker than before. */
  hello(about) {
    const before = this.about;
    const old = before?.name === about.name ? this.points : [];
    const first = about.history[0];
    const earlier = first ? old.filter((point) => point.t < first.t) : old;
    const fits = !first || !earlier.length || earlier.at(-1).n <= 2 * first.n;
    this.about = about;
    this.points = fits ? [...earlier, ...about.history] : about.history;
    this.marks = about.marks;
    const restarted = before !== null && before.worker !== about.worker;
    if (restarted) this.now = null;
    return restarted;
  }

  /** Store a snapshot; return whether the curves have moved. */
  snapshot(now) {
    this.now = now;
    this.marks = now.marks;
    const newest = this.points.at(-1)?.t ?? 0;
    const fresh = now.points.filter((point) => point.t > newest);
    for (const point of fresh) {
      if (2 * point.n < (this.points.at(-1)?.n ?? 0)) this.points = [];
      this.points.push(point);
    }
    if (this.points.length > MOST) this.points = this.points.filter((_, i) => i % 2 === 0);
    return fresh.length > 0;
  }
}
