// Eight things to do, each done by doing it. A step says what to do, and, once done, what to see.

import { h } from "../explorer/dom.js";

const anyOff = (page, family) => page.state.change.off.some((name) => name.startsWith(family));
const said = (page) => `It says “${page.now.text}” in place of “${page.plain.text}”.`;
const outcome = (page) => (page.now.text === page.plain.text
  ? "Nothing changed: other heads stand in for it. That does not make it useless. Try others, or count over many sentences below."
  : said(page));

/** [what to do, whether it is done, what it shows]; each gets the page. */
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
    (page) => anyOff(page, "cross"), outcome],
  ["Press all off in Cross-attention, layer 1.",
    (page) => page.state.change.off.filter((name) => name.startsWith("cross.1")).length >= page.config.num_heads,
    (page) => `${page.now.text === page.plain.text ? "Even this changed nothing here. " : `${said(page)} `}Without this layer the decoder hears much less of the English, and goes on in French by itself.`],
  ["Undo all. Then hide a word of the English that matters.",
    (page) => page.state.change.hidden.length > 0 && !anyOff(page, "cross"), outcome],
  ["Undo all again, and take the positions away from the French.",
    (page) => !page.state.change.positions.target && !page.state.change.hidden.length,
    (page) => `${outcome(page)} The decoder no longer knows how far it has come. The address now holds what you set up: send it to a friend.`],
];

export class Tour {
  constructor(page) {
    Object.assign(this, { page, at: 0, done: false });
    this.title = h("h2", {});
    this.todo = h("p", { class: "live-todo" });
    this.seen = h("p", { role: "status" });
    this.next = h("button", { type: "button", onclick: () => this.go(this.at + 1) });
    const leave = h("button", { type: "button", onclick: () => { this.element.hidden = true; } }, "Leave the tour");
    this.element = h("section", { class: "live-tour", "aria-label": "Tour" }, this.title, this.todo, this.seen,
      h("div", { class: "live-line" }, this.next, leave));
    this.go(0);
  }

  go(at) {
    if (at >= STEPS.length) { this.element.hidden = true; return; }
    Object.assign(this, { at, done: false });
    this.page.asked = this.page.chosen = 0;
    this.paint();
    this.look();
  }

  /** After each change of the page: is this step done? */
  look() {
    if (this.done || !this.page.now || !STEPS[this.at][1](this.page)) return;
    this.done = true;
    this.seen.textContent = STEPS[this.at][2](this.page);
    this.paint();
  }

  paint() {
    this.title.textContent = `Tour, ${this.at + 1} of ${STEPS.length}`;
    this.todo.textContent = `${this.done ? "✓ " : ""}${STEPS[this.at][0]}`;
    if (!this.done) this.seen.textContent = "";
    this.next.textContent = !this.done ? "Skip this step" : this.at + 1 < STEPS.length ? "On" : "End";
    this.element.classList.toggle("live-done", this.done);
  }
}
