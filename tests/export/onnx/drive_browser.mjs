// Open the page in headless Chromium, type sentences, and print what it showed, as JSON.
// node drive_browser.mjs PACKAGES URL CHROMIUM SENTENCES

import { createRequire } from "node:module";

const [, , packages, url, executablePath, sentences] = process.argv;
const { chromium } = createRequire(`${packages}/`)("playwright-core");

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  const requests = [];
  const errors = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(url);
  const seen = [];
  for (const { text, layer } of JSON.parse(sentences)) {
    await page.fill("#text", text);
    await page.waitForFunction(() => document.querySelector("#layer").options.length > 0);
    await page.selectOption("#layer", String(layer));
    const tokens = await page.evaluate(
      async (typed) => (await import("./elmo.js")).splitTokens(typed),
      text,
    );
    await page.waitForFunction(
      (number) => document.querySelectorAll("#similarities tr").length === number + 1,
      tokens.length,
    );
    await page.waitForTimeout(300);
    seen.push({
      tokens,
      status: await page.textContent("#status"),
      rows: await page.$$eval("#similarities tr", (rows) =>
        rows.map((row) => [...row.children].map((cell) => cell.textContent)),
      ),
    });
  }
  const vectors = await page.evaluate(async (tokens) => {
    const { Elmo } = await import("./elmo.js");
    const found = await (await Elmo.load("./model.onnx")).embed(tokens);
    return found.map((layer) => layer.map((vector) => [...vector]));
  }, seen[0].tokens);
  console.log(JSON.stringify({ requests, errors, seen, vectors }));
} finally {
  await browser.close();
}
