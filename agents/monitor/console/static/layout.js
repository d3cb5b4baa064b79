// The layout of the picture: left to right where there is room, otherwise top to bottom.
// Returns boxes by name and ways {id, way, d, at, anchor, named}: `way` names the flow drawn along it.

const WIDE = 900;
const PILL = { w: 128, h: 44 }; // fits the longest name in any typeface

const middle = (box) => ({ x: box.x + box.w / 2, y: box.y + box.h / 2 });

function bend(a, b) {
  const half = (b.x - a.x) / 2;
  return `M${a.x},${a.y} C${a.x + half},${a.y} ${b.x - half},${b.y} ${b.x},${b.y}`;
}

const straight = (...points) => `M${points.map((point) => `${point.x},${point.y}`).join(" L")}`;

export function arrange(width, learners, contextual) {
  return width >= WIDE ? across(width, learners, contextual) : down(width, learners, contextual);
}

function across(width, learners, contextual) {
  const lane = learners.length <= 4 ? 78 : learners.length <= 10 ? 58 : 46;
  const card = { w: 184, h: Math.min(60, lane - 10) };
  const core = { w: 184, h: 116 };
  const fixed = [PILL.w, card.w, PILL.w, core.w, PILL.w];
  const gap = (width - fixed.reduce((a, b) => a + b, 0)) / 4;
  const x = fixed.map((_, i) => fixed.slice(0, i).reduce((a, b) => a + b + gap, 0));
  const above = contextual ? 84 : 14;
  const height = Math.max(learners.length * lane, core.h);
  const mid = above + height / 2;
  const start = mid - (learners.length * lane) / 2;
  const boxes = {};
  const ways = [];
  learners.forEach((name, i) => {
    const y = start + (i + 0.5) * lane;
    boxes[`instances.${name}`] = { x: x[0], y: y - PILL.h / 2, ...PILL };
    boxes[`learner.${name}`] = { x: x[1], y: y - card.h / 2, ...card };
  });
  boxes.group = { x: x[1] - 14, y: start - 4, w: card.w + 28, h: learners.length * lane + 8 };
  boxes.predictions = { x: x[2], y: mid - PILL.h / 2, ...PILL };
  boxes.ensemble = { x: x[3], y: mid - core.h / 2, ...core };
  boxes.diagnoses = { x: x[4], y: mid - PILL.h / 2, ...PILL };
  const low = above + height + 56;
  const centre = middle(boxes.ensemble).x;
  boxes.labels = { x: centre - PILL.w / 2 + 34, y: low, ...PILL };
  boxes.feedback = { x: x[1] + (card.w - PILL.w) / 2, y: low, ...PILL };
  boxes.deadletter = { x: x[4], y: low, ...PILL };
  if (contextual) boxes.contexts = { x: centre - PILL.w / 2, y: 4, ...PILL };

  learners.forEach((name) => {
    const from = boxes[`instances.${name}`];
    const to = boxes[`learner.${name}`];
    const y = middle(to).y;
    const way = `instances.${name}`;
    ways.push({
      id: way,
      way,
      d: straight({ x: from.x + from.w, y }, { x: to.x, y }),
      at: { x: (from.x + from.w + to.x) / 2 - 6, y: y - 8 },
      anchor: "middle",
    });
    ways.push({
      id: `out.${name}`,
      way,
      d: bend({ x: to.x + to.w, y }, { x: boxes.predictions.x, y: mid }),
    });
  });
  const line = (id, a, b, at, anchor = "middle") =>
    ways.push({ id, way: id, d: straight(a, b), at, anchor });
  const end = (box) => box.x + box.w;
  line(
    "predictions",
    { x: end(boxes.predictions), y: mid },
    { x: boxes.ensemble.x, y: mid },
    { x: (end(boxes.predictions) + boxes.ensemble.x) / 2 - 4, y: mid - 8 },
  );
  line(
    "diagnoses",
    { x: end(boxes.ensemble), y: mid },
    { x: boxes.diagnoses.x, y: mid },
    { x: (end(boxes.ensemble) + boxes.diagnoses.x) / 2 - 4, y: mid - 8 },
  );
  const foot = boxes.ensemble.y + boxes.ensemble.h;
  const up = middle(boxes.labels).x;
  line(
    "labels",
    { x: up, y: low },
    { x: up, y: foot },
    { x: up + 10, y: (low + foot) / 2 + 4 },
    "start",
  );
  if (contextual)
    line(
      "contexts",
      { x: centre, y: 4 + PILL.h },
      { x: centre, y: boxes.ensemble.y },
      { x: centre + 10, y: (boxes.ensemble.y + 4 + PILL.h) / 2 + 4 },
      "start",
    );
  const level = low + PILL.h / 2;
  const left = boxes.ensemble.x + 28;
  ways.push({
    id: "feedback",
    way: "feedback",
    d: straight({ x: left, y: foot }, { x: left, y: level }, { x: end(boxes.feedback), y: level }),
    at: { x: (left + end(boxes.feedback)) / 2, y: level - 8 },
    anchor: "middle",
  });
  const back = middle(boxes.feedback).x;
  ways.push({
    id: "feedback-up",
    way: "feedback",
    d: straight({ x: back, y: low }, { x: back, y: boxes.group.y + boxes.group.h }),
  });
  return { width, height: low + PILL.h + 8, boxes, ways };
}

