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

async function readRun(text) {
  const buffer = await unpack(text);
  const start = Number(new DataView(buffer).getBigUint64(0, true));
  const run = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start)));
  const array = ([type, offset, length]) => new ARRAYS[type](buffer, offset, length);
  const read = (spec) => {
    const Kind = spec.type === "number" ? NumberColumn : TextColumn;
    if (spec.keys) spec.keys = array(spec.keys);
    return new Kind(spec, array(spec.data));
  };
  run.columns = run.columns.map(read);
  run.marked = run.marked.map(read);
  const places = new Map(run.columns.map(({ name }, place) => [name, place]));
  run.features.sort((one, other) => places.get(one.name) - places.get(other.name));
  for (const part of [run.scores, ...run.features]) part.bins = array(part.bins);
  run.reach = array(run.reach);
  if (run.truth) run.truth.found = array(run.truth.found);
  run.findings.forEach((finding) => { finding.rows = array(finding.rows); });
  run.reasons = new Reasons(run.reasons, array);
  const find = (role) => run.columns.find((column) => column.role === role);
  Object.assign(run, { score: find("score"), id: find("id"), pValue: find("p") });
  run.flags = topFlags(run.nFlagged, run);
  return run;
}

// The first k rows are flagged; `hits` is how many outliers are among them where that is known.
function topFlags(k, run) {
  return { count: k, has: (row) => row < k, hits: run.truth?.found[k] };
}

function flaggedRows(flags) {
  return Array.from({ length: flags.count }, (_, row) => row);
}

// So many of the first k rows are normal at most, as `Curve.of_first` computes it.
function falseAtMost(k, { nWithin, limits, mostNormal }) {
  const bounds = limits.map((limit, at) => limit + Math.max(k - nWithin[at], 0));
  return Math.min(k, mostNormal, ...bounds);
}

// Number of flagged and of other rows in each bin; missing values are in no bin.
function countBins(bins, nBins, flags) {
  const flagged = new Array(nBins).fill(0);
  const others = new Array(nBins).fill(0);
  for (let row = 0; row < bins.length; row += 1) {
    if (bins[row] < nBins) (flags.has(row) ? flagged : others)[bins[row]] += 1;
  }
  return { flagged, others };
}

// The columns of the batch in the order of its file.
function fileColumns(run) {
  const others = run.columns.filter(({ role }) => role !== "value");
  const values = run.columns.filter(({ role }) => role === "value");
  return [others, values.sort((one, other) => one.spec.place - other.spec.place)];
}

// A name that no column of the batch has.
function freeName(name, run) {
  return run.columns.some((column) => column.name === name) ? freeName(`${name}_`, run) : name;
}

function flaggedCsv(run, flags) {
  const columns = fileColumns(run).flat();
  const heading = columns.map((column) => column.name);
  const lines = [csvLine(run.reasons.isAny ? [...heading, "reasons"] : heading)];
  for (const row of flaggedRows(flags)) {
    const cells = columns.map((column) => column.plain(row));
    lines.push(csvLine(run.reasons.isAny ? [...cells, run.reasons.plain(row)] : cells));
  }
  return lines;
}

function download(name, lines) {
  // The byte order mark tells spreadsheets that the text is UTF-8.
  const file = new Blob(["\ufeff", ...lines], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
