// The decoder step by step: play, one back, one on, and what each step says.

import { h } from "./dom.js";

const STEP_MS = 1300;

export class Player {
  /** goTo(step) shows a step. */
  constructor(view, goTo) {
    Object.assign(this, { view, goTo, timer: null });
    const move = (by) => () => { this.stop(); goTo(view.step + by); };
    this.slider = h("input", { type: "range", min: 1, "aria-label": "Step of the decoder",
      oninput: () => { this.stop(); goTo(Number(this.slider.value)); } });
    this.back = h("button", { type: "button", onclick: move(-1), "aria-label": "One step back" }, "◀");
    this.forth = h("button", { type: "button", onclick: move(1), "aria-label": "One step on" }, "▶");
    this.playing = h("button", { type: "button", class: "ax-play", onclick: () => this.play() }, "Play");
    this.text = h("p", { class: "ax-step", role: "status" });
    const line = h("div", { class: "ax-player" }, this.playing, this.back, this.slider, this.forth);
    this.element = h("div", { class: "ax-steps" }, line, this.text);
    this.none = h("p", { class: "ax-steps" }, "The encoder reads all tokens at once: no steps to play.");
  }

  /** What stands in the figure for this family, if anything. */
  elementNow() {
    if (this.view.scene.steps.length === 0) return null;
    this.slider.max = this.view.family.queries.length;
    return this.view.growing ? this.element : this.none;
  }

  play() {
    const last = this.view.family.queries.length;
    if (this.timer) this.stop();
    else {
      this.timer = setInterval(() => {
        if (this.view.step + 1 >= last) this.stop();
        this.goTo(this.view.step + 1);
      }, STEP_MS);
      this.goTo(this.view.step >= last ? 1 : this.view.step + 1);
    }
    this.paint();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
  }

  paint() {
    const { view } = this;
    if (!view.growing) return;
    const step = view.scene.steps[view.step - 1];
    const last = view.family.queries.length;
    this.slider.value = view.step;
    this.back.disabled = view.step <= 1;
    this.forth.disabled = view.step >= last;
    this.playing.textContent = this.timer ? "Pause" : "Play";
    const chances = step.candidates.map(([token, p]) => `${token} ${p.toFixed(2)}`).join(" · ");
    this.text.textContent =
      `Step ${view.step} of ${last}: reads “${step.reads}”, says “${step.says}”. Likeliest: ${chances}`;
  }
}
