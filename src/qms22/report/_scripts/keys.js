// The keyboard: j and k or the arrows step through rows, letters mark them.

class Keys {
  constructor(page) {
    this.page = page;
    this.help = document.getElementById("help");
    this.areOn = document.getElementById("keys-on");
    document.getElementById("help-open").addEventListener("click", () => this.help.showModal());
    document.getElementById("help-close").addEventListener("click", () => this.help.close());
    document.addEventListener("keydown", (event) => this.press(event));
    document.getElementById("filter").addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.page.table.box.focus();
    });
  }

  press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open) return;
    const isTyping = event.target.closest("textarea, select, input:not([type=checkbox], [type=radio])");
    if (isTyping) return;
    const isInTable = this.page.table.box.contains(event.target);
    const action = (isInTable && this.arrows()[event.key]) || (this.areOn.checked && this.letters()[event.key]);
    if (!action) return;
    event.preventDefault();
    action();
  }

  arrows() {
    const { table } = this.page;
    const { scrollTop, clientHeight } = table.box;
    const many = Math.max(1, table.placeAt(scrollTop + clientHeight) - table.placeAt(scrollTop) - 2);
    return {
      ArrowDown: () => this.page.step(1),
      ArrowUp: () => this.page.step(-1),
      PageDown: () => this.page.step(many),
      PageUp: () => this.page.step(-many),
      Home: () => this.page.step(-Infinity),
      End: () => this.page.step(Infinity),
    };
  }

  letters() {
    const mark = (word) => () => this.page.detail.toggle(word);
    return {
      j: () => this.page.step(1),
      k: () => this.page.step(-1),
      a: mark("anomaly"),
      n: mark("normal"),
      u: mark("unsure"),
      "/": () => document.getElementById("filter").focus(),
      "?": () => this.help.showModal(),
    };
  }
}
