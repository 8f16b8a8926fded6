// Connects the parts: which rows are flagged, which one is chosen, light or dark.

// Stops of the slider: every number up to 100, then steps of 2 %. The box takes any number.
function sliderStops(most) {
  const stops = [];
  for (let k = 0; k < most; k = k < 100 ? k + 1 : Math.ceil(1.02 * k)) stops.push(k);
  return [...stops, most];
}

function countsWords(run, flags) {
  const { count: k, last } = flags;
  const strong = (text) => element("strong", { text });
  const parts = [strong(countText(k)), ` of ${plural(run.nRows, "row")} flagged (${percent(k / run.nRows)})`];
  if (k > 0 && flags.isTop) {
    parts.push(", score ≥ ", strong(run.score.text(k - 1)));
    const tied = run.reach[k - 1] - k;
    if (tied > 0) parts.push(`, which ${plural(tied, "more row")} ${tied === 1 ? "has" : "have"} too`);
  } else if (k > 0) {
    parts.push(`, the last at rank ${countText(last)}: flags rest on a comparison of their own`);
  }
  if (run.truth) {
    const { nOutliers } = run.truth;
    const hits = countText(Math.round(10 * flags.hits) / 10);
    const precision = k > 0 ? percent(flags.hits / k) : NOTHING;
    const rate = nOutliers > 0 ? percent(flags.hits / nOutliers) : NOTHING;
    parts.push("; ", strong(hits), ` of ${plural(nOutliers, "outlier")} found: TPR `, strong(rate), ", precision ", strong(precision));
  }
  return parts;
}

function download(run, flags) {
  // The byte order mark tells spreadsheets that the text is UTF-8.
  const file = new Blob(["\ufeff", ...flaggedCsv(run, flags)], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(file), download: "flagged-rows.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

class Page {
  constructor(run) {
    this.run = run;
    this.flags = run.flags;
    this.row = 0;
    this.box = document.getElementById("k-box");
    this.slider = document.getElementById("k-slider");
    this.given = document.getElementById("flags-given");
    this.top = document.getElementById("flags-top");
    this.stops = sliderStops(run.nKept);
    this.scores = new ScorePicture(run, (k) => this.flag(k));
    this.roc = run.truth ? new RocPicture(run) : null;
    this.feature = new FeaturePicture(run);
    this.table = new RankedTable(run, (row) => this.choose(row));
    this.detail = new DetailPanel(run, {
      canDraw: (name) => this.feature.has(name),
      onFeature: (name) => this.showFeature(name),
      onBack: (row) => this.table.focus(row),
    });
    this.listen();
    this.detail.show(this.row);
    this.update();
  }

  listen() {
    this.box.max = this.run.nKept;
    this.slider.max = this.stops.length - 1;
    this.slider.addEventListener("input", () => this.flag(this.stops[Number(this.slider.value)]));
    this.box.addEventListener("input", () => this.box.value !== "" && this.flag(Number(this.box.value)));
    // After editing, the box shows the number in use.
    this.box.addEventListener("change", () => { this.box.value = this.flags.count; });
    this.given.addEventListener("change", () => this.show(this.run.flags));
    this.top.addEventListener("change", () => this.flag(this.flags.count));
    this.button = document.getElementById("download");
    this.button.addEventListener("click", () => download(this.run, this.flags));
  }

  // The first k rows, in place of those that the run has flagged.
  flag(k) {
    this.top.checked = true;
    this.show(topFlags(Math.min(Math.max(0, Math.floor(k) || 0), this.run.nKept), this.run));
  }

  show(flags) {
    this.flags = flags;
    // A slider may send more events than the screen has frames.
    this.frame ??= requestAnimationFrame(() => this.update());
  }

  update() {
    this.frame = undefined;
    const { run, flags } = this;
    const k = flags.count;
    const place = this.stops.findIndex((stop) => stop >= k);
    if (this.stops[Number(this.slider.value)] !== k) this.slider.value = place;
    this.slider.setAttribute("aria-valuetext", `${countText(k)} of ${plural(run.nRows, "row")}`);
    if (document.activeElement !== this.box) this.box.value = k;
    document.getElementById("counts").replaceChildren(...countsWords(run, flags));
    this.button.textContent = `Download ${plural(k, "flagged row")} (CSV)`;
    this.button.disabled = k === 0;
    this.scores.update(flags);
    this.roc?.update(flags);
    this.feature.update(flags, this.row);
    this.table.update(flags, this.row);
  }

  choose(row) {
    this.row = row;
    this.detail.show(row);
    this.table.update(this.flags, row);
    this.feature.update(this.flags, row);
    // On narrow screens the reasons are below the table, out of sight.
    const isBelow = matchMedia("(max-width: 60rem)").matches;
    if (isBelow) this.detail.panel.scrollIntoView({ block: "start" });
  }

  showFeature(name) {
    this.feature.choose(name);
    this.feature.select.focus({ preventScroll: true });
    document.getElementById("section-features").scrollIntoView({ block: "start" });
  }

  redraw() {
    for (const picture of [this.scores, this.roc, this.feature]) picture?.redraw();
  }
}

function setUpTheme(onChange) {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const show = () => {
    button.textContent = isDark() ? "Light theme" : "Dark theme";
    onChange();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  prefersDark.addEventListener("change", show);
  button.hidden = false;
  show();
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old for it; a version of 2024 or later can");
  }
  const store = document.getElementById("data");
  const run = await readRun(store.textContent);
  store.remove();
  // Charts take their size from the page, which has to be visible first.
  document.getElementById("run").hidden = false;
  const page = new Page(run);
  setUpTheme(() => page.redraw());
  document.documentElement.dataset.ready = "yes";
}

try {
  await start();
} catch (error) {
  const trouble = document.getElementById("trouble");
  trouble.textContent = `This page could not be shown: ${error.message}.`;
  trouble.hidden = false;
}
