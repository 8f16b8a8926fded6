// Columns of the table. All have text(row) to show, plain(row) for files, keys() to sort by, with NaN
// for missing values, find(found, word), which marks the rows that contain a word, and
// test(operator, value), which returns the check of a filter for one row.

const COMPARISONS = {
  "=": (key, { low, high }) => key >= low && key <= high,
  "!=": (key, { low, high }) => !(key >= low && key <= high),
  ">": (key, { high }) => key > high,
  ">=": (key, { low }) => key >= low,
  "<": (key, { low }) => key < low,
  "<=": (key, { high }) => key <= high,
};

// A number as people write it: "1,234.50", "$ 12", "12 %"; NaN if it is none.
function readNumber(text) {
  const plain = text.replace(/[\s$€£¥%'’]/g, "").replace("−", "-");
  if (/^[-+]?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain)) return Number(plain.replaceAll(",", ""));
  return plain === "" ? NaN : Number(plain.replace(/^([-+]?\d+),(\d+)$/, "$1.$2"));
}

// A date as the microseconds it covers: "2024-03" is a month, "2024-03-01 14" an hour.
function readDate(text) {
  const found = /^(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T](\d\d?)(?::(\d\d)(?::(\d\d))?)?)?)?)?$/.exec(text);
  if (!found) return null;
  const parts = found.slice(1).filter((part) => part !== undefined).map(Number);
  const moment = (numbers) => {
    const [year, month = 1, ...rest] = numbers;
    return 1000 * Date.UTC(year, month - 1, ...(rest.length > 0 ? rest : [1]));
  };
  return { low: moment(parts), high: moment([...parts.slice(0, -1), parts.at(-1) + 1]) - 1 };
}

class NumberColumn {
  constructor(spec, array) {
    Object.assign(this, { name: spec.name, role: spec.role, isNumber: true, spec, array });
    this.scale = 10 ** (spec.places ?? 0);
  }

  value(row) {
    const stored = this.array[row];
    return stored === this.spec.missing ? NaN : stored / this.scale;
  }

  text(row) {
    const value = this.value(row);
    if (Number.isNaN(value)) return NOTHING;
    return this.spec.places === undefined ? rounded(value, 6) : String(value);
  }

  plain(row) {
    const value = this.value(row);
    if (Number.isNaN(value)) return "";
    if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
    return this.spec.places === undefined ? rounded(value, this.spec.digits) : String(value);
  }

  keys() {
    const keys = new Float64Array(this.array.length);
    for (let row = 0; row < keys.length; row += 1) keys[row] = this.value(row);
    return keys;
  }

  // Rows whose number begins with the digits of a word; of names of rows any part counts.
  find(found, word) {
    if (!/^[-+]?\d*\.?\d*$/.test(word) || !/\d/.test(word)) return;
    if (this.role === "id") {
      for (let row = 0; row < found.length; row += 1) found[row] ||= this.text(row).includes(word);
      return;
    }
    const { array, scale, spec: { missing } } = this;
    const sign = word.startsWith("-") ? -1 : 1;
    const least = Math.abs(Number(word)) * scale;
    const end = least + scale * 10 ** -(word.split(".")[1]?.length ?? 0) * (1 - 1e-9);
    for (let row = 0; row < array.length; row += 1) {
      const stored = sign * array[row];
      if (stored >= least && stored < end && array[row] !== missing) found[row] = 1;
    }
  }

  isMissing(row) {
    return Number.isNaN(this.value(row));
  }

  test(operator, value) {
    const number = readNumber(value);
    if (Number.isNaN(number)) throw new FilterError(`${visible(this.name)} holds numbers, and “${value}” is none.`);
    const compare = COMPARISONS[operator];
    const range = { low: number, high: number };
    // Numbers are shown with six digits; what is shown can be asked for.
    if (operator === "=") return (row) => this.value(row) === number || this.text(row) === value;
    return (row) => compare(this.value(row), range);
  }
}

class TextColumn {
  constructor(spec, array) {
    Object.assign(this, { name: spec.name, role: spec.role, isNumber: spec.form === "number", spec, array });
  }

  text(row) {
    const text = this.spec.levels[this.array[row]];
    return text === undefined ? NOTHING : visible(text);
  }

  plain(row) {
    return this.spec.levels[this.array[row]] ?? "";
  }

  // Levels are in the order of the alphabet; those of dates and numbers have keys of their own.
  keys() {
    const { levels, keys } = this.spec;
    const found = new Float64Array(this.array.length);
    for (let row = 0; row < found.length; row += 1) {
      const code = this.array[row];
      if (keys) found[row] = keys[code];
      else found[row] = code === levels.length ? NaN : code;
    }
    return found;
  }

