// The Transformer of Vaswani et al. 2017: pre-norm blocks, encoder and decoder, one sentence.

import { add, dot, layerNorm, linear, relu, sinusoid, softmax } from "./math.js";

/** What a reader may change in a trained model. `off` and `even` name heads: "cross.1.0" is head 0
    in layer 1 of the cross-attention. */
export const UNTOUCHED = {
  off: [], // heads whose output is zero
  even: [], // heads that weigh all they may look at alike
  temperature: { encoder: 1, decoder: 1, cross: 1 }, // scores are divided by it
  positions: { source: true, target: true }, // whether the model knows where a token stands
  hidden: [], // places of source tokens that the decoder may not look at
  hiddenFrom: "decoder", // or "both": the encoder may not look at them either
};

export class Transformer {
  /** config: as in config.json; weights: {name: Float32Array}. */
  constructor(config, weights) {
    this.config = config;
    this.weights = weights;
  }

  embed(id, side, place, change) {
    const d = this.config.d_model;
    const table = this.weights[side === "source" ? "src_embedding.weight" : "tgt_embedding.weight"];
    const x = Float64Array.from(table.subarray(id * d, (id + 1) * d), (value) => value * Math.sqrt(d));
    return change.positions[side] ? add(x, sinusoid(place, d)) : x;
  }

  project(rows, name) {
    return linear(rows, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  norm(rows, name) {
    return layerNorm(rows, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  keysAndValues(rows, layer) {
    return { keys: this.project(rows, `${layer}.W_k`), values: this.project(rows, `${layer}.W_v`) };
  }

  /** softmax(q k / √d) v in each head; the heads joined and mixed. Also what each head did. */
  attend(rows, { keys, values }, layer, { family, index, change, visible = () => true }) {
    const [h, d] = [this.config.num_heads, this.config.d_model / this.config.num_heads];
    const did = this.project(rows, `${layer}.W_q`).map((query) =>
      Array.from({ length: h }, (_, head) => {
        const part = (row) => row.subarray(head * d, (head + 1) * d);
        const name = `${family}.${index}.${head}`;
        const products = Float64Array.from(keys, (key) => dot(part(query), part(key)));
        const divisor = Math.sqrt(d) * change.temperature[family];
        const scores = products.map((product) => product / divisor);
        const even = change.even.includes(name);
        const parts = softmax(even ? scores.fill(0) : scores, visible);
        const output = new Float64Array(d);
        parts.weights.forEach((weight, k) => part(values[k]).forEach((v, i) => { output[i] += weight * v; }));
        return { q: part(query), products, scores, ...parts, output, off: change.off.includes(name) };
      }),
    );
    const joined = did.map((heads) => {
      const row = new Float64Array(h * d);
      heads.forEach(({ output, off }, head) => { if (!off) row.set(output, head * d); });
      return row;
    });
    return { rows: this.project(joined, `${layer}.W_o`), did };
  }

  feedForward(rows, block, norm) {
    const hidden = this.project(this.norm(rows, `${block}.${norm}.norm`), `${block}.ffn.hidden`);
    return join(rows, this.project(hidden.map(relu), `${block}.ffn.output`));
  }

  /** Read the source: its encoding as keys and values for the decoder, and what each head did. */
  start(ids, change = UNTOUCHED) {
    const { max_len, num_encoder_layers, num_decoder_layers } = this.config;
    if (ids.length > max_len) throw new RangeError(`${ids.length} tokens; at most ${max_len} fit`);
    let x = ids.map((id, place) => this.embed(id, "source", place, change));
    const shown = (place) => !change.hidden.includes(place);
    const visible = change.hiddenFrom === "both" ? shown : () => true;
    const encoder = [];
    for (let index = 0; index < num_encoder_layers; index++) {
      const block = `encoder.${index}`;
      const read = this.norm(x, `${block}.addnorm1.norm`);
      const own = this.keysAndValues(read, `${block}.attention`);
      const attended = this.attend(read, own, `${block}.attention`, { family: "encoder", index, change, visible });
      x = this.feedForward(join(x, attended.rows), block, "addnorm2");
      encoder.push({ ...own, did: attended.did });
    }
    const memory = this.norm(x, "encoder_norm");
    const layers = Array.from({ length: num_decoder_layers }, (_, index) => ({
      source: this.keysAndValues(memory, `decoder.${index}.cross_attention`),
      target: { keys: [], values: [] },
    }));
    return { change, shown, encoder, layers, length: 0 };
  }

  /** Read one more target token: the logits of the next, what each head did, and the new state.
      The state before stays as it was, so that several continuations can begin with it. */
  step(id, state) {
    const { change } = state;
    let x = [this.embed(id, "target", state.length, change)];
    const did = { decoder: [], cross: [] };
    const layers = state.layers.map(({ source, target }, index) => {
      const block = `decoder.${index}`;
      const read = this.norm(x, `${block}.addnorm1.norm`);
      const own = this.keysAndValues(read, `${block}.self_attention`);
      const past = { keys: [...target.keys, ...own.keys], values: [...target.values, ...own.values] };
      const self = this.attend(read, past, `${block}.self_attention`, { family: "decoder", index, change });
      x = join(x, self.rows);
      const cross = this.attend(this.norm(x, `${block}.addnorm2.norm`), source, `${block}.cross_attention`,
        { family: "cross", index, change, visible: state.shown });
      x = this.feedForward(join(x, cross.rows), block, "addnorm3");
      did.decoder.push(self.did[0]);
      did.cross.push(cross.did[0]);
      return { source, target: past };
    });
    const [logits] = linear(this.norm(x, "decoder_norm"), this.weights["tgt_embedding.weight"]);
    return { logits, did, state: { ...state, layers, length: state.length + 1 } };
  }
}

/** The residual connection: what a sub-layer adds to the stream. */
const join = (rows, more) => rows.map((row, t) => add(row, more[t]));
