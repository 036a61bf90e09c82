// The figure: choose an attention, touch a token, unfold a weight.

import { unfolding } from "./arithmetic.js";
import { h } from "./dom.js";
import { buildPanel, paintPanel } from "./panel.js";
import { Player } from "./player.js";
import { KINDS, View } from "./view.js";

/** A figure in `root`. head(scene): what stands above it; changed(view): called after each change. */
export class Figure {
  constructor(root, { head = () => null, changed = () => {} } = {}) {
    Object.assign(this, { root, head, changed, view: new View(), panels: [] });
    this.player = new Player(this.view, (step) => this.goTo(step));
    root.addEventListener("keydown", (event) => this.onKey(event));
  }

  show(scene, keep = false) {
    this.player.stop();
    this.view.load(scene, keep);
    this.build();
  }

  /** Choose a family, a layer or a head by hand of the program. */
  select({ family, ...rest }) {
    const { view } = this;
    const next = view.scene.families.find(({ name }) => name === family);
    if (next && next !== view.family) this.choose(next);
    Object.assign(view, rest, { cell: null });
    this.build();
  }

  choose(family) {
    this.player.stop();
    this.view.choose(family);
    this.build();
  }

  lock(side, index) {
    const { view } = this;
    const same = view.locked?.side === side && view.locked.index === index;
    view.locked = same || !view.exists(side, index) ? null : { side, index };
    view.preview = same ? null : view.locked;
    view.cell = null;
    this.paint();
  }

  unlock() {
    const { side, index } = this.view.locked;
    const focused = this.root.getRootNode().activeElement;
    const back = this.panels.find((panel) => panel.element.contains(focused));
    if (focused?.classList.contains("ax-weight")) back[side].tokens[index].focus();
    Object.assign(this.view, { locked: null, preview: null, cell: null });
    this.paint();
  }

  look(at) {
    const { view } = this;
    if (at) view.rove[at.side] = at.index;
    view.preview = at && view.exists(at.side, at.index) ? at : null;
    this.paint();
  }

  goTo(step) {
    const { view } = this;
    view.step = Math.max(1, Math.min(step, view.family.queries.length));
    view.stepping = true;
    if (view.locked && !view.exists(view.locked.side, view.locked.index)) view.locked = null;
    if (!view.locked) view.cell = null;
    view.preview = null;
    this.paint();
  }

  open(panel, side, index) {
    const { view } = this;
    const n = this.panels.indexOf(panel);
    const [q, k] = side === "key" ? [view.locked.index, index] : [index, view.locked.index];
    if (view.cell?.panel === n && view.cell.q === q && view.cell.k === k) return this.close();
    view.cell = { panel: n, q, k, side, index };
    this.paint();
    this.unfolded.querySelector("h4").focus({ preventScroll: true });
    this.unfolded.scrollIntoView({ block: "nearest" });
  }

  close() {
    const { panel, side, index } = this.view.cell;
    this.view.cell = null;
    this.paint();
    this.panels[panel][side].weights[index].focus();
  }

  onKey(event) {
    event.stopPropagation(); // JupyterLab's one-letter commands stay outside
    if (event.key !== "Escape" || !(this.view.cell || this.view.locked)) return;
    event.preventDefault();
    if (this.view.cell) this.close();
    else this.unlock();
  }

  // ---- building: what stands where; nothing here depends on the pointer ----------------------

  build() {
    const { view, root } = this;
    this.status = h("p", { class: view.compare ? "ax-status ax-long" : "ax-status", role: "status" });
    this.unfolded = h("section", { class: "ax-unfolded", "aria-label": "Arithmetic of one weight", hidden: true });
    const act = {
      lock: (...at) => this.lock(...at), look: (at) => this.look(at), open: (...at) => this.open(...at),
      focus: (index) => { view.rove.weight = index; this.paint(); },
    };
    this.panels = [{ layer: view.layer, head: view.head }, view.compare].filter(Boolean)
      .map((chosen) => buildPanel(view, chosen, act));
    const focused = root.getRootNode().activeElement;
    const label = root.contains(focused) && focused.tagName === "SELECT" && focused.ariaLabel;
    const parts = [
      this.head(view.scene),
      h("div", { class: "ax-controls" }, ...this.selects()),
      this.player.elementNow(),
      this.status,
      h("div", { class: "ax-panels" }, ...this.panels.map((panel) => panel.element)),
      this.legend(),
      this.unfolded,
    ];
    root.replaceChildren(...parts.filter(Boolean));
    if (label) root.querySelector(`select[aria-label="${label}"]`)?.focus();
    this.paint();
  }

