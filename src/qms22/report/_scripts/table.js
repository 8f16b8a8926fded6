// The ranked table. It scrolls through all rows, but only those in sight are in the document.

// Rows above and below the visible ones, so that a step of the wheel shows no gap.
const SPARE_ROWS = 4;

// Browsers draw no box that is higher than some ten million pixels.
const MOST_LISTED = 250_000;

// More columns in the document would make scrolling slow; the chosen row shows all of them.
const MOST_COLUMNS = 100;

// In em: the least width of the column of reasons, that of a sign, and the heights of a row and a line.
const [LEAST_REASONS, SIGN, LEAST_HEIGHT, LINE] = [24, 0.55, 2.75, 1.25];

const BADGES = { anomaly: "A", normal: "N", unsure: "?" };

class RankedTable {
  constructor(run, marks, onChoose) {
    Object.assign(this, { run, marks, onChoose, flags: run.flags, chosen: 0, room: LEAST_REASONS, sorted: run.columns[0], direction: 1 });
    this.columns = shownColumns(run);
    this.table = document.getElementById("ranked");
    this.head = this.table.querySelector("thead tr");
    this.body = this.table.querySelector("tbody");
    this.box = document.getElementById("ranked-box");
    this.onlyFlagged = document.getElementById("only-flagged");
    this.head.append(...this.columns.map((column) => this.heading(column)));
    this.setWidths();
    this.found = allRows(run);
    this.listen();
  }

  heading(column) {
    const button = element("button", { type: "button", className: "own", text: visible(column.name) });
    button.title = `Sort by ${button.textContent}`;
    const cell = element("th", { scope: "col", className: column.isNumber ? "number" : "", children: [button] });
    button.addEventListener("click", () => this.sort(column));
    return cell;
  }

  // Fixed widths, because the rows in sight change: about as many signs as the first rows have.
  setWidths() {
    this.widths = this.columns.map((column) => {
      if (column.role === "reasons") return 0;
      let signs = visible(column.name).length + 2;
      for (let row = 0; row < Math.min(100, this.run.nKept); row += 1) signs = Math.max(signs, column.text(row).length);
      return 0.65 * Math.min(signs, 20) + (column.role === "rank" ? 4 : 2);
    });
    const group = element("colgroup", { children: this.widths.map(() => element("col")) });
    this.widths.forEach((width, place) => {
      if (width) group.children[place].style.width = `${width}em`;
    });
    this.table.prepend(group);
    this.fitReasons();
  }

  // Reasons take the room that is left beside whole columns: no cell is cut off at the edge.
  fitReasons() {
    this.em = parseFloat(getComputedStyle(this.table).fontSize);
    const place = this.columns.findIndex(({ role }) => role === "reasons");
    let total = this.widths.reduce((sum, width) => sum + width, 0);
    if (place >= 0) {
      let room = this.box.clientWidth / this.em;
      room -= this.widths.slice(0, place).reduce((sum, width) => sum + width, 0);
      for (const width of this.widths.slice(place + 1)) {
        if (room - width < LEAST_REASONS) break;
        room -= width;
      }
      this.room = Math.max(room, LEAST_REASONS);
      total += this.room;
    }
    this.table.style.minWidth = `${total}em`;
    if (this.rows) this.setHeights();
  }

  // About as high as the reasons are long; a row that needs more is higher.
  height(row) {
    const nLines = Math.ceil((SIGN * this.run.reasons.plain(row).length) / (this.room - 1.5));
    return this.em * Math.max(LEAST_HEIGHT, LINE * nLines + 0.8);
  }

  // Where listed rows begin; the line above one of them belongs to it.
  setHeights() {
    this.tops = new Float64Array(this.nListed + 1);
    this.rows.subarray(0, this.nListed).forEach((row, place) => {
      this.tops[place + 1] = this.tops[place] + this.height(row) + (place === this.certain ? this.em * LEAST_HEIGHT : 0);
    });
  }

