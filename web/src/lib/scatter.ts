/** Points drawn by writing pixels: no GPU is needed, and 20,000 points take about a millisecond. */

import type { Point } from "./api";
import type { Color } from "./palette";

export interface Frame {
  width: number;
  height: number;
  scale: number; // CSS pixels per unit
  centerX: number;
  centerY: number;
}

/** Fit points into a rectangle; both axes have one scale, so that distances can be compared. */
export function fit(points: Point[], width: number, height: number, margin = 22): Frame {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    low = Math.min(low, y);
    high = Math.max(high, y);
  }
  if (!points.length) [left, right, low, high] = [0, 0, 0, 0];
  const across = Math.max(right - left, 1e-6);
  const up = Math.max(high - low, 1e-6);
  // A line of points needs no room above and below.
  const room = (size: number): number => Math.max(size - 2 * margin, 1);
  const scale = Math.min(room(width) / across, room(height) / up);
  const isOnePoint = right - left < 1e-6 && high - low < 1e-6;
  return {
    width,
    height,
    scale: isOnePoint ? 1 : scale,
    centerX: (left + right) / 2,
    centerY: (low + high) / 2,
  };
}

export function place(frame: Frame, [x, y]: Point): Point {
  return [
    frame.width / 2 + (x - frame.centerX) * frame.scale,
    frame.height / 2 - (y - frame.centerY) * frame.scale,
  ];
}

/** How much of each pixel a disc covers, as a square of numbers from 0 to 1. */
function makeDisc(radius: number): { size: number; cover: Float32Array } {
  const half = Math.ceil(radius + 0.5);
  const size = 2 * half + 1;
  const cover = new Float32Array(size * size);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const distance = Math.hypot(x - half, y - half);
      cover[y * size + x] = Math.min(1, Math.max(0, radius + 0.5 - distance));
    }
  }
  return { size, cover };
}

/** Draw discs into the pixels of an image; `alphas` fades single points. */
export function drawPoints(
  image: ImageData,
  places: Point[],
  colors: Color[],
  alphas: Float32Array,
  radius: number,
): void {
  const { size, cover } = makeDisc(radius);
  const { data, width, height } = image;
  const half = (size - 1) / 2;
  for (let i = 0; i < places.length; i++) {
    const startX = Math.round(places[i]![0]) - half;
    const startY = Math.round(places[i]![1]) - half;
    const [red, green, blue] = colors[i]!;
    for (let y = 0; y < size; y++) {
      const row = startY + y;
      if (row < 0 || row >= height) continue;
      for (let x = 0; x < size; x++) {
        const column = startX + x;
        if (column < 0 || column >= width) continue;
        const alpha = cover[y * size + x]! * alphas[i]!;
        if (alpha === 0) continue;
        const at = 4 * (row * width + column);
        const below = data[at + 3]! / 255;
        const total = alpha + below * (1 - alpha);
        data[at] = (red * alpha + data[at]! * below * (1 - alpha)) / total;
        data[at + 1] = (green * alpha + data[at + 1]! * below * (1 - alpha)) / total;
        data[at + 2] = (blue * alpha + data[at + 2]! * below * (1 - alpha)) / total;
        data[at + 3] = 255 * total;
      }
    }
  }
}

/** Return the index of the place nearest to (x, y) within `reach` pixels, or -1. */
export function findNearest(places: Point[], x: number, y: number, reach: number): number {
  let best = -1;
  let shortest = reach * reach;
  for (let i = 0; i < places.length; i++) {
    const distance = (places[i]![0] - x) ** 2 + (places[i]![1] - y) ** 2;
    if (distance <= shortest) [best, shortest] = [i, distance];
  }
  return best;
}
