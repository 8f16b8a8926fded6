// The charts of scores: their histogram, and the ROC curve where the truth is known.

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
    this.flagged = countBins(bins, counts.length, this.flags).flagged;
    const high = (values) => values.map((value) => Math.max(value, least));
    return [middles(edges), high(counts), high(this.flagged)];
  }

  build() {
    this.made?.destroy();
    const { edges, counts } = this.run.scores;
    const most = Math.max(...counts, 1);
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
        draw: [(chart) => this.draw(chart)],
        setCursor: [(chart) => this.read(chart.cursor.idx)],
        ready: [(chart) => chart.over.addEventListener("click", () => this.choose(chart))],
      },
    });
  }

  draw(chart) {
    const { edges, normal } = this.run.scores;
    if (normal) {
      // If all rows of the batch were normal, the line would follow the bars.
      const scale = this.run.nRows / normal.reduce((sum, count) => sum + count, 0);
      drawTops(chart, edges, normal.map((count) => Math.max(scale * count, this.log.checked ? 0.5 : 0)), "normal");
    }
    if (this.hasLine) drawLine(chart, this.run.score.value(this.flags.count - 1), "text");
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
    this.readout.textContent = bin == null ? "" : this.binText(bin);
  }

  binText(bin) {
    const { edges, counts, normal } = this.run.scores;
    const others = normal ? `; ${plural(normal[bin], "known-normal row")}` : "";
    return `score from ${rounded(edges[bin], 4)} to ${rounded(edges[bin + 1], 4)}: ` +
      `${plural(counts[bin], "row")}, ${countText(this.flagged[bin])} flagged${others}`;
  }

  // If the flagged rows are not the first ones, no score separates them from the others.
  get hasLine() {
    return this.flags.count > 0;
  }

  update(flags) {
    this.flags = flags;
    this.made.chart.setData(this.data());
    const threshold = this.hasLine ? `, a dashed line at the threshold ${this.run.score.text(flags.count - 1)}` : "";
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
