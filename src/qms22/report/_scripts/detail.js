// The chosen row: its reasons as bars, and all of its values.

const FIRST_REASONS = 8;

class DetailPanel {
  constructor(run, { canDraw, onFeature, onBack }) {
    Object.assign(this, { run, canDraw, onFeature, onBack });
    this.panel = document.getElementById("detail");
  }

  show(row) {
    const { run } = this;
    const parts = [
      element("h3", { className: "own", text: `Rank ${countText(row + 1)}: ${run.id.name} ${run.id.text(row)}` }),
      element("p", { text: `Score ${run.score.text(row)}${this.pValue(row)}` }),
      ...this.reasons(run.reasons[row]),
      this.values(row),
    ];
    const back = element("button", { type: "button", id: "back", text: "Back to the row" });
    back.addEventListener("click", () => this.onBack(row));
    this.panel.replaceChildren(...parts, back);
  }

  pValue(row) {
    const { pValue } = this.run;
    return pValue ? `, p-value ${pValue.text(row)}` : "";
  }

  reasons(reasons) {
    const nExplained = Object.keys(this.run.reasons).length;
    if (nExplained === 0) return [element("p", { text: "This run kept no reasons." })];
    if (reasons === undefined) {
      const words = `Reasons were computed for ${plural(nExplained, "row")}, the flagged ones first; this is not one of them.`;
      return [element("p", { text: words })];
    }
    if (reasons.length === 0) return [element("p", { text: "No single feature makes this row suspicious." })];
    const most = Math.max(...reasons.map(([, drop]) => Math.abs(drop ?? 0)));
    const items = reasons.map((reason) => this.reason(reason, most));
    const words = "How the score would change if this feature alone had its usual value:";
    const list = (children) => element("ul", { className: "reasons", children });
    const parts = [element("p", { className: "soft", text: words }), list(items.slice(0, FIRST_REASONS))];
    const rest = items.slice(FIRST_REASONS);
    if (rest.length > 0) {
      const summary = element("summary", { text: `${countText(rest.length)} more` });
      parts.push(element("details", { children: [summary, list(rest)] }));
    }
    return parts;
  }

  reason([name, drop, value, usual], most) {
    const bar = element("div", { className: drop < 0 ? "lowers" : "" });
    bar.style.width = most > 0 ? `${(100 * Math.abs(drop ?? 0)) / most}%` : "0";
    const drops = drop === null ? NOTHING : signed(-drop);
    const head = [this.name(name), element("span", { className: "number", text: drops })];
    const track = element("div", { className: "track", children: [bar] });
    track.ariaHidden = "true";
    return element("li", {
      children: [
        element("div", { className: "reason", children: head }),
        track,
        element("div", { className: "soft own", text: `${visible(value)}, usually ${visible(usual)}` }),
      ],
    });
  }

  // The name of a column with a histogram is a button that shows it.
  name(name) {
    if (!this.canDraw(name)) return element("span", { className: "own", text: visible(name) });
    const button = element("button", { type: "button", className: "own", text: visible(name) });
    button.addEventListener("click", () => this.onFeature(name));
    return button;
  }

  values(row) {
    const shown = this.run.columns.filter(({ role }) => !["rank", "score", "p"].includes(role));
    const entries = shown.flatMap((column) => [
      element("dt", { className: "own", text: visible(column.name) }),
      element("dd", { className: "own", text: column.text(row) }),
    ]);
    const summary = element("summary", { text: "All values" });
    return element("details", { children: [summary, element("dl", { children: entries })] });
  }
}
