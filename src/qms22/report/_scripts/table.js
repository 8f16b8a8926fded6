// The ranked table; only the rows of one page are in the document.

class RankedTable {
  constructor(run, onChoose) {
    Object.assign(this, { run, onChoose, flags: run.flags, chosen: 0, page: 0, sorted: run.columns[0], direction: 1 });
    this.head = document.querySelector("#ranked thead tr");
    this.body = document.querySelector("#ranked tbody");
    this.search = document.getElementById("search");
    this.onlyFlagged = document.getElementById("only-flagged");
    this.pageBox = document.getElementById("page");
    this.sizeBox = document.getElementById("page-size");
    this.head.append(...run.columns.map((column) => this.heading(column)));
    this.listen();
    this.find();
  }

  heading(column) {
    const button = element("button", { type: "button", className: "own", text: visible(column.name) });
    button.title = button.textContent.length > 16 ? button.textContent : "";
    const cell = element("th", { scope: "col", className: column.isNumber ? "number" : "", children: [button] });
    button.addEventListener("click", () => this.sort(column));
    return cell;
  }

  listen() {
    let waiting;
    this.search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.find(), 150);
    });
    this.onlyFlagged.addEventListener("change", () => this.find());
    this.sizeBox.addEventListener("change", () => this.show(0));
    this.pageBox.addEventListener("change", () => this.show(Number(this.pageBox.value) - 1));
    const pages = { first: () => 0, back: () => this.page - 1, next: () => this.page + 1, last: () => Infinity };
    for (const [name, target] of Object.entries(pages)) {
      document.getElementById(`page-${name}`).addEventListener("click", () => this.show(target()));
    }
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      // A selection of text is for copying, not a choice of the row.
      if (line && getSelection().isCollapsed) this.onChoose(Number(line.dataset.row));
    });
    this.body.addEventListener("keydown", (event) => this.step(event));
  }

  // Arrow keys move from row to row, also to the next and the previous page.
  step(event) {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const line = event.target.closest("tr");
    if (!move || !line) return;
    event.preventDefault();
    const place = this.page * this.size + line.sectionRowIndex + move;
    if (place < 0 || place >= this.rows.length) return;
    if (Math.floor(place / this.size) !== this.page) this.show(Math.floor(place / this.size));
    this.body.rows[place % this.size].querySelector("button").focus();
  }

  get size() {
    return Number(this.sizeBox.value);
  }

  sort(column) {
    this.direction = column === this.sorted ? -this.direction : 1;
    this.sorted = column;
    this.arrange();
    this.show(0);
  }

  find() {
    this.found = searchRows(this.run, this.search.value.trim());
    this.arrange();
    this.show(0);
  }

  arrange() {
    const rows = this.onlyFlagged.checked ? this.found.filter((row) => this.flags.has(row)) : this.found;
    this.rows = sortRows(rows, this.sorted, this.direction);
  }

  show(page) {
    const nPages = Math.max(1, Math.ceil(this.rows.length / this.size));
    this.page = Math.min(Math.max(0, Math.floor(page) || 0), nPages - 1);
    if (page === Infinity) this.page = nPages - 1;
    const start = this.page * this.size;
    const rows = this.rows.subarray(start, start + this.size);
    this.body.replaceChildren(...Array.from(rows, (row) => this.line(row)));
    this.showOrder();
    this.showPaging(start, rows.length, nPages);
    this.mark();
  }

  showOrder() {
    this.run.columns.forEach((column, place) => {
      const cell = this.head.cells[place];
      if (column !== this.sorted) cell.removeAttribute("aria-sort");
      else cell.ariaSort = this.direction === 1 ? "ascending" : "descending";
    });
  }

  showPaging(start, nShown, nPages) {
    const all = plural(this.rows.length, "row");
    document.getElementById("shown").textContent = nShown === 0 ? "No row matches." :
      `${countText(start + 1)} to ${countText(start + nShown)} of ${all}`;
    this.pageBox.value = this.page + 1;
    this.pageBox.max = nPages;
    document.getElementById("page-count").textContent = `of ${countText(nPages)}`;
    for (const [name, isEnd] of [["first", 0], ["back", 0], ["next", nPages - 1], ["last", nPages - 1]]) {
      document.getElementById(`page-${name}`).disabled = this.page === isEnd;
    }
  }

  line(row) {
    const cells = this.run.columns.slice(1).map((column) => {
      const text = column.text(row);
      const title = text.length > 24 ? text.slice(0, 1000) : "";
      return element("td", { className: column.isNumber ? "number" : "own", title, text });
    });
    const button = element("button", { type: "button", text: String(row + 1) });
    const state = element("span", { className: "unseen" });
    const name = element("th", { scope: "row", className: "number", children: [button, state] });
    const line = element("tr", { children: [name, ...cells] });
    line.dataset.row = row;
    return line;
  }

  // Mark the flagged rows and the chosen one.
  mark() {
    for (const line of this.body.rows) {
      const row = Number(line.dataset.row);
      line.classList.toggle("flagged", this.flags.has(row));
      line.classList.toggle("chosen", row === this.chosen);
      const button = line.querySelector("button");
      button.ariaPressed = String(row === this.chosen);
      button.ariaLabel = `Rank ${row + 1}: show reasons`;
      line.querySelector(".unseen").textContent = this.flags.has(row) ? ", flagged" : "";
    }
  }

  update(flags, chosen) {
    const hasMoved = flags !== this.flags;
    Object.assign(this, { flags, chosen });
    if (hasMoved && this.onlyFlagged.checked) {
      this.arrange();
      this.show(this.page);
    } else {
      this.mark();
    }
  }

  focus(row) {
    this.body.querySelector(`tr[data-row="${row}"] button`)?.focus();
  }
}
