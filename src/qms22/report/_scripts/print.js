// What is printed: the flagged rows with their reasons, as a plain table.

const MOST_PRINTED = 500;
const FIRST_PRINTED = 20;

function setUpPrinting(page) {
  addEventListener("beforeprint", () => fillPrint(page));
}

function fillPrint({ run, flags, marks }) {
  const flagged = flaggedRows(flags);
  const rows = flagged.length > 0
    ? flagged.slice(0, MOST_PRINTED)
    : Array.from({ length: Math.min(FIRST_PRINTED, run.nKept) }, (_, row) => row);
  let words = `${plural(flagged.length, "flagged row")}`;
  if (flagged.length === 0) words = "Nothing is flagged; the most suspicious rows, not certain";
  else if (flagged.length > rows.length) words += `, the first ${countText(rows.length)}`;
  document.getElementById("print-words").textContent = words;
  const cell = (text) => element("td", { className: "own", text });
  const lines = rows.map((row) => {
    const { mark, note } = marks.of(row);
    const marked = [mark, note].filter(Boolean).join(": ");
    const cells = [run.id.text(row), run.score.text(row), marked, run.reasons.text(row)];
    return element("tr", { children: [element("th", { scope: "row", text: String(row + 1) }), ...cells.map(cell)] });
  });
  document.querySelector("#print-rows tbody").replaceChildren(...lines);
}
