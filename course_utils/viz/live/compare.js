// Two translations side by side, with the words marked that only one of them has.

import { h } from "../explorer/dom.js";

/** For each word of `a` and of `b`, whether it is in their longest common subsequence. */
export function common(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i][j] = a[i] === b[j] ? 1 + length[i + 1][j + 1] : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const [inA, inB] = [a.map(() => false), b.map(() => false)];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) inA[i++] = inB[j++] = true;
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return [inA, inB];
}

/** The words of `text`, those marked that `other` does not have there. */
export function marked(text, other) {
  const [words, others] = [text.split(" "), other.split(" ")];
  const [kept] = common(words, others);
  return words.flatMap((word, i) => [i ? " " : "", kept[i] ? word : h("mark", {}, word)]);
}
