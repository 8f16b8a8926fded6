// The chart of a column: known-normal rows, the rest of the batch, and flagged rows.

class FeaturePicture {
  constructor(run) {
    Object.assign(this, { run, flags: run.flags, row: null });
    this.box = document.getElementById("plot-feature");
    this.select = document.getElementById("feature");
    this.readout = document.getElementById("readout-feature");
    this.words = document.getElementById("feature-words");
    document.getElementById("no-features").hidden = run.features.length > 0;
    document.getElementById("feature-view").hidden = run.features.length === 0;
    this.select.append(...run.features.map(({ name }, place) =>
      element("option", { value: place, text: shortened(name, 60) })));
    this.select.addEventListener("change", () => this.build());
    this.build();
  }

  has(name) {
    return this.run.features.some((feature) => feature.name === name);
  }

  choose(name) {
    this.select.value = this.run.features.findIndex((feature) => feature.name === name);
    this.build();
  }

  get feature() {
    return this.run.features[Number(this.select.value)];
  }

  data() {
    const { kind, edges, labels, normal, bins } = this.feature;
    const { flagged, others } = countBins(bins, normal.length, this.flags);
    this.shares = [normal, others, flagged].map((bars) => {
      const total = Math.max(bars.reduce((sum, bar) => sum + bar, 0), 1);
      return bars.map((bar) => bar / total);
    });
    const [ours, , theirs] = this.shares;
    return [kind === "level" ? labels.map((_, place) => place) : middles(edges), ours, theirs];
  }

  build() {
    if (!this.feature) return;
    this.made?.destroy();
    const { kind, edges, labels } = this.feature;
    const isLevel = kind === "level";
    const range = isLevel ? [-0.5, labels.length - 0.5] : [edges[0], edges.at(-1)];
    const series = isLevel
      ? [barSeries("normal", { size: [0.38], align: -1 }), barSeries("flagged", { size: [0.38], align: 1 })]
      : [barSeries("normal"), outlineSeries("flagged")];
    this.made = newChart(this.box, this.data(), {
      // Rotated names of levels reach beyond the last bar.
      padding: [8, isLevel ? 48 : 8, 0, 0],
      ...(kind === "date" ? { tzDate: (time) => uPlot.tzDate(new Date(1000 * time), "Etc/UTC") } : {}),
      scales: {
        x: { time: kind === "date", range },
        y: { range: () => [0, Math.max(1.15 * Math.max(...this.shares.flat()), 0.01)] },
      },
      axes: [this.axis(), axis("share of rows", { size: 58, values: (_, ticks) => ticks.map(percent) })],
      series: [{}, ...series],
      hooks: {
        draw: [(chart) => {
          drawTops(chart, edges, this.shares[1], "rest");
          this.mark(chart);
        }],
        setCursor: [(chart) => this.read(chart.cursor.idx)],
      },
    });
    this.describe();
  }

  axis() {
    const { kind, labels, name } = this.feature;
    // About as many characters as there is room for.
    const title = shortened(name, Math.max(12, Math.floor(this.box.clientWidth / 9)));
    if (kind !== "level") return axis(title, { size: kind === "date" ? 46 : 32 });
    const names = labels.map((label) => shortened(label, 14));
    const isTight = Math.max(...names.map((text) => text.length)) * names.length * 9 > this.box.clientWidth;
    return axis(title, {
      splits: () => names.map((_, place) => place),
      values: () => names,
      ...(isTight ? { rotate: -35, size: 72 } : { size: 32 }),
    });
  }

  binText(bin) {
    const { kind, edges, labels } = this.feature;
    if (kind === "level") return visible(labels[bin]);
    const write = kind === "date" ? dateText : (value) => rounded(value, 4);
    return `${write(edges[bin])} to ${write(edges[bin + 1])}`;
  }

  shareText(bin) {
    const [ours, others, flagged] = this.shares.map((shares) => percent(shares[bin]));
    return `${ours} of the normal rows, ${others} of the rest of the batch and ${flagged} of the flagged rows`;
  }

  read(bin) {
    this.readout.textContent = bin == null ? "" : `${this.binText(bin)}: ${this.shareText(bin)}`;
  }

  mark(chart) {
    const bin = this.row === null ? undefined : this.feature.bins[this.row];
    if (chart.data[0][bin] !== undefined) drawTriangle(chart, chart.data[0][bin]);
  }

  // The chart in words, for screen readers: where the two groups differ most.
  describe() {
    const { kind, name, bins, normal, nMissing, isClipped } = this.feature;
    const [ours, , flagged] = this.shares;
    const title = visible(name);
    this.box.ariaLabel = `Distribution of ${title} in normal rows, in the rest of the batch and in flagged rows`;
    const sentences = [];
    if (this.flags.count > 0) {
      const gaps = ours.map((share, bin) => flagged[bin] - share);
      const bin = gaps.indexOf(Math.max(...gaps));
      sentences.push(gaps[bin] > 0
        ? `Most over-represented: ${this.binText(bin)}, with ${this.shareText(bin)}.`
        : "The flagged rows are distributed as the normal ones.");
    } else {
      sentences.push("No row is flagged.");
    }
    if (kind !== "level") {
      const flaggedMissing = flaggedRows(this.flags).filter((row) => bins[row] >= normal.length).length;
      if (nMissing || flaggedMissing) {
        sentences.push(`Without a ${kind}: ${plural(nMissing, "normal row")}, ${plural(flaggedMissing, "flagged row")}.`);
      }
      if (isClipped) sentences.push("The outermost bars also hold the values beyond them.");
    }
    if (this.run.nKept < this.run.nRows) sentences.push(`Of the batch the first ${countText(this.run.nKept)} rows are counted.`);
    this.words.textContent = sentences.join(" ");
  }

  update(flags, row) {
    Object.assign(this, { flags, row });
    if (!this.feature) return;
    this.made.chart.setData(this.data());
    this.describe();
  }

  // Another row is chosen: the bars stay.
  point(row) {
    this.row = row;
    this.redraw();
  }

  redraw() {
    this.made?.chart.redraw();
  }
}