  // The place of the row at some height of the list.
  placeAt(height) {
    const next = this.tops.findIndex((top) => top > height);
    return next < 0 ? this.nListed : next - 1;
  }

  // An empty line as high as the rows that are not in the document.
  space(height) {
    if (height <= 0) return [];
    const cell = element("td", { colSpan: this.columns.length });
    cell.style.height = `${height}px`;
    const line = element("tr", { className: "space", children: [cell] });
    line.ariaHidden = "true";
    return [line];
  }

  listen() {
    this.onlyFlagged.addEventListener("change", () => this.arrange());
    this.box.addEventListener("scroll", () => {
      this.frame ??= requestAnimationFrame(() => this.render());
    });
    new ResizeObserver(() => {
      this.fitReasons();
      this.render(true);
    }).observe(this.box);
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr[data-row]");
      // A selection of text is for copying, not a choice of the row.
      if (line && getSelection().isCollapsed) this.onChoose(Number(line.dataset.row));
    });
  }

  sort(column, direction) {
    this.direction = direction ?? (column === this.sorted ? -this.direction : 1);
    this.sorted = column;
    this.arrange();
  }

  list(found) {
    this.found = found;
    this.arrange();
  }

  arrange() {
    const rows = this.onlyFlagged.checked ? this.found.filter((row) => this.flags.has(row)) : this.found;
    this.rows = sortRows(rows, this.sorted, this.direction);
    this.nListed = Math.min(this.rows.length, MOST_LISTED);
    this.certain = this.countCertain();
    this.setHeights();
    this.box.scrollTop = 0;
    this.columns.forEach((column, place) => {
      const cell = this.head.cells[place];
      if (column !== this.sorted) cell.removeAttribute("aria-sort");
      else cell.ariaSort = this.direction === 1 ? "ascending" : "descending";
    });
    this.table.ariaRowCount = this.nListed + 1;
    this.showCount();
    this.render(true);
  }

  // How many listed rows are above the line where certainty ends; infinite where there is no line.
  countCertain() {
    const { run, rows, sorted, direction } = this;
    const isByRank = sorted === run.columns[0] && direction === 1;
    const count = rows.findIndex((row) => row >= run.nFlagged);
    return run.isRate && isByRank && count > 0 ? count : Infinity;
  }

  showCount() {
    const { rows, nListed, run } = this;
    const shown = document.getElementById("shown");
    if (rows.length === 0) shown.textContent = "No row matches.";
    else if (rows.length > nListed) shown.textContent = `The first ${countText(nListed)} of ${plural(rows.length, "row")}; filter to see others`;
    else if (rows.length === run.nKept) shown.textContent = plural(rows.length, "row");
    else shown.textContent = `${countText(rows.length)} of ${plural(run.nKept, "row")}`;
    const nLeft = run.columns.length - this.columns.filter(({ role }) => role !== "reasons").length;
    if (nLeft > 0) shown.textContent += `, ${plural(nLeft, "more column")} with the chosen row`;
    document.getElementById("nothing-flagged").hidden = this.flags.count > 0;
  }

  // Put the rows in sight into the document.
  render(isChanged = false) {
    this.frame = undefined;
    if (!this.rows) return;
    const { tops, box } = this;
    const first = Math.max(0, this.placeAt(box.scrollTop) - SPARE_ROWS);
    const end = Math.min(this.nListed, this.placeAt(box.scrollTop + box.clientHeight) + 1 + SPARE_ROWS);
    if (!isChanged && first === this.first && end === this.end) return;
    const hadFocus = this.body.contains(document.activeElement);
    Object.assign(this, { first, end });
    const lines = Array.from(this.rows.subarray(first, end), (row, place) => this.line(row, first + place));
    if (this.certain >= first && this.certain < end) lines.splice(this.certain - first, 0, this.border());
    this.body.replaceChildren(...this.space(tops[first]), ...lines, ...this.space(tops[this.nListed] - tops[end]));
    this.mark();
    if (hadFocus && !this.focus(this.chosen)) this.box.focus({ preventScroll: true });
  }

  border() {
    const cell = element("td", { colSpan: this.columns.length, text: "not certain from here on" });
    return element("tr", { className: "border", children: [cell] });
  }

  line(row, place) {
    const blamed = new Map();
    for (const { columns } of this.run.reasons.of(row)) {
      columns.forEach((name, at) => blamed.set(name, blamed.get(name) === "blamed" || at === 0 ? "blamed" : "odd"));
    }
    const cells = this.columns.slice(1).map((column) => {
      const text = column.text(row);
      const title = text.length > 16 ? text.slice(0, 1000) : "";
      const odd = (column.role === "value" && blamed.get(column.name)) || "";
      const className = `${column.isNumber ? "number" : "own"} ${odd}`;
      if (column.role !== "reasons") return element("td", { className, title, text });
      return element("td", { className, title, children: [element("div", { className: "lines", text })] });
    });
    const badge = element("span", { className: "badge" });
    const button = element("button", { type: "button", tabIndex: -1, text: String(row + 1) });
    const name = element("th", { scope: "row", className: "number", children: [badge, button] });
    const line = element("tr", { children: [name, ...cells] });
    line.style.height = `${this.height(row)}px`;
    line.dataset.row = row;
    line.ariaRowIndex = place + 2;
    return line;
  }

  // Show which rows are flagged, marked and chosen.
  mark() {
    for (const line of this.body.querySelectorAll("tr[data-row]")) {
      const row = Number(line.dataset.row);
      const { mark, note } = this.marks.of(row);
      line.classList.toggle("flagged", this.flags.has(row));
      line.classList.toggle("chosen", row === this.chosen);
      const [badge, button] = line.cells[0].children;
      badge.textContent = BADGES[mark] ?? "";
      badge.className = `badge ${mark}`;
      badge.title = mark && note ? `${mark}: ${note}` : mark;
      button.tabIndex = row === this.chosen ? 0 : -1;
      button.ariaPressed = String(row === this.chosen);
      const state = `${this.flags.has(row) ? ", flagged" : ""}${mark ? `, marked as ${mark}` : ""}`;
      button.ariaLabel = `Rank ${countText(row + 1)}${state}: show reasons`;
    }
  }

  update(flags, chosen) {
    const hasMoved = flags !== this.flags;
    Object.assign(this, { flags, chosen });
    if (hasMoved && this.onlyFlagged.checked) this.arrange();
    else this.mark();
    if (hasMoved) this.showCount();
  }

  // The row that is some steps below the chosen one in the list; the first one if that is not listed.
  neighbour(steps) {
    const place = this.rows.indexOf(this.chosen);
    const next = place < 0 ? 0 : Math.min(Math.max(0, place + steps), this.nListed - 1);
    return this.rows[next];
  }

  // Scroll so that a row of the list can be seen.
  reveal(row) {
    const place = this.rows.indexOf(row);
    if (place < 0) return;
    const head = this.head.getBoundingClientRect().height;
    const [top, below] = this.tops.subarray(place, place + 2);
    const room = this.box.clientHeight - head;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (below > this.box.scrollTop + room) this.box.scrollTop = below - room;
    this.render();
  }

  focus(row) {
    const button = this.body.querySelector(`tr[data-row="${row}"] button`);
    button?.focus({ preventScroll: true });
    return Boolean(button);
  }
}

// Rank and name, why, the columns that matter, scores, and then all others.
function shownColumns(run) {
  const [rank, id, ...others] = run.columns;
  const matters = others.filter(({ spec }) => spec.matters);
  const rest = others.filter(({ spec }) => !spec.matters);
  return [rank, id, ...(run.reasons.isAny ? [run.reasons] : []), ...matters, ...rest].slice(0, MOST_COLUMNS);
}
