/** Show tokens as text. */

const NO_SPACE_BEFORE = /^([.,;:!?%)\]}’”]|'s|'S|n't|'re|'ve|'ll|'d|'m)/;
const NO_SPACE_AFTER = /[([{“‘$]$/;
const HAN = /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}/u;

/** Whether a space stands before a token; for reading only, tokens stay as they are. */
export function hasSpace(before: string | undefined, token: string): boolean {
  if (before === undefined) return false;
  if (HAN.test(before) && HAN.test(token)) return false;
  return !NO_SPACE_BEFORE.test(token) && !NO_SPACE_AFTER.test(before);
}

export function join(tokens: string[]): string {
  return tokens.map((token, i) => (hasSpace(tokens[i - 1], token) ? " " : "") + token).join("");
}

/** A file name without its folder and ending. */
export function shortSource(source: string): string {
  return source.replace(/^.*[/\\]/, "").replace(/\.(txt|conllu)(\.\w+)?$/, "");
}

/** A word for a sentence of the page; some tokens are very long. */
export function shorten(word: string): string {
  const characters = [...word];
  return characters.length > 30 ? `${characters.slice(0, 29).join("")}…` : word;
}

/** The direction in which a text is read: that of its first letter. */
export function directionOf(text: string): "ltr" | "rtl" {
  const letter = /\p{L}/u.exec(text)?.[0] ?? "";
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(letter) ? "rtl" : "ltr";
}

export function percent(share: number): string {
  const value = 100 * share;
  return value >= 99.95 || value === 0 || value >= 10 ? `${value.toFixed(0)} %` : `${value.toFixed(1)} %`;
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** A number with a minus sign, and no minus zero. */
export function signed(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}
