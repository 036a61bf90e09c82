// From a model to the tokens it says: greedy, sampled, or by beam search. None returns <eos>.

import { largest, softmax } from "./math.js";

/** Take at each step what `choose` picks from the logits, until <eos>; `said` is how it begins. */
export function decode(model, source, { bos, eos, most = 50, change, said = [], choose = likeliest }) {
  let state = model.start(source, change);
  const ids = [];
  for (let last = bos; ids.length < most; ) {
    const next = model.step(last, state);
    last = ids.length < said.length ? said[ids.length] : choose(next.logits);
    if (last === eos) break;
    ids.push(last);
    state = next.state;
  }
  return ids;
}

export const likeliest = (logits) => largest(logits, 1)[0];

/** Draw a token from softmax(logits / temperature); random() is at least 0 and below 1. */
export function sampler(temperature, random) {
  return (logits) => {
    const { weights } = softmax(logits.map((x) => x / temperature));
    let left = random();
    const drawn = weights.findIndex((p) => (left -= p) < 0);
    return drawn < 0 ? likeliest(logits) : drawn; // rounding may leave a remainder
  };
}

/** Numbers like random ones, the same for the same seed (mulberry32). */
export function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Keep the `beam` best beginnings; of the finished ones return the best per token. */
export function beamSearch(model, source, { bos, eos, beam = 4, most = 50, change }) {
  const ended = [];
  let begun = [{ total: 0, ids: [], state: model.start(source, change) }];
  for (let length = 1; length <= most; length++) {
    const longer = begun.flatMap(({ total, ids, state }, row) => {
      const next = model.step(ids.at(-1) ?? bos, state);
      const { peak, total: sum } = softmax(next.logits);
      return largest(next.logits, beam).map((id) => ({
        total: total + (next.logits[id] - peak - Math.log(sum)), row, id, ids, state: next.state,
      }));
    });
    longer.sort((a, b) => b.total - a.total || b.row - a.row || b.id - a.id);
    begun = [];
    for (const { total, id, ids, state } of longer.slice(0, beam)) {
      if (id === eos) ended.push({ score: total / length, ids });
      else begun.push({ total, ids: [...ids, id], state, score: total / length });
    }
    if (!begun.length) return best(ended).ids;
    if (ended.length >= beam && best(ended).score >= best(begun).score) return best(ended).ids;
  }
  return best([...ended, ...begun]).ids; // those cut off compete too
}

const best = (entries) => entries.reduce((a, b) => (b.score > a.score ? b : a));
