/** Numbers in [0, 1) that are the same again for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // A counter whose bits are mixed by multiplications: small, and good enough to draw faults with.
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x45d9f3b);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}
