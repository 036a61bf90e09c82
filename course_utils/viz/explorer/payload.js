// Scenes as Python packs them: numbers bit by bit.

const ARRAYS = { float32: Float32Array, float64: Float64Array, uint8: Uint8Array };

/** A packed tensor: row(i, ...) is its last axis, at(i, ...) one number. */
function tensor({ dtype, shape, data }) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
  const flat = new ARRAYS[dtype](bytes.buffer);
  const start = (index) =>
    index.reduce((sum, i, axis) => sum * shape[axis] + i, 0) *
    shape.slice(index.length).reduce((a, b) => a * b, 1);
  return {
    shape,
    at: (...index) => flat[start(index)],
    row: (...index) => flat.subarray(start(index), start(index) + shape.at(-1)),
  };
}

/** A scene whose packed tensors can be read. */
export function unpack(payload) {
  const families = payload.families.map((family) => ({
    ...family,
    layers: family.layers.map((layer) =>
      Object.fromEntries(Object.entries(layer).map(([name, x]) => [name, tensor(x)])),
    ),
  }));
  return { ...payload, families };
}
