// The three charts: scores, ROC curve, a column.

class ScorePicture {
  constructor(run, onChoose) {
    Object.assign(this, { run, onChoose, flags: run.flags });
    this.box = document.getElementById("plot-scores");
    this.readout = document.getElementById("readout-scores");
    this.log = document.getElementById("log-counts");
    // On a linear axis a few suspicious rows among many others could not be seen.
    this.log.checked = Math.max(...run.scores.counts) > 200;
    this.log.addEventListener("change", () => this.build());
    this.build();
  }

  data() {
    const { edges, counts, bins } = this.run.scores;
    // A logarithmic axis has no zero: it starts at 0.5, and so do empty bars.
    const least = this.log.checked ? 0.5 : 0;
    this.flagged = countBins(bins, counts.length, this.flags);
    const high = (values) => values.map((value) => Math.max(value, least));
    return [middles(edges), high(counts), high(this.flagged)];
  }

  build() {
    this.made?.destroy();
    const { edges, counts } = this.run.scores;
    const most = Math.max(...counts);
    const isLog = this.log.checked;
    const powers = Array.from({ length: Math.floor(Math.log10(1.5 * most)) + 1 }, (_, n) => 10 ** n);
    const range = isLog ? [0.5, 1.5 * most] : [0, 1.05 * most];
    this.made = newChart(this.box, this.data(), {
      scales: {
        x: { time: false, range: [edges[0], edges.at(-1)] },
        y: { distr: isLog ? 3 : 1, range },
      },
      axes: [
        axis("score", { size: 32 }),
        axis("rows", {
          size: 58,
          values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? countText(tick) : "")),
          ...(isLog ? { splits: () => powers, filter: (_, ticks) => ticks } : {}),
        }),
      ],
      series: [{}, barSeries("all"), barSeries("flagged")],
      hooks: {
        draw: [(chart) => this.hasLine && drawLine(chart, this.run.score.value(this.flags.last - 1), "text")],
        setCursor: [(chart) => this.read(chart.cursor.idx)],
        ready: [(chart) => chart.over.addEventListener("click", () => this.choose(chart))],
      },
    });
  }

  // Flag all rows with at least the score that was clicked.
  choose(chart) {
    const least = chart.posToVal(chart.cursor.left, "x");
    const scores = this.run.score;
    let [low, high] = [0, this.run.nKept];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (scores.value(middle) >= least) low = middle + 1;
      else high = middle;
    }
    this.onChoose(low);
  }

  read(bin) {
    const { edges, counts } = this.run.scores;
    this.readout.textContent = bin == null ? "" :
      `score from ${rounded(edges[bin], 4)} to ${rounded(edges[bin + 1], 4)}: ` +
      `${plural(counts[bin], "row")}, ${countText(this.flagged[bin])} flagged`;
  }

  // If the flagged rows are not the first ones, no score separates them from the others.
  get hasLine() {
    return this.flags.isTop && this.flags.count > 0;
  }

  update(flags) {
    this.flags = flags;
    this.made.chart.setData(this.data());
    const threshold = this.hasLine ? `, a dashed line at the threshold ${this.run.score.text(flags.last - 1)}` : "";
    this.box.ariaLabel = `Histogram of the scores of ${plural(this.run.nRows, "row")}${threshold}`;
  }

  redraw() {
    this.made.chart.redraw();
  }
}

class RocPicture {
  constructor(run) {
    this.truth = run.truth;
    this.nRows = run.nRows;
    this.point = [0, 0];
    this.box = document.getElementById("plot-roc");
    this.words = document.getElementById("roc-words");
    const curve = run.truth.roc;
    if (!curve) {
      this.box.hidden = true;
      this.words.textContent = "All rows have the same label: there is no ROC curve.";
      return;
    }
    this.made = newChart(this.box, [curve.x, curve.y], {
      cursor: { show: false },
      scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } },
      axes: [axis("false positive rate", { size: 32 }), axis("true positive rate", { size: 44 })],
      series: [{}, { stroke: () => color("normal"), width: 2, points: { show: false } }],
      hooks: { draw: [(chart) => drawDot(chart, ...this.point)] },
    });
  }

  update({ count, hits }) {
    if (!this.made) return;
    const { nOutliers, roc } = this.truth;
    this.point = [(count - hits) / (this.nRows - nOutliers), hits / nOutliers];
    this.made.chart.redraw(false);
    const [x, y] = this.point.map((rate) => rate.toFixed(3));
    this.words.textContent =
      `AUC ${roc.auc.toFixed(4)}. With ${plural(count, "flagged row")}: true positive rate ${y}, false positive rate ${x}.`;
    this.box.ariaLabel = `ROC curve with an area of ${roc.auc.toFixed(4)}`;
  }

  redraw() {
    this.made?.chart.redraw();
  }
}

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
    const first = run.reasons[0]?.[0]?.[0];
    this.select.value = Math.max(0, run.features.findIndex(({ name }) => name === first));
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
    const counts = countBins(bins, normal.length, this.flags);
    const [ours, theirs] = [normal, counts].map((bars) => {
      const total = Math.max(bars.reduce((sum, bar) => sum + bar, 0), 1);
      return bars.map((bar) => bar / total);
    });
    this.shares = [ours, theirs];
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
        y: { range: (_, least, most) => [0, Math.max(1.15 * most, 0.01)] },
      },
      axes: [this.axis(), axis("share of rows", { size: 58, values: (_, ticks) => ticks.map(percent) })],
      series: [{}, ...series],
      hooks: {
        draw: [(chart) => this.mark(chart)],
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
    const [ours, theirs] = this.shares;
    return `${percent(ours[bin])} of the normal and ${percent(theirs[bin])} of the flagged rows`;
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
    const [ours, theirs] = this.shares;
    const title = visible(name);
    this.box.ariaLabel = `Distribution of ${title} in normal and in flagged rows`;
    const sentences = [];
    if (this.flags.count > 0) {
      const gaps = ours.map((share, bin) => theirs[bin] - share);
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
        sentences.push(`Without a value: ${plural(nMissing, "normal row")}, ${plural(flaggedMissing, "flagged row")}.`);
      }
      if (isClipped) sentences.push("The outermost bars also hold the values beyond them.");
    }
    this.words.textContent = sentences.join(" ");
  }

  update(flags, row) {
    Object.assign(this, { flags, row });
    if (!this.feature) return;
    this.made.chart.setData(this.data());
    this.describe();
  }

  redraw() {
    this.made?.chart.redraw();
  }
}
