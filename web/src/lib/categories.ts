/** What uses are colored by: their group, spelling, source or part of speech. */

import type { Groups, Use } from "./api";
import { letter } from "./palette";
import { shortSource } from "./text";

export interface Category {
  key: string;
  short: string; // a letter
  label: string;
  count: number;
  words: string[]; // distinctive ones, of groups
  typical: number | null; // the number of a group's most central use
}

const MOST = 6;

/** Return the categories, largest first, and the number of each use's category. */
export function categorize(uses: Use[], by: string, groups: Groups | null): { categories: Category[]; labels: number[] } {
  if (by === "group") {
    if (!groups) return { categories: [], labels: uses.map(() => 0) };
    const labelOf = new Map(groups.numbers.map((number, i) => [number, groups.labels[i]!]));
    return {
      categories: groups.groups.map((group, i) => ({
        key: String(i),
        short: letter(i),
        label: `Group ${letter(i)}`,
        count: group.num_uses,
        words: group.words.map((entry) => entry.word),
        typical: group.typical,
      })),
      labels: uses.map((use) => labelOf.get(use.number) ?? 0),
    };
  }
  const name = (use: Use): string =>
    by === "spelling" ? use.word : by === "source" ? shortSource(use.source) : (use.tag ?? "no tag");
  const counts = new Map<string, number>();
  for (const use of uses) counts.set(name(use), (counts.get(name(use)) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const kept = sorted.length > MOST + 1 ? sorted.slice(0, MOST) : sorted;
  const rest = sorted.slice(kept.length);
  const categories: Category[] = kept.map(([label, count], i) => ({ key: label, short: letter(i), label, count, words: [], typical: null }));
  if (rest.length) {
    const count = rest.reduce((sum, entry) => sum + entry[1], 0);
    categories.push({ key: "", short: "–", label: `${rest.length} others`, count, words: [], typical: null });
  }
  const index = new Map(kept.map(([label], i) => [label, i]));
  return { categories, labels: uses.map((use) => index.get(name(use)) ?? kept.length) };
}
