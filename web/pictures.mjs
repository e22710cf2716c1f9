// Takes the pictures of the page that the documentation shows; scripts/picture_page.py runs this.
//
//     node pictures.mjs CHROMIUM URL OUT
import { chromium } from "playwright-core";

const [executablePath, url, out] = process.argv.slice(2);
const wide = { width: 1200, height: 800 };
const PICTURES = [
  { name: "uses", hash: "", viewport: { width: 1200, height: 1000 } },
  { name: "uses-dark", hash: "#/uses?word=play&map=tsne&color=group", viewport: wide, colorScheme: "dark" },
  { name: "nearest", hash: "#/nearest", viewport: wide, steps: pinTwo },
  { name: "sentence", hash: "#/sentence", viewport: { width: 1200, height: 1250 } },
  { name: "surprise", hash: "#/surprise?gap=11", viewport: wide, waits: ".filled tbody" },
  { name: "task", hash: "#/task", viewport: { width: 1200, height: 430 }, waits: ".found" },
  { name: "phone", hash: "#/uses", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
];

async function pinTwo(page) {
  const rows = page.locator("ol.list > li");
  await page.getByRole("button", { name: "Pin", exact: true }).first().click();
  await rows.nth(1).locator("button").first().click();
  await rows.nth(1).getByRole("button", { name: "Pin" }).click();
  await page.locator(".compare table").waitFor();
  await rows.nth(1).locator("button").first().click();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const { name, hash, steps, waits, ...options } of PICTURES) {
  const page = await browser.newPage({ reducedMotion: "reduce", ...options });
  await page.goto(`${url}/${hash}`);
  await page.waitForLoadState("networkidle");
  if (waits) await page.locator(waits).waitFor();
  if (hash.includes("tsne")) await page.getByText("t-SNE: near points").first().waitFor();
  await steps?.(page);
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(1, 1);
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${out}/${name}.png` });
  await page.close();
}
await browser.close();
