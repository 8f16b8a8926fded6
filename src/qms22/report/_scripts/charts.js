// Shared by all charts: colors of the theme, axes, bars, and a size that follows the page.

const probe = document.documentElement.appendChild(element("span", { hidden: true }));

function color(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

// Colors are read at every drawing, because the theme may have changed.
function axis(label, more = {}) {
  const line = { stroke: () => color("line"), width: 1 };
  return {
    label,
    labelSize: 20,
    labelGap: 2,
    stroke: () => color("soft"),
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    grid: line,
    ticks: { ...line, size: 5 },
    ...more,
  };
}

function barSeries(name, more = {}) {
  return {
    fill: () => color(name),
    width: 0,
    points: { show: false },
    paths: uPlot.paths.bars({ size: [1, Infinity], gap: 1, ...more }),
  };
}

// Transparent bars, through which the bars behind them can be seen.
function outlineSeries(name) {
  return {
    ...barSeries(name),
    fill: () => `color-mix(in srgb, ${color(name)} 25%, transparent)`,
    stroke: () => color(name),
    width: 2,
  };
}

function newChart(box, data, { cursor = {}, hooks = {}, ...options }) {
  const chart = new uPlot(
    {
      width: Math.max(box.clientWidth, 200),
      height: 240,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false }, ...cursor },
      hooks,
      ...options,
    },
    data,
    box,
  );
  const follow = new ResizeObserver(() => {
    if (box.clientWidth > 0 && box.clientWidth !== chart.width) {
      chart.setSize({ width: box.clientWidth, height: 240 });
    }
  });
  follow.observe(box);
  return {
    chart,
    destroy() {
      follow.disconnect();
      chart.destroy();
    },
  };
}

function middles(edges) {
  return edges.slice(1).map((edge, bin) => (edge + edges[bin]) / 2);
}

function drawLine(chart, x, name) {
  const { ctx, bbox } = chart;
  const at = Math.round(chart.valToPos(x, "x", true));
  ctx.save();
  ctx.strokeStyle = color(name);
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(at, bbox.top);
  ctx.lineTo(at, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

// The tops of bars as a line, drawn by hand: a series has no steps between edges. Levels, which have
// no edges, get a dash each.
function drawTops(chart, edges, heights, name) {
  const { ctx } = chart;
  const isLevel = edges.length === 0;
  ctx.save();
  ctx.strokeStyle = color(name);
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  heights.forEach((height, bin) => {
    const [left, right] = isLevel ? [bin - 0.44, bin + 0.44] : [edges[bin], edges[bin + 1]];
    const y = chart.valToPos(height, "y", true);
    const start = chart.valToPos(left, "x", true);
    if (isLevel) ctx.moveTo(start, y);
    else ctx.lineTo(start, y);
    ctx.lineTo(chart.valToPos(right, "x", true), y);
  });
  ctx.stroke();
  ctx.restore();
}

function drawDot(chart, x, y) {
  const { ctx } = chart;
  ctx.save();
  ctx.fillStyle = color("flagged");
  ctx.strokeStyle = color("page");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  ctx.arc(chart.valToPos(x, "x", true), chart.valToPos(y, "y", true), 6 * devicePixelRatio, 0, 7);
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}

function drawTriangle(chart, x) {
  const { ctx, bbox } = chart;
  const at = chart.valToPos(x, "x", true);
  const size = 6 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = color("text");
  ctx.beginPath();
  ctx.moveTo(at - size, bbox.top);
  ctx.lineTo(at + size, bbox.top);
  ctx.lineTo(at, bbox.top + 1.5 * size);
  ctx.fill();
  ctx.restore();
}

// A small line without axes: what a number has been, and a dot for what it is; from 0 to 1.
function sparkline({ past, here }, label) {
  const make = (tag, attributes, children = []) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const [width, height, edge] = [240, 48, 6];
  const x = (at) => edge + ((width - 2 * edge) * at) / past.length;
  const y = (value) => height - edge - (height - 2 * edge) * value;
  const points = past.map((value, at) => `${x(at)},${y(value)}`).join(" ");
  const title = make("title", {});
  title.textContent = label;
  return make("svg", { class: "spark", width, height, role: "img" }, [
    title,
    make("polyline", { points }),
    make("circle", { cx: x(past.length), cy: y(here), r: 4 }),
  ]);
}
