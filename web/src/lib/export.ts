/** Files for the reader: tables as CSV, pictures as PNG. */

export function toCsv(rows: (string | number | null)[][]): string {
  const quote = (value: string | number | null): string => {
    const text = value === null ? "" : String(value);
    // A spreadsheet would compute a cell that starts like this.
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
}

export function download(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function downloadCsv(name: string, rows: (string | number | null)[][]): void {
  // The mark at the beginning tells spreadsheets that the text is UTF-8.
  download(name, new Blob(["\ufeff", toCsv(rows)], { type: "text/csv;charset=utf-8" }));
}

/** Put canvases side by side, with a title above each, on the background of the page. */
export function downloadPng(name: string, canvases: HTMLCanvasElement[], titles: string[]): void {
  const ratio = devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  const head = 34 * ratio;
  const picture = document.createElement("canvas");
  picture.width = canvases.reduce((sum, canvas) => sum + canvas.width, 0);
  picture.height = head + Math.max(...canvases.map((canvas) => canvas.height));
  const context = picture.getContext("2d")!;
  context.fillStyle = style.getPropertyValue("--surface");
  context.fillRect(0, 0, picture.width, picture.height);
  context.fillStyle = style.getPropertyValue("--ink");
  context.font = `600 ${14 * ratio}px ${style.getPropertyValue("--sans")}`;
  let left = 0;
  canvases.forEach((canvas, i) => {
    context.fillText(titles[i] ?? "", left + 12 * ratio, 22 * ratio);
    context.drawImage(canvas, left, head);
    left += canvas.width;
  });
  picture.toBlob((blob) => blob && download(name, blob), "image/png");
}

export function fileName(...parts: string[]): string {
  return parts.join("-").replace(/[^\p{L}\p{N}.-]+/gu, "_");
}
