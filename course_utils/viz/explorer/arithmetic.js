// The arithmetic of one weight, step by step, from the query and the key to the output.

import { exactly, h, number, svg } from "./dom.js";

/** What stands under a figure for the weight of query q and key k in one head.

    layer: what Python's `steps_of` gives, and in a model that was meddled with `temperature` and
    `changes`, by head; query and keys: how to call the tokens; close: the button that ends it. */
export function unfolding({ title, layer, head, q, k, query, keys, close }) {
  const cell = arithmeticOf(layer, head, q, k);
  const steps = [...cell.before(query, keys[k]), ...afterScore(cell, keys, query, keys[k])];
  const items = steps.map((step) => h("li", { tabindex: -1 }, ...step));
  const parts = formula(cell).map(([text, now], i) => h("button", { type: "button",
    onclick: () => { items[i].focus({ preventScroll: true }); items[i].scrollIntoView({ block: "nearest" }); } },
    h("span", {}, text), h("small", {}, now)));
  return [
    h("h4", { tabindex: -1 }, title), close,
    h("div", { class: "ax-formula", role: "group", "aria-label": "The formula, with the numbers of now" }, ...parts),
    h("ol", {}, ...items),
  ];
}

/** The formula step by step, and the number that each step gives here. */
function formula({ product, score, seen, weights, at, q }) {
  const before = product === undefined
    ? [["tanh(W_q q + W_k k)", "a vector"], ["w_v · tanh", number(score)]]
    : [["q · k", number(product)], [`÷ √${q.length}`, number(score)]];
  return [...before, ["mask", seen[at] ? "may look" : "−∞"], ["softmax", number(weights[at])], ["Σ weight × v", "a vector"]];
}

/** The numbers of one cell, as the layer had them. */
function arithmeticOf(layer, head, q, k) {
  const cell = {
    q: layer.q.row(head, q), k: layer.k.row(head, k), v: layer.v.row(head, k),
    output: layer.output.row(head, q), score: layer.scores.at(head, q, k),
    seen: layer.visible.row(head, q), scores: layer.scores.row(head, q), exps: layer.exps.row(head, q),
    weights: layer.weights.row(head, q), peak: layer.peaks.at(head, q), total: layer.totals.at(head, q), at: k,
    product: layer.products?.at(head, q, k), temperature: layer.temperature ?? 1, changed: layer.changes?.[head],
  };
  cell.before = layer.products
    ? (query, key) => dotProduct(cell, query, key)
    : (query, key) => additive(cell, layer.features.row(head, q, k), layer.w_v.row(), query, key);
  return cell;
}

function dotProduct({ q, k, product, score, temperature, changed }, query, key) {
  const terms = q.length > 1 ? [...q].slice(0, 2).flatMap((x, i) => [i ? " + " : "", times(x, k[i])]) : [times(q[0], k[0])];
  const products = multiply(q, k);
  const named = [[`q of ${query}`, q], [`k of ${key}`, k], ["q × k", products], ["sum so far", runningSum(products)]];
  const root = temperature === 1 ? ` / √${q.length} = ` : ` / (√${q.length} × ${number(temperature)}) = `;
  const scale = changed === "even"
    ? ["This head is made even: each of its scores is set to ", result(score, "score"), "."]
    : [temperature === 1 ? "Divide by √d: " : "Divide by √d and the temperature: ", exactly(product), root, result(score, "score")];
  return [
    [h("b", {}, "Multiply. "), "q · k = ", ...terms, q.length > 2 ? ` + … (${q.length} products) = ` : " = ",
      result(product, "product"), dimensions(q, k), ...vectors(named)],
    [h("b", {}, "Scale. "), ...scale],
  ];
}

/** Go through the dimensions: what each adds to q · k. */
function dimensions(q, k) {
  const products = multiply(q, k);
  const sums = runningSum(products);
  const text = h("output", {});
  const slider = h("input", { type: "range", min: 0, max: q.length - 1, value: 0, "aria-label": "Dimension",
    oninput: () => tell(Number(slider.value)) });
  const tell = (i) => {
    text.textContent = `Dimension ${i}: ${number(q[i])} × ${number(k[i])} = ${number(products[i])}; ` +
      `sum up to here ${number(sums[i])}`;
  };
  tell(0);
  return h("div", { class: "ax-dimension" }, slider, text);
}

function runningSum(x) {
  let sum = 0;
  return Float64Array.from(x, (value) => (sum += value));
}

