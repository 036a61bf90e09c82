// What the translator did while it said something, as the scene that a figure shows.

import { dot, largest, softmax } from "./math.js";

const CANDIDATES = 5; // likeliest next tokens that a step tells

/** run: what `listen` gives; said: the translation as text. */
export function sceneOf(translator, run, text, said) {
  const { config } = translator.model;
  const [h, d] = [config.num_heads, config.d_model / config.num_heads];
  const label = (id) => translator.tokens.label(id);
  const english = run.source.map(label);
  const french = run.says.map(label);
  const read = run.steps.map(({ reads }) => label(reads));
  const seen = (k) => !run.change.hidden.includes(k);
  const family = (name, queries, keys, labels, grows, rows, visible) => ({
    name, queries, keys, query_label: labels[0], key_label: labels[1], grows,
    layers: rows.map((layer, index) => numbersOf(layer, { name, index, h, d, visible, change: run.change })),
  });
  const byLayer = (name, side) => run.decoder.map((layer, index) => ({
    ...layer[side], did: run.steps.map(({ did }) => did[name][index]),
  }));
  return {
    source: text,
    said,
    families: [
      family("cross", french, english, ["French, said", "English, read"], "queries", byLayer("cross", "source"), (q, k) => seen(k)),
      family("encoder", english, english, ["English", "English"], "", run.encoder,
        (q, k) => run.change.hiddenFrom !== "both" || seen(k)),
      family("decoder", read, read, ["French, read", "French, read"], "both", byLayer("decoder", "target"), (q, k) => k <= q),
    ],
    steps: run.steps.map(({ logits }, t) => {
      const { weights } = softmax(logits);
      const best = largest(weights, CANDIDATES);
      return { reads: read[t], says: french[t], candidates: best.map((id) => [label(id), weights[id], id]) };
    }),
  };
}

/** One layer's numbers, read as the tables that Python packs: at(head, q, k) and row(head, q). */
function numbersOf({ keys, values, did }, { name, index, h, d, visible, change }) {
  const part = (row, head) => row.subarray(head * d, (head + 1) * d);
  const table = (at) => ({ at, row: (head, q) => Float64Array.from(keys, (_, k) => at(head, q, k)) });
  const perQuery = (field) => ({ at: (head, q) => did[q][head][field] });
  const vector = (row) => ({ row });
  const product = (head, q, k) => did[q][head].products[k] ?? dot(did[q][head].q, part(keys[k], head));
  const divisor = Math.sqrt(d) * change.temperature[name];
  const headName = (head) => `${name}.${index}.${head}`;
  const what = (head) =>
    change.off.includes(headName(head)) ? "off" : change.even.includes(headName(head)) ? "even" : null;
  return {
    q: vector((head, q) => did[q][head].q),
    k: vector((head, k) => part(keys[k], head)),
    v: vector((head, k) => part(values[k], head)),
    output: vector((head, q) => did[q][head].output),
    products: { at: product },
    scores: table((head, q, k) => (what(head) === "even" ? 0 : product(head, q, k) / divisor)),
    visible: table((head, q, k) => Number(visible(q, k))),
    exps: table((head, q, k) => did[q][head].exps[k] ?? 0),
    weights: { shape: [h, did.length, keys.length], ...table((head, q, k) => did[q][head].weights[k] ?? 0) },
    peaks: perQuery("peak"),
    totals: perQuery("total"),
    temperature: change.temperature[name],
    changes: Array.from({ length: h }, (_, head) => what(head)),
  };
}
