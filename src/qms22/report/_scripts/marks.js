// What the analyst finds out about rows: kept in this browser, and written to a file of marks.

const MARKS = ["anomaly", "normal", "unsure"];

class Marks {
  // Marks are kept by the hash of the data: the same page finds them again, another one does not.
  constructor(run, hash, onChange) {
    Object.assign(this, { run, place: `qms22-marks-${hash}`, onChange, isKept: true });
    this.entries = this.read() ?? {};
    addEventListener("storage", (event) => {
      if (event.key !== this.place) return;
      this.entries = this.read() ?? {};
      this.onChange();
    });
    const button = document.getElementById("marks-download");
    button.addEventListener("click", () => download("marks.csv", this.csv()));
    document.getElementById("marks-forget").addEventListener("click", () => this.forget());
    this.show();
  }

  of(row) {
    return this.entries[row] ?? { mark: this.run.marks[row] ?? "", note: "" };
  }

  set(row, change) {
    // Another window with this page may have added marks meanwhile.
    if (this.isKept) this.entries = this.read() ?? {};
    const { mark, note } = { ...this.of(row), ...change };
    this.entries[row] = { mark, note };
    if (mark === (this.run.marks[row] ?? "") && note === "") delete this.entries[row];
    this.write();
    this.onChange();
  }

  forget() {
    const words = "Forget all marks and notes of this page? Those that the run was given stay.";
    if (!confirm(words)) return;
    this.entries = {};
    this.write();
    this.onChange();
  }

  read() {
    try {
      const entries = JSON.parse(localStorage.getItem(this.place) ?? "{}");
      const isSound = ([row, entry]) =>
        Number(row) < this.run.nKept && typeof entry?.note === "string" && ["", ...MARKS].includes(entry.mark);
      return Object.fromEntries(Object.entries(entries).filter(isSound));
    } catch {
      this.isKept = false;
      return null;
    }
  }

  write() {
    try {
      localStorage.setItem(this.place, JSON.stringify(this.entries));
    } catch {
      this.isKept = false;
    }
  }

  // Rows of the ranking with a mark, by rank.
  get rows() {
    const rows = new Set([...Object.keys(this.entries), ...Object.keys(this.run.marks)].map(Number));
    return [...rows].filter((row) => this.of(row).mark !== "").sort((one, other) => one - other);
  }

  get nGiven() {
    return this.run.marked[0]?.array.length ?? 0;
  }

  show() {
    const rows = this.rows;
    const counts = MARKS.map((mark) => [rows.filter((row) => this.of(row).mark === mark).length, mark]);
    const parts = counts.filter(([count]) => count > 0).map(([count, mark]) => `${countText(count)} ${mark}`);
    const given = this.nGiven > 0 ? ` ${plural(this.nGiven, "row")} ${this.nGiven === 1 ? "was" : "were"} marked before.` : "";
    const words = rows.length === 0 ? "No row is marked here." : `Marked: ${parts.join(", ")}.`;
    const loss = this.isKept ? "" : " This browser does not keep marks for this page; download them before you close it.";
    document.getElementById("marks-words").textContent = words + given + loss;
    document.getElementById("marks-download").disabled = rows.length + this.nGiven === 0;
    document.getElementById("marks-forget").hidden = Object.keys(this.entries).length === 0;
  }

  // A table that `detect --marks` reads. It has the cells of the rows, by which they are checked and
  // from which a later batch can learn.
  csv() {
    const { run } = this;
    const [, values] = fileColumns(run);
    const lines = [csvLine([run.id.name, "mark", freeName("note", run), ...values.map(({ name }) => name)])];
    for (const row of this.rows) {
      const { mark, note: words } = this.of(row);
      lines.push(csvLine([run.id.plain(row), mark, words, ...values.map((column) => column.plain(row))]));
    }
    for (let row = 0; row < this.nGiven; row += 1) {
      const [name, mark, ...cells] = run.marked.map((column) => column.plain(row));
      lines.push(csvLine([name, mark, "", ...cells]));
    }
    return lines;
  }
}
