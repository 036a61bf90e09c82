// From the text that a page carries to arrays of numbers.

/** The 65,536 numbers that 16 bits can mean (IEEE 754 binary16, subnormal ones included). */
function halves() {
  return Float32Array.from({ length: 65536 }, (_, bits) => {
    const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

export function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** The tensors of a safetensors file in half precision: {name: Float32Array}, in row-major order. */
export function readWeights(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const meaning = halves();
  const tensors = {};
  for (const [name, tensor] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (tensor.dtype !== "F16") throw new Error(`${name} is of type ${tensor.dtype}, not F16`);
    const [start, end] = tensor.data_offsets.map((offset) => 8 + length + offset);
    const bits = new Uint16Array(bytes.slice(start, end).buffer);
    tensors[name] = new Float32Array(bits.length);
    for (let i = 0; i < bits.length; i++) tensors[name][i] = meaning[bits[i]];
  }
  return tensors;
}
