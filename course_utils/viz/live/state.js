// All that a reader has set up, and how it is written into the address, to be sent to a friend.

import { UNTOUCHED } from "./transformer.js";

export const FAMILIES = ["encoder", "decoder", "cross"];
export const MARK = "#live?"; // so that other anchors of a page mean what they meant
const LONGEST = 600; // characters that are taken from an address

export const START = {
  text: "", way: "greedy", heat: 0.5, seed: 1, // how it is said
  said: [], // ids that the translation has to begin with
  swap: [], // two words of the source that change places
  change: UNTOUCHED,
  view: { family: "cross", layer: 1, head: 0 },
};

export function toAddress(state) {
  const { change, view } = state;
  const warm = FAMILIES.filter((family) => change.temperature[family] !== 1);
  const blind = Object.keys(change.positions).filter((side) => !change.positions[side]);
  const fields = {
    t: state.text,
    way: state.way === "greedy" ? "" : state.way,
    heat: state.way === "sample" ? state.heat : "",
    seed: state.way === "sample" ? state.seed : "",
    said: state.said.join(" "),
    swap: state.swap.join(" "),
    off: change.off.join(" "),
    even: change.even.join(" "),
    temperature: warm.map((family) => `${family}:${change.temperature[family]}`).join(" "),
    blind: blind.join(" "),
    hide: change.hidden.join(" "),
    from: change.hidden.length && change.hiddenFrom === "both" ? "both" : "",
    at: `${view.family}.${view.layer}.${view.head}`,
  };
  const filled = Object.entries(fields).filter(([, value]) => value !== "");
  return MARK + new URLSearchParams(filled).toString();
}

/** The state that an address describes, or null; what does not fit the model is left out. */
export function fromAddress(hash, { config, tokens }) {
  if (!hash.startsWith(MARK)) return null;
  const fields = new URLSearchParams(hash.slice(MARK.length));
  const list = (name) => (fields.get(name) ?? "").split(" ").filter(Boolean);
  const numbers = (name, below) => list(name).map(Number).filter((x) => Number.isInteger(x) && x >= 0 && x < below);
  const heads = (name) => [...new Set(list(name))].filter((each) => isHead(each, config));
  const temperature = { ...UNTOUCHED.temperature };
  for (const [family, value] of list("temperature").map((pair) => pair.split(":"))) {
    if (FAMILIES.includes(family) && Number(value) > 0) temperature[family] = within(Number(value), 0.1, 8);
  }
  const at = fields.get("at") ?? "";
  const [family, layer, head] = isHead(at, config) ? at.split(".") : ["cross", "1", "0"];
  const off = heads("off");
  return {
    text: (fields.get("t") ?? "").slice(0, LONGEST),
    way: ["beam", "sample"].includes(fields.get("way")) ? fields.get("way") : "greedy",
    heat: within(Number(fields.get("heat")) || START.heat, 0.1, 1.5),
    seed: numbers("seed", 2 ** 31)[0] ?? START.seed,
    said: numbers("said", tokens.pieces.length).filter((id) => id >= tokens.reserved).slice(0, 49),
    swap: numbers("swap", config.max_len).slice(0, 2),
    change: {
      off,
      even: heads("even").filter((name) => !off.includes(name)),
      temperature,
      positions: { source: !list("blind").includes("source"), target: !list("blind").includes("target") },
      hidden: numbers("hide", config.max_len),
      hiddenFrom: fields.get("from") === "both" ? "both" : "decoder",
    },
    view: { family, layer: Number(layer), head: Number(head) },
  };
}

function isHead(name, { num_heads, num_encoder_layers, num_decoder_layers }) {
  const [family, layer, head, ...rest] = name.split(".");
  const layers = family === "encoder" ? num_encoder_layers : num_decoder_layers;
  const below = (text, most) => /^\d+$/.test(text ?? "") && Number(text) < most;
  return FAMILIES.includes(family) && !rest.length && below(layer, layers) && below(head, num_heads);
}

export const within = (x, least, most) => Math.min(most, Math.max(least, x));

const CALLED = { encoder: "encoder", decoder: "decoder", cross: "cross-attention" };
export const inWords = (name) => {
  const [family, layer, head] = name.split(".");
  return `${CALLED[family]}, layer ${layer}, head ${head}`;
};

/** Each change in words, with the state in which it is undone. */
export function changesOf(state, words) {
  const { change } = state;
  const undo = (part) => ({ ...state, change: { ...change, ...part } });
  const found = [];
  for (const [kind, said] of [["off", "off"], ["even", "even"]]) {
    for (const name of change[kind]) {
      found.push([`${inWords(name)}: ${said}`, undo({ [kind]: change[kind].filter((other) => other !== name) })]);
    }
  }
  for (const family of FAMILIES.filter((each) => change.temperature[each] !== 1)) {
    const temperature = { ...change.temperature, [family]: 1 };
    found.push([`temperature of the ${CALLED[family]}: ${change.temperature[family].toFixed(2)}`, undo({ temperature })]);
  }
  for (const side of ["source", "target"].filter((each) => !change.positions[each])) {
    const where = side === "source" ? "English" : "French";
    found.push([`no positions in the ${where}`, undo({ positions: { ...change.positions, [side]: true } })]);
  }
  for (const { text, places } of words.filter((word) => word.places.some((place) => change.hidden.includes(place)))) {
    const from = change.hiddenFrom === "both" ? "both stacks" : "the decoder";
    found.push([`“${text}” hidden from ${from}`, undo({ hidden: change.hidden.filter((place) => !places.includes(place)) })]);
  }
  if (state.swap.length === 2 && words.length) {
    const [a, b] = state.swap.map((at) => words[at]?.text);
    found.push([`“${a}” and “${b}” have changed places`, { ...state, swap: [] }]);
  }
  if (state.said.length) found.push(["the French begins as you chose", { ...state, said: [] }]);
  return found;
}