function additive({ q, k, score }, features, w_v, query, key) {
  return [
    [h("b", {}, "Add and squash. "), `tanh(W_q q + W_k k), ${q.length} numbers between −1 and 1.`],
    [h("b", {}, "Weigh and sum. "), "w_v · tanh(W_q q + W_k k) = ", result(score, "score"),
      ...vectors([[`W_q q for ${query}`, q], [`W_k k of ${key}`, k], ["tanh of their sum", features],
        ["w_v", w_v], ["w_v × tanh", multiply(w_v, features)]])],
  ];
}

/** Mask, softmax and weighted sum are the same for every scoring function. */
function afterScore({ score, seen, scores, exps, weights, peak, total, at, v, output, changed }, keys, query, key) {
  const mask = seen[at]
    ? [`${query} may look at ${key}: the score stays `, exactly(score), "."]
    : [`${query} may not look at ${key}: the score becomes −∞, the weight 0.`];
  const rows = keys.map((token, i) => h("tr", { class: i === at ? "ax-here" : null },
    h("th", { scope: "row" }, token), h("td", {}, seen[i] ? exactly(scores[i]) : "masked"),
    h("td", {}, exactly(exps[i])), h("td", {}, exactly(weights[i]))));
  const head = ["key", "score", "e^(score−max)", "weight"].map((text) => h("th", { scope: "col" }, text));
  const sum = h("tr", {}, h("th", { scope: "row" }, "sum"), h("td", {}), h("td", {}, exactly(total)), h("td", {}));
  const softmax = total > 0
    ? ["e^(", exactly(seen[at] ? score : -Infinity), " − ", bracketed(peak), ") / sum = ", exactly(exps[at]), " / ", exactly(total), " = "]
    : [`${query} may look at nothing, so all its weights are `];
  return [
    [h("b", {}, "Mask. "), ...mask],
    [h("b", {}, "Softmax. "), ...softmax, result(weights[at], "weight"),
      h("div", { class: "ax-scroll", tabindex: 0, role: "region", "aria-label": "Softmax of the row" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows, sum)))],
    [h("b", {}, "Weighted sum. "), `The value of ${key} counts `, exactly(weights[at]),
      ` times; with those of all other keys it adds up to the head's output for ${query}.`,
      ...vectors([[`v of ${key}`, v], ["weight × v", multiply(v, new Float64Array(v.length).fill(weights[at]))],
        ["output, all keys", output]]),
      changed === "off" ? h("p", {}, "The head is off: zeros go on in place of this output.") : ""],
  ];
}

const multiply = (a, b) => Float64Array.from(a, (x, i) => x * b[i]);
const bracketed = (x) => exactly(x, x < 0 ? `(${number(x)})` : number(x));
const times = (a, b) => h("span", {}, bracketed(a), " × ", bracketed(b));
const result = (x, role) => h("strong", { class: "ax-result", "data-role": role, title: String(x) }, number(x));

/** Vectors as strips of bars, up for positive, and all their numbers in a table to open. */
function vectors(named) {
  const strips = named.map(([label, x]) => h("div", { class: "ax-strip" }, h("span", {}, label), bars(x)));
  const index = Array.from(named[0][1], (_, i) => i);
  const table = h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "i"), ...named.map(([label]) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, ...index.map((i) => h("tr", {}, h("th", { scope: "row" }, String(i)),
      ...named.map(([, x]) => h("td", {}, exactly(x[i])))))));
  return [h("div", { class: "ax-strips" }, ...strips),
    h("details", {}, h("summary", {}, "all numbers"),
      h("div", { class: "ax-scroll", tabindex: 0, role: "region", "aria-label": "All numbers" }, table))];
}

function bars(x) {
  const most = x.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  const strip = svg("svg", { class: "ax-bars", viewBox: `0 -1 ${x.length} 2`, preserveAspectRatio: "none",
    role: "img", "aria-label": `${x.length} numbers, the largest of size ${number(most)}` });
  strip.append(svg("line", { class: "ax-zero", x1: 0, x2: x.length, y1: 0, y2: 0, "vector-effect": "non-scaling-stroke" }));
  x.forEach((value, i) => {
    const high = Math.abs(value) / most;
    strip.append(svg("rect", { class: value < 0 ? "ax-down" : "ax-up", x: i + 0.1, width: 0.8, height: high,
      y: value < 0 ? 0 : -high }));
  });
  return h("span", { class: "ax-scale" }, strip, h("small", {}, `±${number(most)}`));
}
