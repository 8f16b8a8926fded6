// Numbers and safe texts for the page and for CSV.

const NOTHING = "–";

// Characters that reverse the direction of writing, invisible characters, lone surrogates. They could
// make a text look like another one, so they are shown as their codes, as in `text.py`.
const HIDDEN =
  /[\p{Cs}\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

function visible(text) {
  return text.replace(HIDDEN, (sign) => `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
}

function shortened(text, length) {
  const signs = Array.from(visible(text));
  return signs.length <= length ? signs.join("") : `${signs.slice(0, length - 1).join("")}…`;
}

function countText(number) {
  return number.toLocaleString("en");
}

function plural(number, noun) {
  return `${countText(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function rounded(number, digits) {
  return String(Number(number.toPrecision(digits)));
}

function signed(number) {
  const text = rounded(Math.abs(number), 3);
  return number === 0 ? "0" : `${number < 0 ? "−" : "+"}${text}`;
}

function percent(share) {
  return `${rounded(100 * share, share >= 0.1 ? 3 : 2)}\u00a0%`;
}

function dateText(seconds) {
  const text = new Date(1000 * seconds).toISOString();
  return text.slice(0, 16).replace("T", " ");
}

// A text that a spreadsheet would run as a formula gets an apostrophe, as in `detection/results/csv_text.py`.
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const PLAIN_NUMBER = /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i;

function csvCell(text) {
  const safe = FORMULA.test(text) && !PLAIN_NUMBER.test(text) ? `'${text}` : text;
  return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvLine(texts) {
  return `${texts.map(csvCell).join(",")}\r\n`;
}

function element(tag, { text, children = [], ...properties } = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}
