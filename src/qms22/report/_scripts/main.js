// Connects the parts: which rows are flagged, which one is chosen, light or dark.

// Stops of the slider: every number up to 100, then steps of 2 %. The box takes any number.
function sliderStops(most) {
  const stops = [];
  for (let k = 0; k < most; k = k < 100 ? k + 1 : Math.ceil(1.02 * k)) stops.push(k);
  return [...stops, most];
}

function boundWords(k, curve) {
  const most = falseAtMost(k, curve);
  const words = `${most === 1 ? "is" : "are"} normal (${percent(curve.confidence)} sure)`;
  return [`Of the first ${plural(k, "row")} at most `, element("strong", { text: countText(most) }), ` ${words}`];
}

function countsWords(run, flags) {
  const { count: k } = flags;
  const strong = (text) => element("strong", { text });
  const parts = [strong(countText(k)), ` of ${plural(run.nRows, "row")} flagged (${percent(k / run.nRows)})`];
  if (k > 0) {
    parts.push(", score ≥ ", strong(run.score.text(k - 1)));
    const tied = run.reach[k - 1] - k;
    if (tied > 0) parts.push(`, which ${plural(tied, "more row")} ${tied === 1 ? "has" : "have"} too`);
  }
  if (k > 0 && run.curve) parts.push(". ", ...boundWords(k, run.curve));
  if (run.truth) {
    const { nOutliers } = run.truth;
    const hits = countText(Math.round(10 * flags.hits) / 10);
    const precision = k > 0 ? percent(flags.hits / k) : NOTHING;
    const rate = nOutliers > 0 ? percent(flags.hits / nOutliers) : NOTHING;
    parts.push("; ", strong(hits), ` of ${plural(nOutliers, "outlier")} found: TPR `, strong(rate), ", precision ", strong(precision));
  }
  return parts;
}

class Page {
  constructor(run, hash) {
    this.run = run;
    this.flags = run.flags;
    this.row = 0;
    this.box = document.getElementById("k-box");
    this.slider = document.getElementById("k-slider");
    this.given = document.getElementById("flags-given");
    this.top = document.getElementById("flags-top");
    this.stops = sliderStops(run.nKept);
    this.findings = new Findings(run, (place) => this.showFinding(place));
    this.marks = new Marks(run, hash, () => this.showMarks());
    this.scores = new ScorePicture(run, (k) => this.flag(k));
    this.roc = run.truth ? new RocPicture(run) : null;
    this.feature = new FeaturePicture(run);
    this.table = new RankedTable(run, this.marks, (row) => this.choose(row));
    this.filter = new FilterBox(new Filter(run, this.computed()), (rows) => {
      this.table.list(rows);
      this.findings.update(this.filter.text);
      this.remember();
    });
    this.detail = new DetailPanel(run, this.marks, {
      canDraw: (name) => this.feature.has(name),
      onFeature: (name) => this.showFeature(name),
      onFinding: (place) => this.showFinding(place),
      onBack: (row) => this.table.focus(row),
    });
    this.keys = new Keys(this);
    this.listen();
    this.goTo(readAddress());
  }

