// How far to trust what the model says.

/** A word about input that is no English; the model says something all the same. */
export function beyond(text, words) {
  const foreign = /(?!\p{Script=Latin})\p{L}/u.test(text.normalize("NFC"));
  const pieces = words.reduce((sum, { ids }) => sum + ids.length, 0);
  return foreign || pieces > 2.5 * words.length + 2
    ? "The model has read English sentences alone: what it says to this is a guess that means nothing." : "";
}

const UNKNOWN = 3; // a word cut into so many pieces is rare in what the model has read

/** What stands under every translation. */
export function doubt({ size }, words) {
  const cut = words.filter(({ text, ids }) => /\p{L}/u.test(text) && ids.length >= UNKNOWN).map(({ text }) => `“${text}”`);
  const some = [...new Set(cut)].slice(0, 4).join(", ");
  return `A small model, of ${(size / 1e6).toFixed(1)} million numbers: rare words come out as fluent nonsense.${
    some ? ` Spelled from small pieces here, so perhaps not known: ${some}.` : ""}`;
}
