// What the layers are made of. A sequence is a list of rows, one Float64Array a token.

/** W x + b for every row x; W is (outputs, inputs), four of its rows at a time, for speed. */
export function linear(rows, W, b) {
  return rows.map((x) => {
    const n = x.length;
    const y = new Float64Array(W.length / n);
    let o = 0;
    for (; o + 3 < y.length; o += 4) {
      let y0 = 0, y1 = 0, y2 = 0, y3 = 0;
      for (let i = 0, at = o * n; i < n; i++, at++) {
        const value = x[i];
        y0 += W[at] * value;
        y1 += W[at + n] * value;
        y2 += W[at + 2 * n] * value;
        y3 += W[at + 3 * n] * value;
      }
      y.set([y0, y1, y2, y3], o);
    }
    for (; o < y.length; o++) y[o] = dot(W.subarray(o * n, (o + 1) * n), x);
    return b ? add(y, b) : y;
  });
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

export const add = (a, b) => a.map((x, i) => x + b[i]);
export const relu = (x) => x.map((value) => Math.max(value, 0));

/** Each row with mean 0 and variance 1, then scaled and shifted (Ba et al. 2016). */
export function layerNorm(rows, gain, shift, eps = 1e-5) {
  return rows.map((x) => {
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    return x.map((value, i) => ((value - mean) / Math.sqrt(variance + eps)) * gain[i] + shift[i]);
  });
}

/** Softmax over what is visible, and its parts: e^(score - peak), the peak, and their sum. */
export function softmax(scores, visible = () => true) {
  let peak = -Infinity;
  scores.forEach((score, i) => { if (visible(i)) peak = Math.max(peak, score); });
  if (peak === -Infinity) peak = 0; // nothing to look at: every weight is 0
  const exps = scores.map((score, i) => (visible(i) ? Math.exp(score - peak) : 0));
  const total = exps.reduce((a, b) => a + b, 0);
  return { exps, peak, total, weights: exps.map((x) => (total ? x / total : 0)) };
}

/** The places of the `n` largest numbers, the largest first. */
export function largest(x, n) {
  const best = [];
  x.forEach((value, i) => {
    if (best.length === n && value <= x[best[n - 1]]) return;
    let at = best.length;
    while (at > 0 && x[best[at - 1]] < value) at--;
    best.splice(at, 0, i);
    if (best.length > n) best.pop();
  });
  return best;
}

/** Row t is sin and cos of t at falling frequencies (Vaswani et al. 2017), in single precision. */
export function sinusoid(t, d) {
  return Float64Array.from({ length: d }, (_, i) => {
    const angle = t * 10000 ** (-(i - (i % 2)) / d);
    return Math.fround(i % 2 ? Math.cos(angle) : Math.sin(angle));
  });
}