  get lower() {
    this.lowered ??= this.spec.levels.map((level) => visible(level).toLowerCase());
    return this.lowered;
  }

  find(found, word) {
    const hits = Uint8Array.from(this.lower, (level) => level.includes(word));
    for (let row = 0; row < found.length; row += 1) {
      if (hits[this.array[row]]) found[row] = 1;
    }
  }

  isMissing(row) {
    return this.array[row] === this.spec.levels.length;
  }

  test(operator, value) {
    const wanted = value.toLowerCase();
    const at = this.lower.indexOf(wanted);
    const range = this.range(wanted, at);
    let hits;
    if (range) {
      hits = this.lower.map((level, code) => level === wanted || COMPARISONS["="](this.spec.keys[code], range));
      if (!/^!?=$/.test(operator)) hits = Array.from(this.spec.keys, (key) => COMPARISONS[operator](key, range));
    } else if (/^!?=$/.test(operator)) {
      hits = this.lower.map((level) => level === wanted);
    } else if (this.spec.form) {
      const example = this.spec.form === "date" ? "a date such as 2024-03-01" : "a number";
      throw new FilterError(`“${value}” cannot be compared with ${visible(this.name)}; write ${example}.`);
    } else {
      const { compare } = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
      hits = this.lower.map((level) => COMPARISONS[operator](compare(level, wanted), { low: 0, high: 0 }));
    }
    return operator === "!=" ? (row) => !hits[this.array[row]] : (row) => Boolean(hits[this.array[row]]);
  }

  // The keys that a value of a filter stands for; null if the column has none, or it is no such value.
  range(wanted, at) {
    const { form, keys } = this.spec;
    if (form === "date" && readDate(wanted)) return readDate(wanted);
    if (form && at >= 0 && !Number.isNaN(keys[at])) return { low: keys[at], high: keys[at] };
    const number = form === "number" ? readNumber(wanted) : NaN;
    return Number.isNaN(number) ? null : { low: number, high: number };
  }
}

// What the page itself knows about rows: marks, flags, findings.
class ComputedColumn {
  constructor(name, text) {
    Object.assign(this, { name, text, role: "computed" });
  }

  isMissing(row) {
    return this.text(row) === "";
  }

  test(operator, value) {
    const wanted = value.toLowerCase();
    if (operator === "=") return (row) => this.text(row).toLowerCase() === wanted;
    if (operator === "!=") return (row) => this.text(row).toLowerCase() !== wanted;
    throw new FilterError(`${visible(this.name)} has no order; write = or != instead of ${operator}.`);
  }
}

function allRows(run) {
  const rows = new Uint32Array(run.nKept);
  for (let row = 0; row < rows.length; row += 1) rows[row] = row;
  return rows;
}

// Sort rows, given by rank: missing values last, rows of equal value by rank.
function sortRows(rows, column, direction) {
  if (column.role === "rank") return direction === 1 ? rows : rows.toReversed();
  const { places, nValues } = prepareSort(column);
  // Counting sort: the number of rows of each value tells where the first of them goes.
  const place = direction === 1 ? (row) => places[row] : (row) => (places[row] === nValues ? nValues : nValues - 1 - places[row]);
  const starts = new Uint32Array(nValues + 2);
  for (let at = 0; at < rows.length; at += 1) starts[place(rows[at]) + 1] += 1;
  for (let at = 1; at < starts.length; at += 1) starts[at] += starts[at - 1];
  const sorted = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at += 1) sorted[starts[place(rows[at])]++] = rows[at];
  return sorted;
}

function prepareSort(column) {
  column.places ??= sortPlaces(column.keys());
  return column.places;
}

// The place of each row's key among all different keys; missing ones come after them. Numbers alone
// are sorted far quicker than rows by a comparison.
function sortPlaces(keys) {
  const values = keys.slice().sort();
  let nValues = 0;
  for (let at = 0; at < values.length && !Number.isNaN(values[at]); at += 1) {
    if (nValues === 0 || values[at] !== values[nValues - 1]) {
      values[nValues] = values[at];
      nValues += 1;
    }
  }
  const places = new Uint32Array(keys.length).fill(nValues);
  for (let row = 0; row < keys.length; row += 1) {
    if (Number.isNaN(keys[row])) continue;
    let low = 0;
    let high = nValues - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < keys[row]) low = middle + 1;
      else high = middle;
    }
    places[row] = low;
  }
  return { places, nValues };
}
