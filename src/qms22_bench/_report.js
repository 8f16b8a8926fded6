"use strict";

// Sorting: a heading's button sorts its table, again the other way round; missing values stay last.
function sortKey(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.sort === undefined) return cell.textContent;
  return cell.dataset.sort === "" ? null : Number(cell.dataset.sort);
}

function compare(a, b) {
  if (typeof a === "number") return a - b;
  return a.localeCompare(b, "en", { numeric: true, sensitivity: "base" });
}

function sortTable(heading) {
  const table = heading.closest("table");
  const column = heading.cellIndex;
  const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [sortKey(row, column), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return direction * compare(a, b);
  });
  body.append(...rows.map(([, row]) => row));
}

for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sortTable(button.closest("th")));
}

// Search: rows whose first cell holds the text, in any case, stay.
function search(input) {
  const rows = document.querySelector(`#${CSS.escape(input.dataset.table)} tbody`).rows;
  const wanted = input.value.trim().toLowerCase();
  let shown = 0;
  for (const row of rows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    shown += row.hidden ? 0 : 1;
  }
  const note = wanted === "" ? "" : `${shown} of ${rows.length}`;
  input.closest(".search").querySelector("output").textContent = note;
}

for (const input of document.querySelectorAll(".search input")) {
  input.addEventListener("input", () => search(input));
}

// ROC curves: rates come in thousandths, and the plot is 400 wide and high.
const SIDE = 400;

function svg(tag, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

function frame() {
  const parts = [];
  for (let tick = 0; tick <= 10; tick += 2) {
    const at = (tick / 10) * SIDE;
    const name = (tick / 10).toFixed(1);
    parts.push(svg("path", { class: "frame", d: `M${at},0V${SIDE}M0,${at}H${SIDE}` }));
    parts.push(svg("text", { x: at, y: SIDE + 18, "text-anchor": "middle" }, name));
    parts.push(svg("text", { x: -8, y: SIDE - at + 4, "text-anchor": "end" }, name));
  }
  const middle = SIDE / 2;
  const turned = `translate(-38,${middle}) rotate(-90)`;
  parts.push(svg("path", { class: "guess", d: `M0,${SIDE}L${SIDE},0` }));
  parts.push(svg("text", { x: middle, y: SIDE + 40, "text-anchor": "middle" }, "false positive rate"));
  parts.push(svg("text", { transform: turned, "text-anchor": "middle" }, "true positive rate"));
  return parts;
}

function curvePath(points) {
  const steps = [];
  for (let i = 0; i < points.length; i += 2) {
    steps.push(`${(points[i] / 1000) * SIDE},${(1 - points[i + 1] / 1000) * SIDE}`);
  }
  return `M${steps.join("L")}`;
}

function line(style, d) {
  return svg("path", { class: "curve", d, stroke: style.color, "stroke-dasharray": style.dash || "none" });
}

function legendRow(style, curve) {
  const row = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  const key = svg("svg", { class: "key", viewBox: "0 0 30 10", "aria-hidden": "true" });
  key.append(line(style, "M0,5H30"));
  name.append(key, style.name);
  row.append(name);
  for (const value of [curve.auc, curve.mean]) {
    const cell = document.createElement("td");
    cell.className = "number";
    cell.textContent = value === null ? "–" : value.toFixed(4);
    row.append(cell);
  }
  return row;
}

function drawRoc(data, set) {
  const curves = set.curves.map((curve) => [data.detectors[curve.detector], curve]);
  // The first detector last, on top of the others.
  const lines = curves.map(([style, curve]) => line(style, curvePath(curve.points))).reverse();
  document.getElementById("roc-plot").replaceChildren(...frame(), ...lines);
  const legend = curves.map(([style, curve]) => legendRow(style, curve));
  document.querySelector("#roc-legend tbody").replaceChildren(...legend);
}

const rocData = document.getElementById("roc-data");
if (rocData) {
  const data = JSON.parse(rocData.textContent);
  const select = document.getElementById("roc-set");
  const draw = () => drawRoc(data, data.sets[Number(select.value)]);
  select.addEventListener("change", draw);
  draw();
}
