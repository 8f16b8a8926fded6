// The data of the run, as `prepare.py` packs them. Rows are numbered by rank, from 0.

async function unpack(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

const ARRAYS = {
  Int8Array, Int16Array, Int32Array, Uint8Array, Uint16Array, Uint32Array, Float64Array,
};

// All columns have text(row) to show, plain(row) for files, keys() to sort by, with NaN for missing
// values, and mark(found, wanted), which marks the rows that contain a text.
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
    return Float64Array.from(this.array, (_, row) => this.value(row));
  }

  mark(found, wanted) {
    if (!/^[-+.\de]+$/.test(wanted)) return;
    for (let row = 0; row < found.length; row += 1) {
      if (!found[row] && this.text(row).includes(wanted)) found[row] = 1;
    }
  }
}

class TextColumn {
  constructor(spec, array) {
    Object.assign(this, { name: spec.name, role: spec.role, isNumber: false, spec, array });
  }

  text(row) {
    const text = this.spec.levels[this.array[row]];
    return text === undefined ? NOTHING : visible(text);
  }

  plain(row) {
    return this.spec.levels[this.array[row]] ?? "";
  }

  keys() {
    // Texts of dates and numbers come with keys of their own.
    this.places ??= this.spec.keys ?? this.#alphabet();
    return Float64Array.from(this.array, (code) => this.places[code]);
  }

  #alphabet() {
    const { levels } = this.spec;
    const { compare } = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
    const order = levels.map((_, code) => code).sort((a, b) => compare(levels[a], levels[b]));
    const places = new Float64Array(levels.length + 1).fill(NaN);
    order.forEach((code, place) => { places[code] = place; });
    return places;
  }

  mark(found, wanted) {
    this.lower ??= this.spec.levels.map((level) => visible(level).toLowerCase());
    const hits = this.lower.map((level) => level.includes(wanted));
    for (let row = 0; row < found.length; row += 1) {
      if (hits[this.array[row]]) found[row] = 1;
    }
  }
}

async function readRun(text) {
  const buffer = await unpack(text);
  const start = Number(new DataView(buffer).getBigUint64(0, true));
  const run = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start)));
  const array = ([type, offset, length]) => new ARRAYS[type](buffer, offset, length);
  run.columns = run.columns.map((spec) => {
    const Kind = spec.type === "number" ? NumberColumn : TextColumn;
    if (spec.keys) spec.keys = array(spec.keys);
    return new Kind(spec, array(spec.data));
  });
  for (const part of [run.scores, ...run.features]) part.bins = array(part.bins);
  run.reach = array(run.reach);
  if (run.truth) run.truth.found = array(run.truth.found);
  const find = (role) => run.columns.find((column) => column.role === role);
  Object.assign(run, { score: find("score"), id: find("id"), pValue: find("p") });
  run.flags = givenFlags(array(run.flagged), run);
  return run;
}

// Which rows are flagged: those that the run has flagged, or the first k. `last` is the number of
// rows down to the last flagged one, `hits` how many outliers are among them where that is known.
function givenFlags(mask, run) {
  const last = mask.lastIndexOf(1) + 1;
  const count = mask.reduce((sum, flag) => sum + flag, 0);
  if (last === count) return topFlags(count, run);
  const given = { count, last, isTop: false, has: (row) => mask[row] === 1, hits: run.truth?.nFlagged };
  return given;
}

function topFlags(k, run) {
  return { count: k, last: k, isTop: true, has: (row) => row < k, hits: run.truth?.found[k] };
}

function flaggedRows(flags) {
  return Array.from({ length: flags.last }, (_, row) => row).filter(flags.has);
}

// Sort rows by a column: missing values last, rows of equal value by rank.
function sortRows(rows, column, direction) {
  const keys = column.keys();
  const known = rows.filter((row) => !Number.isNaN(keys[row]));
  const missing = rows.filter((row) => Number.isNaN(keys[row]));
  known.sort((a, b) => direction * (keys[a] - keys[b]) || a - b);
  const sorted = new Uint32Array(rows.length);
  sorted.set(known);
  sorted.set(missing, known.length);
  return sorted;
}

// Rows that contain a text in any column but rank, score and p-value, by rank.
function searchRows(run, wanted) {
  const all = Uint32Array.from({ length: run.nKept }, (_, row) => row);
  if (wanted === "") return all;
  const found = new Uint8Array(run.nKept);
  for (const column of run.columns) {
    if (!["rank", "score", "p"].includes(column.role)) column.mark(found, wanted.toLowerCase());
  }
  return all.filter((row) => found[row]);
}

// Number of flagged rows in each bin; missing values are in no bin.
function countBins(bins, nBins, flags) {
  const counts = new Array(nBins).fill(0);
  for (let row = 0; row < flags.last; row += 1) {
    if (flags.has(row) && bins[row] < nBins) counts[bins[row]] += 1;
  }
  return counts;
}

function flaggedCsv(run, flags) {
  const hasReasons = Object.values(run.reasons).some((reasons) => reasons.length > 0);
  const reasonText = (row) =>
    (run.reasons[row] ?? [])
      .map(([name, drop, value, usual]) => `${name}: ${value}, usually ${usual} (score ${drop === null ? NOTHING : signed(-drop)})`)
      .join("; ");
  const headings = run.columns.map((column) => column.name);
  const lines = [csvLine(hasReasons ? [...headings, "reasons"] : headings)];
  for (const row of flaggedRows(flags)) {
    const cells = run.columns.map((column) => column.plain(row));
    lines.push(csvLine(hasReasons ? [...cells, reasonText(row)] : cells));
  }
  return lines;
}
