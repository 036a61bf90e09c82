// Every head at once: its map, small, to choose it by, and a switch under it.

import { h } from "../explorer/dom.js";
import { FAMILIES } from "./state.js";

const TITLES = { encoder: "Encoder", decoder: "Decoder", cross: "Cross-attention" };
const PRESS = {
  off: "Off: its output is zero, as if the head were not there.",
  even: "Even: it weighs all that it may look at alike; its values still go on.",
  alone: "Alone: all other heads of its layer are off.",
};

/** act: choose(family, layer, head) and change(part), a part of the change. */
export class Board {
  constructor(config, act) {
    Object.assign(this, { config, act, press: "off", cells: [] });
    this.told = h("p", { class: "live-note" }, PRESS.off);
    this.element = h("section", { class: "live-board", "aria-label": "All heads" },
      h("h2", {}, "All heads at once"),
      h("p", {}, "Each square is the map of one head: a row for each token that looks, a column for each that is looked at. ",
        "Press a map to see it large."),
      h("fieldset", { class: "live-choice" }, h("legend", {}, "A press on a switch makes a head"), ...Object.keys(PRESS).map((value) =>
        h("label", {}, h("input", { type: "radio", name: "live-press", value, checked: value === "off",
          onchange: () => { this.press = value; this.told.textContent = PRESS[value]; } }), value))),
      this.told,
      h("div", { class: "live-rows" }, ...FAMILIES.flatMap((family) => this.rows(family))));
  }

  rows(family) {
    const { num_heads, num_encoder_layers, num_decoder_layers } = this.config;
    const layers = family === "encoder" ? num_encoder_layers : num_decoder_layers;
    return Array.from({ length: layers }, (_, layer) => {
      const cells = Array.from({ length: num_heads }, (_, head) => this.cell(family, layer, head));
      const all = h("button", { type: "button", onclick: () => this.whole(family, layer) }, "all off");
      this.cells.push({ family, layer, all });
      const title = `${TITLES[family]}, layer ${layer}`;
      return h("div", { class: "live-row", role: "group", "aria-label": title },
        h("span", { class: "live-row-title" }, title), ...cells.map(({ element }) => element), all);
    });
  }

  cell(family, layer, head) {
    const name = `${family}.${layer}.${head}`;
    const canvas = h("canvas", { "aria-hidden": "true" });
    const look = h("button", { type: "button", class: "live-map", onclick: () => this.act.choose(family, layer, head) }, canvas);
    const state = h("button", { type: "button", class: "live-switch", onclick: () => this.toggle(name) });
    const cell = { family, layer, head, name, canvas, look, state };
    this.cells.push(cell);
    cell.element = h("div", { class: "live-head" }, look, state);
    return cell;
  }

  namesOf(family, layer) {
    return Array.from({ length: this.config.num_heads }, (_, head) => `${family}.${layer}.${head}`);
  }

  toggle(name) {
    const { off, even } = this.change;
    const without = (list) => list.filter((other) => other !== name);
    if (this.press === "alone") {
      const [family, layer] = name.split(".");
      const row = this.namesOf(family, layer);
      const others = row.filter((other) => other !== name);
      this.act.change({ off: [...off.filter((each) => !row.includes(each)), ...others], even: even.filter((each) => !others.includes(each)) });
    } else if (off.includes(name) || even.includes(name)) this.act.change({ off: without(off), even: without(even) });
    else this.act.change({ [this.press]: [...this.change[this.press], name] });
  }

  whole(family, layer) {
    const row = this.namesOf(family, layer);
    const { off, even } = this.change;
    const all = row.every((name) => off.includes(name));
    const rest = off.filter((name) => !row.includes(name));
    this.act.change({ off: all ? rest : [...rest, ...row], even: even.filter((name) => !row.includes(name)) });
  }

  /** Draw the maps of a scene, and what a change has made of each head. */
  show(scene, change, view) {
    this.change = change;
    for (const cell of this.cells) {
      const { family, layer, head, name } = cell;
      if (cell.all) {
        cell.all.textContent = this.namesOf(family, layer).every((each) => change.off.includes(each)) ? "all on" : "all off";
        cell.all.setAttribute("aria-label", `${TITLES[family]}, layer ${layer}: ${cell.all.textContent}`);
        continue;
      }
      const what = change.off.includes(name) ? "off" : change.even.includes(name) ? "even" : "on";
      const called = `${TITLES[family]}, layer ${layer}, head ${head}`;
      cell.state.textContent = what;
      cell.state.setAttribute("aria-pressed", String(what !== "on"));
      cell.state.setAttribute("aria-label", `${called} is ${what}`);
      cell.look.setAttribute("aria-label", `Look at ${called}`);
      const chosen = view.family === family && view.layer === layer && view.head === head;
      cell.look.setAttribute("aria-current", String(chosen));
      cell.element.classList.toggle("live-off", what === "off");
      if (scene) draw(cell.canvas, scene.families.find((each) => each.name === family), layer, head);
    }
  }
}

/** One pixel a weight; the page makes it larger. */
function draw(canvas, { queries, keys, layers }, layer, head) {
  Object.assign(canvas, { width: keys.length, height: queries.length });
  const paper = canvas.getContext("2d");
  const colour = getComputedStyle(canvas).color;
  queries.forEach((_, q) => layers[layer].weights.row(head, q).forEach((weight, k) => {
    paper.globalAlpha = Math.min(1, 0.06 + weight);
    paper.fillStyle = layers[layer].visible.at(head, q, k) ? colour : "gray";
    paper.fillRect(k, q, 1, 1);
  }));
}
