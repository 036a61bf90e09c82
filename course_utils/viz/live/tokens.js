// Text to the ids of pieces and back: byte-pair encoding over bytes (Sennrich et al. 2016, GPT-2).

const WHITE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // as in Python
const SPACES = new RegExp(`[${WHITE}]+`, "g");
const ENDS = new RegExp(`^[${WHITE}]+|[${WHITE}]+$`, "g");
const WORDS = /'(?:s|t|re|ve|m|ll|d)| ?\p{L}[\p{L}\p{M}]*| ?\p{N}+| ?[^ \p{L}\p{N}]+/gu;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

/** One spelling for what reads the same: NFC, plain apostrophes, single plain spaces. */
export function normalise(text) {
  return text
    .normalize("NFC")
    .replace(/[\u2019\u2018\u02bc\u2032]/g, "'")
    .replace(/\p{Surrogate}/gu, "\ufffd") // halves of characters
    .replace(SPACES, " ")
    .replace(ENDS, "");
}

/** The character that stands for each byte: itself where it can be seen, else one from 256 on. */
function alphabet() {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const seen = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCodePoint(seen ? byte : next++);
  });
}

function escaped(character) {
  const code = character.codePointAt(0);
  const hex = (length) => code.toString(16).padStart(length, "0");
  const short = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[character];
  return short ?? (code < 256 ? `\\x${hex(2)}` : code < 65536 ? `\\u${hex(4)}` : `\\U${hex(8)}`);
}

export class Tokens {
  /** pieces: text by id, the first `reserved` of them no text; merges: pairs, the first first. */
  constructor({ pieces, merges, reserved }) {
    this.pieces = pieces;
    this.reserved = reserved;
    this.ids = new Map(pieces.map((piece, id) => [piece, id]));
    this.ranks = new Map(merges.map((pair, rank) => [pair.join(" "), rank]));
    this.letters = alphabet();
    this.bytes = new Map(this.letters.map((letter, byte) => [letter, byte]));
  }

  /** The ids of a line; an empty one has none. */
  encode(text) {
    return this.words(text).flatMap((word) => this.encodeWord(word));
  }

  /** The line cut before spaces and between letters, numbers and marks: no piece goes across. */
  words(text) {
    const line = normalise(text);
    return line ? (` ${line}`.match(WORDS) ?? []) : [];
  }

  /** Begin with bytes; while two neighbours have a merge, join those that were learnt first. */
  encodeWord(word) {
    let parts = Array.from(new TextEncoder().encode(word), (byte) => this.letters[byte]);
    while (parts.length > 1) {
      const rank = (i) => this.ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
      let best = 0;
      for (let i = 1; i < parts.length - 1; i++) if (rank(i) < rank(best)) best = i;
      if (rank(best) === Infinity) break;
      parts = [...parts.slice(0, best), parts[best] + parts[best + 1], ...parts.slice(best + 2)];
    }
    return parts.map((part) => this.ids.get(part));
  }

  /** The line that some ids spell; reserved ids are left out, broken characters replaced. */
  decode(ids) {
    return this.spell(ids).replace(ENDS, "");
  }

  spell(ids) {
    const text = ids.filter((id) => id >= this.reserved).map((id) => this.pieces[id]).join("");
    const bytes = Uint8Array.from(text, (letter) => this.bytes.get(letter));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  /** One id as it reads on its own, for a label; "·" begins a word. */
  label(id) {
    if (id < this.reserved) return this.pieces[id];
    return this.spell([id]).replaceAll(" ", "·").replace(UNPRINTABLE, escaped);
  }
}
