// Findings: a card is a filter to its rows.

class Findings {
  constructor(run, onChoose) {
    this.cards = [...document.querySelectorAll("[data-finding]")];
    for (const card of this.cards) {
      card.addEventListener("click", () => onChoose(Number(card.dataset.finding)));
    }
    const places = new Map();
    run.findings.forEach(({ rows }, place) => rows.forEach((row) => places.set(row, place)));
    run.findingOf = (row) => places.get(row) ?? -1;
    // Its name in filters, which no column of the batch has.
    run.findingName = freeName("finding", run);
    this.run = run;
  }

  // Flagged rows that are in no finding, as a filter.
  showOthers(flags, onFilter) {
    const place = document.getElementById("finding-others");
    if (!place) return;
    const nOthers = flaggedRows(flags).filter((row) => this.run.findingOf(row) < 0).length;
    const button = element("button", { type: "button", className: "link", text: plural(nOthers, "other flagged row") });
    button.addEventListener("click", () => onFilter(`flagged = yes and ${this.run.findingName} is missing`));
    place.replaceChildren(...(nOthers > 0 ? [button, ` ${nOthers === 1 ? "is" : "are"} in none of these.`] : []));
  }

  // Press the card whose filter is in use.
  update(filter) {
    this.cards.forEach((card, place) => {
      card.ariaPressed = String(filter.toLowerCase() === findingFilter(this.run, place));
    });
  }
}

function findingFilter(run, place) {
  return `${run.findingName} = ${place + 1}`;
}
