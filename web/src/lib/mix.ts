/** Cosines of mixed layers, from the inner products of the layers: no vectors are needed. */

export function mixedCosines(products: number[][][][], weights: number[]): number[][] {
  const size = products[0]![0]!.length;
  const mixed = Array.from({ length: size }, () => new Array<number>(size).fill(0));
  products.forEach((row, l) =>
    row.forEach((matrix, m) => {
      const weight = weights[l]! * weights[m]!;
      if (weight === 0) return;
      matrix.forEach((line, i) => line.forEach((value, j) => (mixed[i]![j]! += weight * value)));
    }),
  );
  const lengths = mixed.map((line, i) => Math.sqrt(Math.max(line[i]!, 1e-12)));
  return mixed.map((line, i) => line.map((value, j) => value / (lengths[i]! * lengths[j]!)));
}
