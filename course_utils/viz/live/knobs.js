// What can be changed besides heads: words of the source, temperature of attention, positions.

import { h } from "../explorer/dom.js";

const COLDEST = 0.1;
const HOTTEST = 8;
const NAMES = { cross: "cross-attention", encoder: "encoder", decoder: "decoder" };

/** act: change(part of the change), set(part of the state). */
export class Knobs {
  constructor(config, act) {
    Object.assign(this, { act, tool: "hide", first: null, root: Math.sqrt(config.d_model / config.num_heads) });
    this.words = h("div", { class: "live-words", role: "group", "aria-label": "Words of the source" });
    this.told = h("p", { class: "live-note" });
    this.from = h("input", { type: "checkbox",
      onchange: () => act.change({ hiddenFrom: this.from.checked ? "both" : "decoder" }) });
    this.wordTools = h("section", { class: "live-wordtools", "aria-label": "Change words" },
      h("fieldset", { class: "live-choice" }, h("legend", {}, "A press on a word"), ...[["hide", "hides it"], ["swap", "swaps it with another"]]
        .map(([value, text]) => h("label", {}, h("input", { type: "radio", name: "live-tool", value, checked: value === "hide",
          onchange: () => this.take(value) }), text)),
        h("label", {}, this.from, "hide from the encoder, too")),
      this.words, this.told);
    this.family = h("select", { "aria-label": "Temperature of", onchange: () => this.paintTemperature() },
      ...Object.entries(NAMES).map(([value, text]) => h("option", { value }, text)), h("option", { value: "all" }, "all attention"));
    this.slider = h("input", { type: "range", min: Math.log(COLDEST), max: Math.log(HOTTEST), step: 0.01,
      "aria-label": "Temperature of attention", oninput: () => this.heat(Math.exp(Number(this.slider.value))) });
    this.degrees = h("output", {});
    this.source = this.position("source", "the English");
    this.target = this.position("target", "the French");
    this.element = h("section", { class: "live-knobs", "aria-label": "Temperature and positions" },
      h("h2", {}, "Temperature and positions"),
      h("p", {}, "Scores are divided by the temperature before softmax: below 1 the weights gather on one token, above 1 they spread. ",
        `Leaving out the root of d is one point of this line, 1/√${Math.round(this.root ** 2)} = ${(1 / this.root).toFixed(2)}. `,
        "In a trained model it does little harm; it is in training that the root matters."),
      h("div", { class: "live-line" }, h("label", {}, "Temperature of ", this.family), this.slider, this.degrees,
        h("button", { type: "button", onclick: () => this.heat(1 / this.root) }, "leave out √d"),
        h("button", { type: "button", onclick: () => this.heat(1) }, "back to 1")),
      h("div", { class: "live-line" }, h("span", {}, "Positions are added to "), this.source.label, this.target.label));
  }

  position(side, text) {
    const box = h("input", { type: "checkbox", onchange: () =>
      this.act.change({ positions: { ...this.change.positions, [side]: box.checked } }) });
    return { box, label: h("label", {}, box, text) };
  }

  take(tool) {
    Object.assign(this, { tool, first: null });
    this.paintWords();
  }

  get families() {
    return this.family.value === "all" ? Object.keys(NAMES) : [this.family.value];
  }

  heat(value) {
    const now = Math.abs(value - 1) < 0.03 ? 1 : Math.round(value * 1000) / 1000;
    const part = Object.fromEntries(this.families.map((family) => [family, now]));
    this.act.change({ temperature: { ...this.change.temperature, ...part } });
  }

  press(at) {
    const { hidden } = this.change;
    const { places } = this.sourceWords[at];
    if (this.tool === "hide") {
      const off = places.some((place) => hidden.includes(place));
      this.act.change({ hidden: off ? hidden.filter((place) => !places.includes(place)) : [...hidden, ...places] });
    } else if (this.first === null) {
      this.first = at;
      this.paintWords();
    } else {
      const pair = [this.first, at];
      this.first = null;
      this.act.set({ swap: pair[0] === pair[1] ? [] : pair, change: { ...this.change, hidden: [] } });
    }
  }

  /** words: those of the source as the model reads it now. */
  show(state, words) {
    Object.assign(this, { change: state.change, sourceWords: words });
    this.from.checked = state.change.hiddenFrom === "both";
    this.source.box.checked = state.change.positions.source;
    this.target.box.checked = state.change.positions.target;
    this.paintWords();
    this.paintTemperature();
  }

  paintWords() {
    const focused = [...this.words.children].indexOf(document.activeElement);
    this.words.replaceChildren(...this.sourceWords.map(({ text, places }, at) => {
      const hidden = places.some((place) => this.change.hidden.includes(place));
      return h("button", { type: "button", lang: "en", "aria-pressed": String(hidden || this.first === at),
        class: hidden ? "live-hidden" : this.first === at ? "live-first" : null, onclick: () => this.press(at) }, text);
    }));
    if (focused >= 0) this.words.children[focused]?.focus();
    this.told.textContent = this.tool === "swap"
      ? this.first === null ? "Choose a word." : `Now the word that “${this.sourceWords[this.first].text}” changes places with.`
      : "A hidden word is masked: the decoder cannot look at it. What the encoder has mixed into its neighbours stays, unless you hide it there, too.";
  }

  paintTemperature() {
    const now = this.change.temperature[this.families[0]];
    this.slider.value = Math.log(now);
    this.slider.setAttribute("aria-valuetext", now.toFixed(2));
    this.degrees.textContent = now.toFixed(2);
  }
}