  selects() {
    const { view } = this;
    const { family, scene } = view;
    const count = (n) => Array.from({ length: n }, (_, i) => [String(i), String(i)]);
    const pairs = family.layers.flatMap((_, l) =>
      Array.from({ length: view.heads }, (_, i) => [`${l}:${i}`, `layer ${l}, head ${i}`]));
    const others = pairs.filter(([value]) => value !== `${view.layer}:${view.head}`);
    const compared = view.compare ? `${view.compare.layer}:${view.compare.head}` : "";
    const rebuild = (change) => {
      const next = { layer: view.layer, head: view.head, ...change };
      const same = view.compare?.layer === next.layer && view.compare.head === next.head;
      Object.assign(view, { cell: null }, same ? { compare: null } : {}, change);
      this.build();
    };
    return [
      select("Attention", scene.families.map((f) => [f.name, KINDS[f.name]]), family.name,
        (value) => this.choose(scene.families.find((f) => f.name === value))),
      select("Layer", count(family.layers.length), String(view.layer), (v) => rebuild({ layer: Number(v) })),
      select("Head", count(view.heads), String(view.head), (v) => rebuild({ head: Number(v) })),
      others.length > 0 && select("Compare with", [["", "nothing"], ...others], compared, (value) => {
        const [l, i] = value.split(":").map(Number);
        rebuild({ compare: value ? { layer: l, head: i } : null });
      }),
    ].filter(Boolean);
  }

  legend() {
    const pieces = [...this.view.family.queries, ...this.view.family.keys].some((token) => token.startsWith("·"));
    return h("p", { class: "ax-legend" },
      "0.00 is a weight below 0.005. Masked: this query may not look there.",
      pieces ? " · begins a word; a piece without it goes on with the word before." : "");
  }

  // ---- painting ------------------------------------------------------------------------------

  paint() {
    this.panels.forEach((panel, n) => paintPanel(this.view, panel, n));
    this.player.paint();
    this.status.textContent = this.describe();
    this.unfold();
    this.changed(this.view);
  }

  /** The line under the controls, in words. */
  describe() {
    const { view, panels } = this;
    const { active } = view;
    if (!active) return "Point at a token, or Tab to one and use the arrow keys. Click or Enter locks it.";
    const looks = active.side === "query" ? "looks most at" : "is looked at most by";
    const said = panels.map((panel) => {
      const where = panels.length > 1 ? ` in ${view.name(panel)}` : "";
      const two = view.strongest(panel, active).map(({ token, w }) => `${token} (${w.toFixed(2)})`);
      return (two.join(", then ") || "nothing") + where;
    });
    const locked = view.locked ? " Locked: choose a weight to unfold its arithmetic; Escape unlocks." : "";
    return `${view.spoken(active.side, active.index)} ${looks} ${said.join("; ")}.${locked}`;
  }

  unfold() {
    const { view, unfolded } = this;
    const key = JSON.stringify(view.cell);
    if (key === unfolded.dataset.cell) return;
    unfolded.dataset.cell = key;
    unfolded.hidden = !view.cell;
    if (!view.cell) return unfolded.replaceChildren();
    const { panel, q, k } = view.cell;
    const keys = view.family.keys.map((_, i) => view.spoken("key", i));
    const close = h("button", { type: "button", class: "ax-close", onclick: () => this.close() }, "Close");
    unfolded.replaceChildren(...unfolding({
      title: [`Query ${view.spoken("query", q)}, key ${keys[k]}`, view.name(this.panels[panel])].filter(Boolean).join(": "),
      layer: view.numbers(this.panels[panel]), head: this.panels[panel].head, q, k,
      query: view.spoken("query", q), keys, close,
    }));
  }
}

function select(label, options, chosen, change) {
  if (options.length < 2) return null;
  const element = h("select", { "aria-label": label, onchange: () => change(element.value) },
    ...options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return h("label", {}, `${label} `, element);
}
