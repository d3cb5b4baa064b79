// What the page knows: who speaks, the newest snapshot, and the curves.
//
// Curves are drawn over labels, which the system as a whole has counted. So those that an earlier
// worker told lead up to those of the next; if labels become fewer, it is another system.

const MOST = 2000;

export class Store {
  constructor() {
    this.about = null;
    this.now = null;
    this.points = [];
  }

  /** Take in what a worker says first; tell whether it is another one than before. */
  hello(about) {
    const before = this.about;
    const old = before?.name === about.name ? this.points : [];
    const first = about.history[0];
    const earlier = first ? old.filter((point) => point.t < first.t) : old;
    const fits = !first || !earlier.length || earlier.at(-1).n <= first.n;
    this.about = about;
    this.points = fits ? [...earlier, ...about.history] : about.history;
    const restarted = before !== null && before.worker !== about.worker;
    if (restarted) this.now = null;
    return restarted;
  }

  /** Take in a snapshot; tell whether the curves have moved. */
  snapshot(now) {
    this.now = now;
    const newest = this.points.at(-1)?.t ?? 0;
    const fresh = now.points.filter((point) => point.t > newest);
    for (const point of fresh) {
      if (point.n < (this.points.at(-1)?.n ?? 0)) this.points = [];
      this.points.push(point);
    }
    if (this.points.length > MOST) this.points = this.points.filter((_, i) => i % 2 === 0);
    return fresh.length > 0;
  }
}
