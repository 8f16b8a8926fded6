// The chosen row: its mark, its reasons with their strengths, and all of its values.

const FIRST_REASONS = 8;

class DetailPanel {
  constructor(run, marks, { canDraw, onFeature, onFinding, onBack }) {
    Object.assign(this, { run, marks, canDraw, onFeature, onFinding, onBack, isOpen: false });
    this.panel = document.getElementById("detail");
    this.parts = document.getElementById("detail-parts");
    this.note = document.getElementById("note");
    this.buttons = [...this.panel.querySelectorAll("[data-mark]")];
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.toggle(button.dataset.mark));
    }
    this.note.addEventListener("change", () => this.keepNote());
    document.getElementById("back").addEventListener("click", () => this.onBack(this.row));
  }

  // A second press takes a mark away.
  toggle(mark) {
    this.marks.set(this.row, { mark: this.marks.of(this.row).mark === mark ? "" : mark });
  }

  keepNote() {
    const note = this.note.value.trim();
    if (note !== this.marks.of(this.row).note) this.marks.set(this.row, { note });
  }

  show(row) {
    // A note that is being written belongs to the row before.
    if (this.row !== undefined) this.keepNote();
    this.row = row;
    const { run } = this;
    document.getElementById("detail-title").textContent = `${visible(run.id.name)} ${run.id.text(row)}`;
    document.getElementById("detail-score").textContent =
      `Rank ${countText(row + 1)}, score ${run.score.text(row)}${run.pValue ? `, p-value ${rounded(run.pValue.value(row), 3)}` : ""}`;
    this.parts.replaceChildren(...this.finding(row), ...this.reasons(row), ...this.context(row), this.values(row));
    this.update();
  }

  // The mark and the note of the row, which change while it is shown.
  update() {
    const { mark, note } = this.marks.of(this.row);
    for (const button of this.buttons) button.ariaPressed = String(button.dataset.mark === mark);
    if (document.activeElement !== this.note) this.note.value = note;
  }

  finding(row) {
    const place = this.run.findingOf(row);
    if (place < 0) return [];
    const name = this.link(this.run.findings[place].name, () => this.onFinding(place));
    return [element("p", { children: [`Finding ${place + 1}: `, name] })];
  }

  reasons(row) {
    const { reasons } = this.run;
    if (!reasons.isKnown(row)) {
      const nKnown = reasons.nKnown;
      const words = nKnown === 0
        ? "This run kept no reasons."
        : `Reasons were computed for ${plural(nKnown, "row")}, the flagged ones first; this is not one of them.`;
      return [element("p", { text: words })];
    }
    const items = reasons.of(row).map((reason) => this.reason(reason));
    if (items.length === 0) return [element("p", { text: "Nothing about this row stands out by itself." })];
    const list = (children) => element("ul", { className: "reasons", children });
    const parts = [list(items.slice(0, FIRST_REASONS))];
    const rest = items.slice(FIRST_REASONS);
    if (rest.length > 0) {
      const summary = element("summary", { text: `${countText(rest.length)} more` });
      parts.push(element("details", { children: [summary, list(rest)] }));
    }
    return parts;
  }

  // The row it repeats, or the past of its entity as a line that ends in a dot.
  context(row) {
    const context = this.run.contexts[row];
    if (!context) return [];
    const text = element("p", { className: "own soft", text: visible(context.text) });
    return context.line ? [sparkline(context.line, visible(context.text)), text] : [text];
  }

  reason({ columns, text, strength }) {
    const bar = element("div");
    bar.style.width = `${strength}%`;
    const track = element("div", { className: "track", children: [bar] });
    track.ariaHidden = "true";
    const drawn = columns.filter(this.canDraw).map((name) => this.link(name, () => this.onFeature(name)));
    const links = element("div", { className: "links", children: drawn });
    return element("li", { children: [element("div", { className: "own", text: visible(text) }), track, links] });
  }

  link(text, onClick) {
    const button = element("button", { type: "button", className: "link own", text: visible(text) });
    button.addEventListener("click", onClick);
    return button;
  }

  values(row) {
    const shown = [...this.run.columns].filter(({ role }) => ["value", "truth"].includes(role));
    const entries = shown.flatMap((column) => [
      element("dt", { className: "own", text: visible(column.name) }),
      element("dd", { className: "own", text: column.text(row) }),
    ]);
    const summary = element("summary", { text: "All values" });
    const details = element("details", { open: this.isOpen, children: [summary, element("dl", { children: entries })] });
    // Open for one row means open for the next.
    details.addEventListener("toggle", () => { this.isOpen = details.open; });
    return details;
  }
}
