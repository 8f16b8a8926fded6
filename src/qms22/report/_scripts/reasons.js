// Why rows are suspicious: every row has its reasons at hand. In the table they are a column.

const UNKNOWN = 255;

class Reasons {
  constructor(spec, array) {
    Object.assign(this, { name: "reasons", role: "reasons", isNumber: false });
    this.statements = spec.texts;
    this.groups = spec.groups;
    this.counts = array(spec.counts);
    this.statementCodes = array(spec.text);
    this.groupCodes = array(spec.group);
    this.strengths = array(spec.strength);
    this.starts = new Uint32Array(this.counts.length + 1);
    this.counts.forEach((count, row) => {
      this.starts[row + 1] = this.starts[row] + (count === UNKNOWN ? 0 : count);
    });
  }

  get isAny() {
    return this.statementCodes.length > 0;
  }

  get nKnown() {
    return this.counts.reduce((sum, count) => sum + (count !== UNKNOWN), 0);
  }

  isKnown(row) {
    return this.counts[row] !== UNKNOWN;
  }

  // Of one row: columns to highlight, a statement, and its strength in percent of the strongest.
  of(row) {
    const places = Array.from({ length: this.starts[row + 1] - this.starts[row] }, (_, n) => this.starts[row] + n);
    return places.map((at) => ({
      columns: this.groups[this.groupCodes[at]],
      text: this.statements[this.statementCodes[at]],
      strength: this.strengths[at],
    }));
  }

  text(row) {
    return visible(this.plain(row)) || NOTHING;
  }

  plain(row) {
    return this.of(row).map((reason) => reason.text).join("; ");
  }

  isMissing(row) {
    return this.starts[row] === this.starts[row + 1];
  }

  // Statements are in the order of the alphabet: rows sort by their first one.
  keys() {
    return Float64Array.from(this.counts, (_, row) => (this.isMissing(row) ? NaN : this.statementCodes[this.starts[row]]));
  }

  get lower() {
    this.lowered ??= this.statements.map((text) => visible(text).toLowerCase());
    return this.lowered;
  }

  find(found, word) {
    const hits = Uint8Array.from(this.lower, (text) => text.includes(word));
    for (let row = 0; row < found.length; row += 1) {
      for (let at = this.starts[row]; at < this.starts[row + 1]; at += 1) {
        if (hits[this.statementCodes[at]]) found[row] = 1;
      }
    }
  }

  test() {
    throw new FilterError("Of reasons, ask for words: reasons contains voucher.");
  }
}
