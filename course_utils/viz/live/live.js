// The live page: a sentence goes in, a translation comes out word by word, and all can be changed.

import { h } from "../explorer/dom.js";
import { Figure } from "../explorer/figure.js";
import { Board } from "./board.js";
import { marked } from "./compare.js";
import { beyond, doubt } from "./doubt.js";
import { Knobs } from "./knobs.js";
import { sceneOf } from "./scene.js";
import { MARK, START, changesOf, fromAddress, toAddress } from "./state.js";
import { Tour } from "./tour.js";
import { UNTOUCHED } from "./transformer.js";
import { Translator } from "./translator.js";

const EXAMPLES = ["The black cat is sleeping.", "My sister has a red bicycle.", "Where did you put my keys?", "She told me she was tired."];
const WORD_MS = 350;
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Live {
  /** packed: what Python's `pack_model` gives, with `sentences` to count over. */
  constructor(root, packed, { compact = false } = {}) {
    const translator = new Translator(packed);
    Object.assign(this, { root, translator, compact, examples: EXAMPLES, config: packed.config, sentences: packed.sentences ?? [] });
    Object.assign(this, { asked: 0, chosen: 0, now: null, plain: null, view: null, plainCache: new Map() });
    this.state = fromAddress(location.hash, packed) ?? START;
    if (!this.state.text) this.state = { ...this.state, text: EXAMPLES[0] };
    this.build();
    this.run({ reveal: true });
    addEventListener("hashchange", () => {
      if (location.hash !== this.written && location.hash.startsWith(MARK)) this.set(fromAddress(location.hash, packed));
    });
  }

  // ---- what stands where ---------------------------------------------------------------------

  build() {
    const act = {
      change: (part) => this.set({ change: { ...this.state.change, ...part } }),
      set: (part) => this.set(part),
      choose: (family, layer, head) => { this.chosen += 1; this.figure.select({ family, layer, head }); },
    };
    this.input = h("input", { type: "text", name: "english", lang: "en", maxlength: 600, autocomplete: "off", spellcheck: "false" });
    this.notice = h("p", { class: "ax-notice", role: "alert" });
    const form = h("form", { class: "ax-own", onsubmit: (event) => { event.preventDefault(); this.ask(this.input.value); } },
      h("label", {}, "English ", this.input), h("button", { type: "submit", class: "live-go" }, "Translate"));
    const examples = h("p", { class: "live-line" }, "or ", ...EXAMPLES.map((text) =>
      h("button", { type: "button", lang: "en", onclick: () => this.ask(text) }, text)));
    this.plainLine = h("p", { class: "live-said", lang: "fr" });
    this.nowLine = h("p", { class: "live-said", lang: "fr" });
    this.changes = h("ul", { class: "live-changes" });
    this.both = h("div", { class: "live-both" },
      h("h3", {}, "With your changes"), this.nowLine, h("div", { class: "live-undo" }, this.changes));
    this.result = h("section", { class: "live-result", "aria-label": "Translation", "aria-live": "polite" },
      h("h3", {}, "French"), this.plainLine, this.both);
    this.doubt = h("p", { class: "live-note live-doubt", role: "status" });
    this.candidates = h("section", { class: "live-candidates", "aria-label": "Candidates of this step" });
    this.figureRoot = h("div", { class: "live-figure" });
    this.figure = new Figure(this.figureRoot, { changed: (view) => this.looked(view) });
    this.board = new Board(this.config, act);
    this.knobs = new Knobs(this.config, act);
    this.tour = this.compact ? null : new Tour(this);
    this.root.classList.add("ax", "live");
    const parts = this.compact
      ? [form, examples, this.notice, this.result, this.doubt, this.knobs.wordTools, this.figureRoot, this.candidates]
      : [this.tour.element, form, examples, this.notice, this.result, this.doubt, this.knobs.wordTools,
        h("div", { class: "live-main" }, h("div", {}, this.figureRoot, this.candidates, this.ways()), this.board.element),
        this.knobs.element, this.counter(), this.share()];
    this.root.replaceChildren(...parts);
  }

  /** Greedy, beam or sampled. */
  ways() {
    const radio = (value, text) => h("label", {}, h("input", { type: "radio", name: "live-way", value,
      onchange: () => this.set({ way: value, said: [] }) }), text);
    this.heat = h("input", { type: "range", min: 0.1, max: 1.5, step: 0.05, "aria-label": "Temperature of sampling",
      oninput: () => this.set({ way: "sample", heat: Number(this.heat.value) }) });
    this.degrees = h("output", {});
    this.again = h("button", { type: "button", onclick: () => this.set({ way: "sample", seed: this.state.seed + 1 }) }, "draw again");
    this.sampled = h("span", { class: "live-line" }, "temperature ", this.heat, this.degrees, this.again,
      h("small", {}, "Up to 0.5 it makes sense; at 1 this model, trained with smoothed labels, says junk."));
    this.wayBox = h("fieldset", { class: "live-choice" }, h("legend", {}, "Each word is"), radio("greedy", "the likeliest"),
      radio("beam", "part of the best of 4 beams"), radio("sample", "drawn by chance"), this.sampled);
    return this.wayBox;
  }

  counter() {
    this.counted = h("p", { role: "status" });
    this.counting = h("button", { type: "button", onclick: () => this.count() }, `Count over ${this.sentences.length} sentences`);
    return h("section", { class: "live-counter", "aria-label": "Over many sentences" }, h("h2", {}, "Over many sentences"),
      h("p", {}, "One sentence is an anecdote. How many translations do the heads, the temperature and the positions that you have set change?"),
      h("div", { class: "live-line" }, this.counting), this.counted);
  }

  share() {
    const told = h("span", { role: "status" });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(location.href);
        told.textContent = "Copied.";
      } catch {
        told.textContent = "Copy it from the line of the address.";
      }
    };
    return h("p", { class: "live-line" }, "The address of this page holds all that you have set up.",
      h("button", { type: "button", onclick: copy }, "Copy it"), told);
  }

  // ---- what happens --------------------------------------------------------------------------

  ask(text) {
    this.asked += 1;
    this.set({ text, said: [], swap: [], change: { ...this.state.change, hidden: [] } }, { reveal: true });
  }

  set(part, options) {
    this.state = { ...this.state, ...part };
    this.run(options);
  }

  /** Translate with and without the changes, and show it. */
  run({ reveal = false } = {}) {
    clearInterval(this.timer);
    const { state, translator } = this;
    if (document.activeElement !== this.input || reveal) this.input.value = state.text;
    const words = translator.words(state.text);
    const source = translator.read(state.text);
    const wrong = source.length === 1 ? "Write an English sentence first."
      : source.length > this.config.max_len ? `This has ${source.length - 1} pieces, and at most ${this.config.max_len - 1} fit: write less.` : "";
    this.notice.textContent = wrong || beyond(state.text, words);
    this.doubt.textContent = doubt(translator, words);
    for (const element of [this.result, this.doubt, this.knobs.wordTools, this.figureRoot, this.candidates]) element.hidden = Boolean(wrong);
    if (wrong) { this.now = this.plain = null; return; }

    const mine = swapped(words, state.swap);
    const changed = mine.flatMap(({ ids }) => ids).concat(source.at(-1));
    const how = { way: state.way, temperature: state.heat, seed: state.seed };
    this.plain = this.say(source, how);
    const change = inRange(state.change, source.length - 1);
    this.now = this.say(changed, { ...how, change, said: state.said });
    this.words = mine;
    const run = translator.listen(changed, this.now.ids, change);
    this.scene = sceneOf(translator, run, state.text, this.now.text);
    const keep = Boolean(this.view);
    this.figure.show(this.scene, keep);
    if (!keep) this.figure.select(state.view);
    this.paint();
    if (reveal && !still()) this.reveal();
  }

  /** All that is changed, in words, each with the state in which it is undone; `kept` does not count. */
  changed(kept = {}) {
    return changesOf({ ...this.state, change: { ...this.state.change, ...kept } }, this.words);
  }

  say(source, options) {
    const ids = this.translator.translate(source, options);
    return { ids, text: this.translator.tokens.decode(ids) };
  }

  /** Let the words come one by one. */
  reveal() {
    const last = this.scene.steps.length;
    let step = 0;
    this.timer = setInterval(() => {
      step += 1;
      this.figure.goTo(step);
      if (step < last) return;
      clearInterval(this.timer);
      this.figure.view.stepping = false;
      this.figure.paint();
    }, WORD_MS);
  }

  /** The figure has changed: another step, head or token. */
  looked(view) {
    this.view = view;
    const { family, layer, head } = view;
    this.state = { ...this.state, view: { family: family.name, layer, head } };
    this.board.show(null, this.state.change, this.state.view);
    this.paintSaid();
    this.paintCandidates();
    this.tour?.look();
    this.remember();
  }

  remember() {
    const now = toAddress(this.state);
    if (now === (this.written ??= now)) return; // an address without a mark stays as it is
    this.written = now;
    history.replaceState(null, "", now);
  }

  // ---- painting ------------------------------------------------------------------------------

  paint() {
    const list = this.changed();
    const undo = (text, next) => h("li", {}, text, " ", h("button", { type: "button", "aria-label": `Undo: ${text}`,
      onclick: () => this.set(next) }, "undo"));
    this.changes.replaceChildren(...list.map(([text, next]) => undo(text, next)));
    if (list.length > 1) {
      this.changes.append(h("li", {}, h("button", { type: "button",
        onclick: () => this.set({ change: UNTOUCHED, swap: [], said: [] }) }, "undo all")));
    }
    this.both.hidden = list.length === 0;
    this.paintSaid();
    this.board.show(this.scene, this.state.change, this.state.view);
    this.knobs.show(this.state, this.words);
    this.paintCandidates();
    this.paintWays();
    this.tour?.look();
    this.remember();
  }

  paintSaid() {
    if (!this.now) return;
    const until = this.view?.stepping ? this.view.step : Infinity;
    const sofar = this.translator.tokens.decode(this.now.ids.slice(0, until));
    if (!this.both.hidden) {
      this.plainLine.replaceChildren(...marked(this.plain.text, this.now.text));
      this.nowLine.replaceChildren(...marked(until === Infinity ? this.now.text : sofar, this.plain.text));
    } else this.plainLine.replaceChildren(sofar || "…");
  }

  paintCandidates() {
    if (!this.scene || !this.view) return;
    const at = this.stepNow();
    const step = this.scene.steps[at];
    if (this.candidatesOf === step) return; // a button that is replaced while it is pressed is not pressed
    this.candidatesOf = step;
    const bars = step.candidates.map(([label, p, id]) => h("li", {},
      h("button", { type: "button", disabled: id < this.translator.tokens.reserved, "aria-label": `Say ${label} here instead`,
        onclick: () => this.set({ way: "greedy", said: [...this.now.ids.slice(0, at), id] }) }, label),
      h("span", { class: "live-bar", style: `--share: ${p}` }), h("span", { class: "ax-number" }, p.toFixed(3))));
    this.candidates.replaceChildren(
      h("h3", {}, `Token ${at + 1} of the French, after “${step.reads}”: the likeliest`),
      h("ol", {}, ...bars), h("p", { class: "live-note" }, "Press one to make the translation go on from it. Play, above, goes through the steps."));
  }

  /** The step to tell of: the one of a locked French word, or of Play, or where the model was least sure. */
  stepNow() {
    const { locked, family, stepping, step } = this.view;
    if (locked?.side === "query" && family.grows) return locked.index;
    if (stepping) return step - 1;
    const sure = this.scene.steps.map(({ candidates }) => candidates[0][1]);
    return sure.indexOf(Math.min(...sure));
  }

  paintWays() {
    if (this.compact) return;
    const { way, heat } = this.state;
    for (const radio of this.wayBox.querySelectorAll("input[type=radio]")) radio.checked = radio.value === way;
    this.heat.value = heat;
    this.degrees.textContent = heat.toFixed(2);
    this.sampled.hidden = way !== "sample";
  }

  /** How many of the sentences the changes of the model change, a few at a time. */
  async count() {
    const { translator } = this;
    const change = { ...this.state.change, hidden: [] };
    this.counting.disabled = true;
    let differ = 0;
    for (const [n, text] of this.sentences.entries()) {
      const source = translator.read(text);
      if (!this.plainCache.has(text)) this.plainCache.set(text, this.say(source, {}).text);
      differ += this.say(source, { change }).text !== this.plainCache.get(text);
      this.counted.textContent = `${differ} of ${n + 1} translations changed${n + 1 < this.sentences.length ? " so far …" : " (greedy)."}`;
      await new Promise((resolve) => setTimeout(resolve));
    }
    this.counting.disabled = false;
  }
}

/** The words with two of them in each other's place, and where each then stands. */
function swapped(words, [a, b]) {
  if (!words[a] || !words[b]) return words;
  const order = [...words];
  [order[a], order[b]] = [words[b], words[a]];
  let place = 0;
  return order.map((word) => ({ ...word, places: word.ids.map(() => place++) }));
}

const inRange = (change, length) => ({ ...change, hidden: change.hidden.filter((place) => place < length) });
