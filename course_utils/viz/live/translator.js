// A trained model with its vocabulary: sentences in, sentences out, and all that happens between.

import { beamSearch, decode, likeliest, randomFrom, sampler } from "./decoding.js";
import { Tokens } from "./tokens.js";
import { Transformer, UNTOUCHED } from "./transformer.js";
import { bytesOf, readWeights } from "./weights.js";

const [BOS, EOS] = [1, 2]; // ids that every vocabulary of the course has

export class Translator {
  /** packed: what Python's `pack_model` gives. */
  constructor({ config, tokens, weights }) {
    const tensors = readWeights(bytesOf(weights));
    this.model = new Transformer(config, tensors);
    this.size = Object.values(tensors).reduce((sum, { length }) => sum + length, 0);
    this.tokens = new Tokens(tokens);
    this.room = config.max_len;
  }

  /** The ids of a sentence, with its end. */
  read(text) {
    return [...this.tokens.encode(text), EOS];
  }

  /** The words of a sentence: each with its text, its ids, and their places among the tokens. */
  words(text) {
    let place = 0;
    return this.tokens.words(text).map((word) => {
      const ids = this.tokens.encodeWord(word);
      return { text: word.trim(), ids, places: ids.map(() => place++) };
    });
  }

  /** The ids of a translation of `source`. way: "greedy", "beam" or "sample". */
  translate(source, { way = "greedy", change = UNTOUCHED, temperature = 1, seed = 1, said = [] } = {}) {
    const most = Math.min(50, this.room);
    const ends = { bos: BOS, eos: EOS, most, change };
    if (way === "beam" && !said.length) return beamSearch(this.model, source, ends);
    const choose = way === "sample" ? sampler(temperature, randomFrom(seed)) : likeliest;
    return decode(this.model, source, { ...ends, said, choose });
  }

  /** Let the model say these ids and write down what every head does, and each step's logits. */
  listen(source, said, change = UNTOUCHED) {
    let state = this.model.start(source, change);
    const { encoder } = state;
    const read = [BOS, ...said].slice(0, this.room);
    const steps = read.map((id) => {
      const step = this.model.step(id, state);
      state = step.state;
      return { reads: id, logits: step.logits, did: step.did };
    });
    return { change, source, says: [...said, EOS].slice(0, read.length), encoder, steps, decoder: state.layers };
  }
}
