// What a figure looks at: its scene, the chosen family, layer and head, and how to speak of them.

export const KINDS = {
  cross: "cross-attention: French looks at English",
  encoder: "encoder: English looks at English",
  decoder: "decoder: French looks at French",
  self: "self-attention",
};

export const other = (side) => (side === "query" ? "key" : "query");

/** State and questions about it; nothing here draws. */
export class View {
  constructor() {
    Object.assign(this, { layer: 0, head: 0, compare: null, stepping: false });
  }

  /** Take a scene. With `keep`, what was chosen stays chosen as far as it is still there. */
  load(scene, keep = false) {
    const before = keep && this.family;
    this.scene = scene;
    if (!before) Object.assign(this, { layer: scene.families[0].layers.length - 1, head: 0 });
    this.choose(scene.families.find(({ name }) => name === before?.name) ?? scene.families[0], keep);
  }

  choose(family, keep = false) {
    const { locked, cell, compare, rove } = this;
    this.family = family;
    Object.assign(this, {
      layer: Math.min(this.layer, family.layers.length - 1),
      head: Math.min(this.head, this.heads - 1),
      compare: null,
      preview: null,
      locked: null,
      cell: null,
      step: family.queries.length,
      stepping: false,
      rove: { query: 0, key: 0, weight: 0 },
    });
    if (!keep) return;
    Object.assign(this, { compare, rove });
    if (locked && locked.index < this.tokens(locked.side).length) this.locked = locked;
    const there = cell && cell.q < family.queries.length && cell.k < family.keys.length;
    if (this.locked && there) this.cell = cell;
  }

  get heads() {
    return this.family.layers[0].weights.shape[0];
  }

  get single() {
    return this.family.layers.length * this.heads === 1;
  }

  /** Whether tokens come into being step by step. */
  get growing() {
    return Boolean(this.family.grows) && this.scene.steps.length > 0;
  }

  /** What is drawn now: the locked token, or the one under pointer or focus, or this step's. */
  get active() {
    return this.locked ?? this.preview ?? (this.stepping ? { side: "query", index: this.step - 1 } : null);
  }

  numbers({ layer }) {
    return this.family.layers[layer];
  }

  weight(panel, q, k) {
    return this.numbers(panel).weights.at(panel.head, q, k);
  }

  visible(panel, q, k) {
    return this.numbers(panel).visible.at(panel.head, q, k) === 1;
  }

  tokens(side) {
    return side === "query" ? this.family.queries : this.family.keys;
  }

  exists(side, i) {
    const { grows } = this.family;
    return i < this.step || !(grows === "both" || (grows === "queries" && side === "query"));
  }

  /** What to call a head, and what was done to it. */
  name({ layer, head }) {
    const changed = this.family.layers[layer].changes?.[head];
    return this.single ? "" : `layer ${layer}, head ${head}${changed ? `: ${changed}` : ""}`;
  }

  /** A token in words; one that stands there more than once is followed by its position. */
  spoken(side, i) {
    const all = this.tokens(side);
    return all.indexOf(all[i]) === all.lastIndexOf(all[i]) ? all[i] : `${all[i]}[${i}]`;
  }

  /** The two largest weights of a row or a column, with their tokens. */
  strongest(panel, { side, index }) {
    const theirs = other(side);
    return this.tokens(theirs)
      .map((_, i) => ({ i, q: side === "query" ? index : i, k: side === "query" ? i : index }))
      .filter(({ i, q, k }) => this.exists(theirs, i) && this.visible(panel, q, k))
      .map(({ i, q, k }) => ({ token: this.spoken(theirs, i), w: this.weight(panel, q, k), q, k }))
      .sort((a, b) => b.w - a.w)
      .slice(0, 2);
  }
}