  // What filters can ask for besides the columns of the batch.
  computed() {
    const { run } = this;
    return [
      new ComputedColumn(freeName("mark", run), (row) => this.marks.of(row).mark),
      new ComputedColumn(freeName("note", run), (row) => this.marks.of(row).note),
      new ComputedColumn(freeName("flagged", run), (row) => (this.flags.has(row) ? "yes" : "no")),
      new ComputedColumn(run.findingName, (row) => (run.findingOf(row) < 0 ? "" : String(run.findingOf(row) + 1))),
    ];
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
    this.button.addEventListener("click", () => download("flagged-rows.csv", flaggedCsv(this.run, this.flags)));
    this.table.head.addEventListener("click", () => this.remember());
    this.table.onlyFlagged.addEventListener("change", () => this.remember());
    this.feature.select.addEventListener("change", () => this.remember());
    for (const button of document.querySelectorAll("[data-column]")) {
      const feature = this.run.features.find(({ name }) => visible(name) === button.dataset.column);
      button.disabled = feature === undefined;
      button.addEventListener("click", () => this.showFeature(feature.name));
    }
    // The address holds the view: sections are reached without it.
    for (const link of document.querySelectorAll("nav a")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        document.querySelector(link.hash).scrollIntoView();
      });
    }
    addEventListener("hashchange", () => location.hash.includes("=") && this.goTo(readAddress()));
    setUpPrinting(this);
  }

  // Show the view of an address.
  goTo(view) {
    const { run } = this;
    this.isMoving = true;
    const k = view.has("k") ? Number(view.get("k")) : NaN;
    this.flags = Number.isInteger(k) && k >= 0 && k <= run.nKept ? topFlags(k, run) : run.flags;
    (this.flags === run.flags ? this.given : this.top).checked = true;
    const column = this.table.columns.find(({ name }) => name === view.get("sort")) ?? run.columns[0];
    Object.assign(this.table, { sorted: column, direction: view.get("order") === "down" ? -1 : 1, flags: this.flags });
    this.table.onlyFlagged.checked = view.has("flagged");
    if (this.feature.has(view.get("column"))) this.feature.choose(view.get("column"));
    this.table.list(this.table.found);
    this.filter.set(view.get("filter") ?? "");
    const row = Number(view.get("row")) - 1;
    this.row = Number.isInteger(row) && row >= 0 && row < run.nKept ? row : this.table.rows[0] ?? 0;
    this.detail.show(this.row);
    this.update();
    this.table.reveal(this.row);
    this.isMoving = false;
  }

  remember() {
    if (this.isMoving) return;
    const { table, feature, run } = this;
    const isSorted = table.sorted !== run.columns[0] || table.direction !== 1;
    writeAddress({
      filter: this.filter.text,
      sort: isSorted ? table.sorted.name : "",
      order: isSorted && table.direction === -1 ? "down" : "",
      flagged: table.onlyFlagged.checked ? "only" : "",
      k: this.flags === run.flags ? "" : this.flags.count,
      column: feature.select.selectedIndex > 0 ? feature.feature.name : "",
      row: this.row > 0 ? this.row + 1 : "",
    });
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
    if (/flagged/i.test(this.filter.text)) this.filter.apply();
    this.findings.showOthers(flags, (filter) => this.filter.set(filter));
    this.remember();
  }

  // Marks have changed. A filter by marks is not applied again: a row must not vanish when it is marked.
  showMarks() {
    this.marks.show();
    this.table.mark();
    this.detail.update();
  }

  choose(row) {
    this.pick(row);
    // On narrow screens the reasons are below the table, out of sight.
    const isBelow = matchMedia("(max-width: 60rem)").matches;
    if (isBelow) this.detail.panel.scrollIntoView({ block: "start" });
  }

  // Some rows down or up in the list.
  step(steps) {
    const row = this.table.neighbour(steps);
    if (row === undefined) return;
    this.pick(row);
    this.table.reveal(row);
    this.table.focus(row);
  }

  pick(row) {
    this.detail.show(row);
    this.row = row;
    this.table.update(this.flags, row);
    this.feature.point(row);
    this.remember();
  }

  // Filter to the rows of a finding; a second press shows all rows again.
  showFinding(place) {
    const filter = findingFilter(this.run, place);
    const isShown = this.filter.text === filter;
    this.filter.set(isShown ? "" : filter);
    if (isShown) return;
    const { columns } = this.run.findings[place];
    const name = columns.find((each) => this.feature.has(each));
    if (name !== undefined) this.feature.choose(name);
    if (this.table.rows.length > 0) this.pick(this.table.rows[0]);
  }

  showFeature(name) {
    this.feature.choose(name);
    this.feature.select.focus({ preventScroll: true });
    document.getElementById("section-features").scrollIntoView({ block: "start" });
    this.remember();
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

// Prepare sorting and searching while nothing else is to do: the first click need not wait for it.
function warmUp(columns) {
  const [column, ...others] = columns;
  if (column === undefined) return;
  const later = globalThis.requestIdleCallback ?? setTimeout;
  later(() => {
    prepareSort(column);
    column.lower?.at(0);
    warmUp(others);
  });
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old for it; a version of 2024 or later can");
  }
  const store = document.getElementById("data");
  const run = await readRun(store.textContent);
  const { hash } = store.dataset;
  store.remove();
  // Charts take their size from the page, which has to be visible first.
  document.getElementById("run").hidden = false;
  const page = new Page(run, hash);
  setUpTheme(() => page.redraw());
  document.documentElement.dataset.ready = "yes";
  warmUp(page.table.columns);
}

try {
  await start();
} catch (error) {
  const trouble = document.getElementById("trouble");
  trouble.textContent = `This page could not be shown: ${error.message}.`;
  trouble.hidden = false;
}
