// Eight things to do, each done by doing it. A step says what to do, and, once done, what to see.

import { h } from "../explorer/dom.js";
import { inWords } from "./state.js";
import { UNTOUCHED } from "./transformer.js";

const anyOff = (page, family) => page.state.change.off.some((name) => name.startsWith(family));
const said = (page) => `It says “${page.now.text}” in place of “${page.plain.text}”.`;
const same = (page) => page.now.text === page.plain.text;
const outcome = (page) => (same(page) ? "Here that changed nothing." : said(page));
const ofHead = (page) => (same(page)
  ? "Nothing changed: other heads stand in for it. That does not make it useless. Count over many sentences below, or:"
  : said(page));

/** A sentence, the page's or an example, and a head of the cross-attention that changes it. */
function tellingHead({ translator, config, state, examples }) {
  const french = (source, off) => translator.tokens.decode(translator.translate(source, { change: { ...UNTOUCHED, off } }));
  const layers = Array.from({ length: config.num_decoder_layers }, (_, n) => config.num_decoder_layers - 1 - n);
  const heads = layers.flatMap((layer) => Array.from({ length: config.num_heads }, (_, n) => `cross.${layer}.${n}`));
  for (const text of [state.text, ...examples]) {
    const source = translator.read(text);
    const before = french(source, []);
    const head = heads.find((name) => french(source, [name]) !== before);
    if (head) return { text, head };
  }
  return null;
}

/** Switch off a head that changes something, in a sentence where it does. */
function showOne(page) {
  const found = tellingHead(page);
  if (!found) return "No head of the cross-attention changes any of these sentences alone.";
  page.set({ text: found.text, said: [], swap: [], way: "greedy", change: { ...UNTOUCHED, off: [found.head] } });
  return `${inWords(found.head)} is off in “${found.text}”. ${said(page)}`;
}

/** [what to do, whether it is done, what it shows, what has to stand alone]; functions get the page. */
const STEPS = [
  ["Type an English sentence of your own and press Translate.",
    (page) => page.asked > 0, (page) => `The model took ${page.plain.ids.length + 1} steps: one token at a time, each with all it had said before.`],
  ["Press a French word in the left column of the map.",
    (page) => page.view?.locked?.side === "query" && page.view.family.name === "cross",
    (page) => { const [best] = page.view.strongest(page.view, page.view.locked);
      return `When it said ${page.view.spoken("query", page.view.locked.index)}, this head looked most at ${best?.token}: that is cross-attention.`; }],
  ["Press one of the weights beside the English words.",
    (page) => Boolean(page.view?.cell), () => "Below stands its arithmetic, from q · k to the output. Move the slider through the dimensions, or press a part of the formula."],
  ["Find another head: press a map in All heads at once.",
    (page) => page.chosen > 0, (page) => `This is layer ${page.view.layer}, head ${page.view.head}. Each head asks a question of its own.`],
  ["Switch a head of the cross-attention off.",
    (page) => anyOff(page, "cross"), ofHead],
  ["Press all off in Cross-attention, layer 1.",
    (page) => page.state.change.off.filter((name) => name.startsWith("cross.1")).length >= page.config.num_heads,
    (page) => `${same(page) ? "Even this changed nothing here. " : `${said(page)} `}Without this layer the decoder hears much less of the English, and goes on in French by itself.`],
  ["Hide a word of the English that matters, and nothing else.",
    (page) => page.state.change.hidden.length > 0, outcome, ["hidden", "hiddenFrom"]],
  ["Take the positions away from the French, and change nothing else.",
    (page) => !page.state.change.positions.target,
    (page) => `${outcome(page)} The decoder no longer knows how far it has come. The address now holds what you set up: send it to a friend.`, ["positions"]],
];
const HEAD = 4; // the step at which one head may change nothing

const partOf = (whole, names) => Object.fromEntries(names.map((name) => [name, whole[name]]));

export class Tour {
  constructor(page) {
    Object.assign(this, { page, at: 0, done: false });
    this.title = h("h2", {});
    this.todo = h("p", { class: "live-todo" });
    this.seen = h("p", { role: "status" });
    this.next = h("button", { type: "button", onclick: () => this.go(this.at + 1) });
    this.undo = h("button", { type: "button", onclick: () => this.undoOthers() }, "Undo the other changes");
    this.show = h("button", { type: "button", onclick: () => { this.seen.textContent = showOne(page); this.paint(); } },
      "Show a head that changes something");
    const leave = h("button", { type: "button", onclick: () => { this.element.hidden = true; } }, "Leave the tour");
    this.element = h("section", { class: "live-tour", "aria-label": "Tour" }, this.title, this.todo, this.seen,
      h("div", { class: "live-line" }, this.undo, this.show, this.next, leave));
    this.go(0);
  }

  go(at) {
    if (at >= STEPS.length) { this.element.hidden = true; return; }
    Object.assign(this, { at, done: false });
    this.page.asked = this.page.chosen = 0;
    this.paint();
    this.look();
  }

  /** What is changed besides what this step asks for. */
  others() {
    const alone = STEPS[this.at][3];
    return alone && this.page.now ? this.page.changed(partOf(UNTOUCHED, alone)) : [];
  }

  undoOthers() {
    const own = partOf(this.page.state.change, STEPS[this.at][3]);
    this.page.set({ change: { ...UNTOUCHED, ...own }, swap: [], said: [] });
  }

  /** After each change of the page: is this step done? */
  look() {
    if (this.done || !this.page.now) return;
    const acted = STEPS[this.at][1](this.page);
    this.done = acted && !this.others().length;
    this.paint();
    if (this.done) this.seen.textContent = STEPS[this.at][2](this.page);
    else if (acted) this.seen.textContent = "Done, but other changes stand beside it: undo them, to see this one alone.";
  }

  paint() {
    this.title.textContent = `Tour, ${this.at + 1} of ${STEPS.length}`;
    this.todo.textContent = `${this.done ? "✓ " : ""}${STEPS[this.at][0]}`;
    if (!this.done) this.seen.textContent = "";
    this.next.textContent = !this.done ? "Skip this step" : this.at + 1 < STEPS.length ? "On" : "End";
    this.undo.hidden = this.done || !this.others().length;
    this.show.hidden = !(this.at === HEAD && this.done && same(this.page));
    this.element.classList.toggle("live-done", this.done);
  }
}
