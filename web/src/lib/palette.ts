/** Colors that people with color blindness can tell apart (after Okabe and Ito), by theme. */

const LIGHT = ["#0072b2", "#c65102", "#00815f", "#a3407d", "#8a6d00", "#3b6fd4", "#6b6b6b"];
const DARK = ["#56b4e9", "#f0894a", "#3cc79a", "#e29ac5", "#e6c229", "#a5b4fc", "#a8a8a8"];

export type Color = [number, number, number];

export function groupColor(index: number, isDark: boolean): string {
  const colors = isDark ? DARK : LIGHT;
  return colors[index % colors.length]!;
}

/** A, B, ... Z, then 27, 28, ... so that groups differ by more than color. */
export function letter(index: number): string {
  return index < 26 ? String.fromCharCode(65 + index) : String(index + 1);
}

export function toColor(hex: string): Color {
  const number = Number.parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

export function mixColors(low: Color, high: Color, share: number): Color {
  const part = Math.min(1, Math.max(0, share));
  return low.map((value, i) => Math.round(value + (high[i]! - value) * part)) as Color;
}