function down(full, learners, contextual) {
  const width = Math.min(full, 560);
  const off = (full - width) / 2;
  const lane = 72;
  const pill = { ...PILL, w: 110 };
  const gap = width < 420 ? 44 : 72;
  const rail = 16;
  const card = { w: width - pill.w - gap - rail - 12, h: 58 };
  const boxes = {};
  const ways = [];
  learners.forEach((name, i) => {
    const y = 6 + (i + 0.5) * lane;
    boxes[`instances.${name}`] = { x: off, y: y - pill.h / 2, ...pill };
    boxes[`learner.${name}`] = { x: off + pill.w + gap, y: y - card.h / 2, ...card };
    const to = boxes[`learner.${name}`];
    const way = `instances.${name}`;
    ways.push({
      id: way,
      way,
      d: straight({ x: off + pill.w, y }, { x: to.x, y }),
      at: { x: off + pill.w + gap / 2 - 4, y: y - 8 },
      anchor: "middle",
    });
  });
  const first = boxes[`learner.${learners[0]}`];
  boxes.group = { x: first.x - 8, y: 4, w: card.w + 16, h: learners.length * lane + 4 };
  const bottom = boxes.group.y + boxes.group.h;
  const centre = middle(first).x;
  boxes.predictions = { x: centre - PILL.w / 2, y: bottom + 40, ...PILL };
  const core = { w: Math.min(card.w, 220), h: 112 };
  boxes.ensemble = { x: centre - core.w / 2, y: boxes.predictions.y + PILL.h + 40, ...core };
  const foot = boxes.ensemble.y + core.h;
  boxes.labels = { x: off, y: boxes.ensemble.y + 34, ...pill };
  boxes.diagnoses = { x: centre - PILL.w / 2, y: foot + 40, ...PILL };
  boxes.deadletter = { x: off, y: foot + 40, ...PILL };
  if (contextual) boxes.contexts = { x: off, y: boxes.predictions.y + 10, ...pill };
  const line = (id, a, b, at, anchor = "start") =>
    ways.push({ id, way: id, d: straight(a, b), at, anchor });
  const drop = (a, b) => [
    { x: centre, y: a },
    { x: centre, y: b },
    { x: centre + 10, y: (a + b) / 2 + 3 },
  ];
  ways.push({
    id: "out",
    way: "predictions",
    d: straight({ x: centre, y: bottom }, { x: centre, y: boxes.predictions.y }),
  });
  line("predictions", ...drop(boxes.predictions.y + PILL.h, boxes.ensemble.y));
  line("diagnoses", ...drop(foot, boxes.diagnoses.y));
  const level = middle(boxes.labels).y;
  line(
    "labels",
    { x: off + pill.w, y: level },
    { x: boxes.ensemble.x, y: level },
    { x: (off + pill.w + boxes.ensemble.x) / 2 - 3, y: level - 8 },
    "middle",
  );
  if (contextual) {
    const at = middle(boxes.contexts);
    ways.push({
      id: "contexts",
      way: "contexts",
      d: straight(
        { x: off + pill.w, y: at.y },
        { x: boxes.ensemble.x + 16, y: at.y },
        { x: boxes.ensemble.x + 16, y: boxes.ensemble.y },
      ),
    });
  }
  const side = off + width - 2;
  const ensembleEnd = boxes.ensemble.x + core.w;
  const out = boxes.ensemble.y + 40;
  const back = bottom - 28;
  ways.push({
    id: "feedback",
    way: "feedback",
    named: "feedback",
    d: straight(
      { x: ensembleEnd, y: out },
      { x: side, y: out },
      { x: side, y: back },
      { x: boxes.group.x + boxes.group.w, y: back },
    ),
    at: { x: side - 8, y: bottom + 32 },
    anchor: "end",
  });
  return { width: full, height: boxes.diagnoses.y + PILL.h + 8, boxes, ways };
}
