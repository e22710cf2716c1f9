/** Parts of a sentence that a task marks: entities, arguments, mentions. */

import { hasSpace } from "./text";

export interface Span {
  start: number; // tokens, end excluded
  end: number;
  label: string;
  probability: number | null;
}

export interface Piece {
  text: string;
  span: Span | null;
}

/** Cut a sentence into pieces: marked ones, and the text between them. */
export function cut(tokens: string[], spans: Span[]): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  const take = (start: number, end: number, span: Span | null): void => {
    if (end <= start) return;
    let text = "";
    for (let i = start; i < end; i++) {
      const space = hasSpace(tokens[i - 1], tokens[i]!);
      // The space before a marked piece is not marked.
      if (space && i === start && span) pieces.push({ text: " ", span: null });
      else if (space) text += " ";
      text += tokens[i];
    }
    pieces.push({ text, span });
  };
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    if (span.start < at) continue; // inside another one
    take(at, span.start, null);
    take(span.start, span.end, span);
    at = span.end;
  }
  take(at, tokens.length, null);
  return pieces;
}

/** Read spans from BIO, BIOES or BILOU tags. */
export function readTags(tags: string[]): { start: number; end: number; label: string }[] {
  const spans: { start: number; end: number; label: string }[] = [];
  tags.forEach((tag, i) => {
    if (tag === "O") return;
    const mark = tag.charAt(0);
    const label = tag.slice(2);
    const last = spans.at(-1);
    const continues = "IEL".includes(mark) && last && last.end === i && last.label === label;
    if (continues) last.end = i + 1;
    else spans.push({ start: i, end: i + 1, label });
  });
  return spans;
}
