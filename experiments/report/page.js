// Draws the figures in the colours of the page, again when those change.
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 40rem)");
const colours = {
  light: ["#0b5394", "#b35900", "#1a7f37", "#8250df", "#a40e26", "#6e7781", "#0e7c86", "#9a6700"],
  dark: ["#7ab8ff", "#f0a04b", "#57c26f", "#c297ff", "#ff8182", "#aeb8c2", "#5ad1d9", "#e3c04f"],
};

// Long names take several lines on a phone.
function wrapped(name) {
  const lines = [""];
  for (const word of String(name).split(" ")) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + word.length > 17) lines.push(word);
    else lines[last] = lines[last] ? `${lines[last]} ${word}` : word;
  }
  return lines.join("<br>");
}

function themed(chart) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink"), line = style.getPropertyValue("--line");
  const soft = style.getPropertyValue("--soft"), flat = chart.data[0].orientation === "h";
  const axis = {gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true};
  const layout = structuredClone(chart.layout);
  Object.assign(layout, {
    font: {color: ink, size: narrow.matches ? 11 : 13},
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    colorway: colours[dark.matches ? "dark" : "light"],
    modebar: {bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink},
    hoverlabel: {bgcolor: style.getPropertyValue("--card"), font: {color: ink}},
    legend: {
      orientation: "h", y: flat ? -0.09 : -0.22, yanchor: "top", font: {size: narrow.matches ? 10 : 12},
    },
  });
  Object.assign(layout.xaxis, axis);
  Object.assign(layout.yaxis, axis);
  if (flat && narrow.matches) {
    const names = chart.data[0].y;
    const text = names.map(wrapped);
    Object.assign(layout.yaxis, {tickvals: names, ticktext: text, tickfont: {size: 9}});
  }
  const data = structuredClone(chart.data);
  for (const one of data) {
    for (const bar of [one.error_x, one.error_y]) if (bar) Object.assign(bar, {color: soft, thickness: 1});
  }
  return [data, layout];
}

function draw(id) {
  const options = {responsive: true, displaylogo: false, displayModeBar: narrow.matches ? false : "hover"};
  Plotly.react(id, ...themed(charts[id]), options);
}

// A figure is drawn when it comes near the window: all at once would take a phone seconds.
const drawn = new Set();
const near = new IntersectionObserver((entries) => {
  for (const {isIntersecting, target} of entries) {
    if (isIntersecting && !drawn.has(target.id)) {
      drawn.add(target.id);
      draw(target.id);
    }
  }
}, {rootMargin: "1200px"});
for (const id of Object.keys(charts)) near.observe(document.getElementById(id));
for (const change of [dark, narrow]) change.addEventListener("change", () => drawn.forEach(draw));
const menu = document.querySelector("nav details");
const wide = matchMedia("(min-width: 60.01rem)");
const fold = () => { menu.open = wide.matches; };
wide.addEventListener("change", fold);
fold();
