// Filters: "clicks > 50 and country = US and rating is missing and voucher".

class FilterError extends Error {}

const OPERATOR = /^\s*(!=|<>|≠|>=|≥|<=|≤|==|=|>|<)\s*(.*)$/s;
const WORDED = /^\s+(is not|is|contains)(?:\s+(.*))?$/is;
const LIKE = { "<>": "!=", "≠": "!=", "≥": ">=", "≤": "<=", "==": "=", is: "=", "is not": "!=" };

class Filter {
  constructor(run, computed) {
    this.run = run;
    this.columns = [...run.columns, run.reasons, ...computed];
    // The longest name first: "price" must not be taken for the beginning of "price net".
    this.names = this.columns
      .map((column) => [visible(column.name).toLowerCase(), column])
      .sort(([one], [other]) => other.length - one.length);
    // Where words are looked for.
    this.searched = [...run.columns.filter(({ role }) => !["rank", "score", "p"].includes(role)), run.reasons];
  }

  // The rows that pass, by rank; throws a FilterError if the text cannot be read.
  rows(text) {
    let rows = allRows(this.run);
    if (text.trim() === "") return rows;
    for (const term of splitTerms(text)) rows = rows.filter(this.check(term));
    return rows;
  }

  // The check of one term for one row.
  check(term) {
    if (term === "") throw new FilterError("Something is missing beside “and”.");
    if ((term.match(/"/g) ?? []).length % 2) throw new FilterError("A quotation mark is missing.");
    if (/^"[^"]*"$/.test(term)) return this.holdsWord(unquoted(term));
    const comparison = this.comparison(term);
    if (comparison) return this.compares(...comparison);
    const unknown = /^(.*?)\s*(!=|<>|≠|>=|≥|<=|≤|=|>|<|\sis (not )?missing$)/is.exec(term);
    if (unknown) throw this.unknownColumn(unquoted(unknown[1].trim()));
    return this.holdsWord(term);
  }

  // Column, operator and value of a term; undefined if it has none.
  comparison(term) {
    const lower = term.toLowerCase();
    for (const [name, column] of this.names) {
      const start = [name, `"${name}"`].find((each) => each !== "" && lower.startsWith(each));
      if (start === undefined) continue;
      const rest = term.slice(start.length);
      const found = OPERATOR.exec(rest) ?? WORDED.exec(rest);
      if (found) return [column, found[1].toLowerCase(), (found[2] ?? "").trim()];
    }
    return undefined;
  }

  compares(column, sign, text) {
    const operator = LIKE[sign] ?? sign;
    const value = unquoted(text);
    if (sign.startsWith("is") && /^missing$/i.test(text)) {
      return sign === "is" ? (row) => column.isMissing(row) : (row) => !column.isMissing(row);
    }
    if (text === "") throw new FilterError(`Write a value after “${visible(column.name)} ${sign}”.`);
    if (operator === "contains") return this.contains(column, value.toLowerCase());
    return column.test(operator, value);
  }

  contains(column, word) {
    if (column.find && !column.isNumber) return this.marked((found) => column.find(found, word));
    return (row) => column.text(row).toLowerCase().includes(word);
  }

  holdsWord(word) {
    return this.marked((found) => this.searched.forEach((column) => column.find(found, word.toLowerCase())));
  }

  marked(mark) {
    const found = new Uint8Array(this.run.nKept);
    mark(found);
    return (row) => found[row] === 1;
  }

  unknownColumn(name) {
    const near = this.names
      .map(([other, column]) => [editDistance(other, name.toLowerCase()), column])
      .sort(([one], [other]) => one - other)[0];
    const guess = near[0] <= Math.max(2, name.length / 3) ? ` Did you mean ${visible(near[1].name)}?` : "";
    const shown = name === "" ? "Write a column before the sign." : `There is no column “${name}”.${guess}`;
    return new FilterError(`${shown} A text with such a sign goes into quotation marks.`);
  }
}

// The terms between the words "and"; inside quotation marks it is a word like others.
function splitTerms(text) {
  const terms = [""];
  for (const part of text.match(/"[^"]*"?|(?<!\S)and(?!\S)|[^"\s]+|\s+/gi)) {
    if (/^and$/i.test(part)) terms.push("");
    else terms[terms.length - 1] += part;
  }
  return terms.map((term) => term.trim());
}

function unquoted(text) {
  return /^"[^"]*"$/.test(text) ? text.slice(1, -1) : text;
}

function editDistance(one, other) {
  let before = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const now = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const change = one[i - 1] === other[j - 1] ? 0 : 1;
      now.push(Math.min(before[j] + 1, now[j - 1] + 1, before[j - 1] + change));
    }
    before = now;
  }
  return before.at(-1);
}

// A filter by columns of the batch, to show how one is written.
function exampleFilter(run) {
  const values = run.columns.filter((column) => column.role === "value" && !column.isMissing(0));
  const number = values.find((column) => column.isNumber);
  const word = values.find((column) => !column.isNumber && column.spec.levels.length <= 50);
  const parts = [[number, ">"], [word, "="]].filter(([column]) => column);
  return [...parts.map(([column, sign]) => `${visible(column.name)} ${sign} ${column.text(0)}`), "some words"].join(" and ");
}

// The box of the filter: reads it a moment after the last key, and tells what cannot be read.
class FilterBox {
  constructor(filter, onRows) {
    Object.assign(this, { filter, onRows });
    this.box = document.getElementById("filter");
    this.message = document.getElementById("filter-message");
    this.clear = document.getElementById("filter-clear");
    this.box.placeholder = shortened(exampleFilter(filter.run), 80);
    this.box.addEventListener("input", () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.apply(), 150);
    });
    this.clear.addEventListener("click", () => {
      this.set("");
      this.box.focus();
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.apply();
    });
  }

  get text() {
    return this.box.value.trim();
  }

  set(text) {
    this.box.value = text;
    this.apply();
  }

  apply() {
    // Enter applies at once; a second time, a moment later, could drop a row that was just marked.
    clearTimeout(this.waiting);
    this.clear.hidden = this.text === "";
    try {
      const rows = this.filter.rows(this.text);
      this.say("");
      this.onRows(rows);
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      this.say(error.message);
    }
  }

  say(message) {
    this.message.textContent = message;
    this.message.hidden = message === "";
    this.box.setAttribute("aria-invalid", String(message !== ""));
  }
}
