// Drives the page in Chromium as a reader would, and prints what it showed as JSON.
//
//     node drive_page.mjs WEB CHROMIUM URL
//
// WEB is the folder web/, whose node_modules have playwright-core and axe-core.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

const [web, chromiumPath, url] = process.argv.slice(2);
const require = createRequire(path.join(web, "package.json"));
const { chromium } = require("playwright-core");
const axeSource = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
const seen = { requests: new Set(), errors: [], refused: [], axe: [], overflow: {} };

async function openPage(hash, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: "reduce",
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.pending = new Set();
  page.on("request", (request) => {
    seen.requests.add(request.url());
    page.pending.add(request);
  });
  page.on("requestfinished", (request) => page.pending.delete(request));
  page.on("requestfailed", (request) => page.pending.delete(request));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    const isAnswer = message.text().startsWith("Failed to load resource"); // see below
    if (message.type() === "error" && !isAnswer) seen.errors.push(message.text());
  });
  page.on("response", (answer) => {
    if (answer.status() >= 400) seen.refused.push(`${answer.status()} ${new URL(answer.url()).pathname}`);
  });
  await page.goto(`${url}/${hash}`);
  await settle(page);
  return page;
}

/** Wait until the page has had no request for a while. */
async function settle(page) {
  let quiet = 0;
  while (quiet < 4) {
    await page.waitForTimeout(60);
    quiet = page.pending.size ? 0 : quiet + 1;
  }
}

async function download(page, name) {
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name, exact: true }).first().click(),
  ]);
  const content = await readFile(await file.path());
  return { name: file.suggestedFilename(), content };
}

const hashOf = (page) => new URL(page.url()).hash;
const rows = (page) => page.locator("ol.list > li");
const texts = (locator) => locator.allInnerTexts();

/** How many pixels of each map are colored. */
const countPixels = (page) =>
  page.locator(".map canvas").evaluateAll((canvases) =>
    canvases.map((canvas) => {
      const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      let count = 0;
      for (let i = 3; i < data.length; i += 4) count += data[i] > 0 ? 1 : 0;
      return count;
    }),
  );

async function uses() {
  const found = {};
  const page = await openPage("#/uses?word=bank");
  await page.getByText("Show all").click();
  found.numbers = await rows(page).evaluateAll((all) => all.map((row) => Number(row.dataset.use)));
  found.facts = await page.locator(".facts").innerText();
  found.pixels = await countPixels(page);
  found.groups = await texts(page.locator(".category"));
  found.title = await page.title();

  // The list is the accessible form of the map: its rows can be reached and read by keyboard.
  await rows(page).first().locator("button").focus();
  const before = await countPixels(page);
  await page.keyboard.press("ArrowDown");
  found.focusedRow = await page.evaluate(() => Number(document.activeElement.closest("li").dataset.use));
  await page.keyboard.press("Enter");
  found.openedHash = hashOf(page);
  found.openedText = await page.locator(".whole p").first().innerText();
  found.ringIsDrawn = (await countPixels(page))[2] !== before[2];

  await page.locator(".category").first().click();
  found.focusedGroup = await rows(page).count();
  await page.locator(".category").first().click();

  await page.getByText("Only “bank”").click();
  await settle(page);
  found.exactFacts = await page.locator(".facts").innerText();
  await page.getByText("Only “bank”").click();
  await page.getByText("Center by spelling").click();
  await settle(page);
  found.plainGroups = await texts(page.locator(".category"));

  await page.getByText("Source", { exact: true }).click();
  found.sources = await texts(page.locator(".category strong"));
  await page.getByText("t-SNE", { exact: true }).click();
  await settle(page);
  await page.getByText("t-SNE: near points").first().waitFor();
  found.tsneHash = hashOf(page);

  const csv = await download(page, "CSV");
  found.csv = { name: csv.name, text: csv.content.toString("utf8") };
  const png = await download(page, "PNG");
  found.png = { name: png.name, start: png.content.subarray(0, 8).toString("hex"), size: png.content.length };

  // Type another word, with a completion; then go back.
  const box = page.getByRole("combobox");
  await box.fill("spr");
  await page.getByRole("option").first().waitFor();
  found.completions = await texts(page.getByRole("option").locator(".serif"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByText("uses in").waitFor();
  await settle(page);
  found.typedHash = hashOf(page);
  await page.goBack();
  await settle(page);
  found.backWord = await box.inputValue();

  // The example has the sentences of all words, but the vectors of ten.
  await page.goto(`${url}/#/uses?word=river`);
  await rows(page).first().waitFor();
  found.noVectors = {
    note: await page.locator(".note").innerText(),
    rows: await rows(page).count(),
    maps: await page.locator(".map").count(),
    skeletons: await page.locator("[role=status]").count(),
  };

  await box.fill("xyzzy");
  await page.keyboard.press("Enter");
  await page.locator(".empty").waitFor();
  found.empty = await page.locator(".empty").innerText();
  await page.context().close();
  return found;
}

async function map() {
  const found = {};
  const page = await openPage("#/uses?word=watch");
  // Move over the map of layer 1 until a use is hit, then click it.
  const box = await page.locator(".map").nth(1).boundingBox();
  outer: for (let y = 20; y < box.height - 20; y += 8) {
    for (let x = 20; x < box.width - 20; x += 12) {
      await page.mouse.move(box.x + x, box.y + y);
      if (await page.locator(".tip").count()) {
        found.tip = await page.locator(".tip").innerText();
        await page.mouse.click(box.x + x, box.y + y);
        break outer;
      }
    }
  }
  await page.locator("li.open").waitFor();
  found.hash = hashOf(page);
  found.openedUse = await page.locator("li.open").evaluate((row) => Number(row.dataset.use));
  await page.mouse.move(2, 2);
  await page.locator(".map").first().scrollIntoViewIfNeeded();
  const zero = await page.locator(".map").first().boundingBox();
  // Two spellings have one point each, in either order.
  for (const share of [0.3, 0.7]) {
    await page.mouse.move(zero.x + share * zero.width, zero.y + zero.height / 2);
    const tip = await page.locator(".tip").innerText();
    found.heapTip = tip.includes("other uses") ? tip : (found.heapTip ?? tip);
  }

  const link = await openPage("#/uses?word=bank&color=spelling&map=tsne&layer=2&use=" + (await firstUse()));
  await link.getByText("t-SNE: near points").first().waitFor();
  found.deep = {
    word: await link.getByRole("combobox").inputValue(),
    opened: await link.locator("li.open").count(),
    categories: await texts(link.locator(".category strong")),
    layer: await link.getByRole("radio", { name: "layer 2" }).isChecked(),
  };
  await page.context().close();
  await link.context().close();
  return found;
}

async function firstUse() {
  const answer = await fetch(`${url}/uses?word=bank&limit=1`);
  return (await answer.json()).uses[0].number;
}

async function nearest() {
  const found = {};
  const page = await openPage("#/nearest");
  await rows(page).first().waitFor();
  found.word = await page.locator(".query mark").innerText();
  found.list = await rows(page).evaluateAll((all) =>
    all.map((row) => [Number(row.dataset.use), row.querySelector(".cosine .number").innerText]),
  );
  await page.getByText("all words").click();
  await settle(page);
  found.scopeHash = hashOf(page);
  await page.getByLabel("A sentence; then choose").fill("She wore a gold ring on her finger");
  await page.getByRole("button", { name: "ring", exact: true }).click();
  await settle(page);
  found.typedHash = decodeURIComponent(hashOf(page));
  found.typedWord = await page.locator(".query mark").innerText();
  await page.getByRole("button", { name: "Pin", exact: true }).first().click();
  await rows(page).first().locator("button").first().click();
  await rows(page).first().getByRole("button", { name: "Pin" }).click();
  await page.locator(".compare table").waitFor();
  found.pins = decodeURIComponent(hashOf(page));
  found.compared = await texts(page.locator(".compare tbody .number"));
  const csv = await download(page, "CSV");
  found.csv = { name: csv.name, lines: csv.content.toString("utf8").trim().split("\r\n").length };
  await rows(page).first().getByRole("link", { name: "Nearest to this one" }).click();
  await settle(page);
  found.nextHash = hashOf(page);
  const wrong = await openPage("#/nearest?use=n99999999");
  await wrong.getByRole("alert").waitFor();
  found.problem = await wrong.getByRole("alert").innerText();
  await page.context().close();
  await wrong.context().close();
  return found;
}

async function sentence() {
  const found = {};
  const page = await openPage("#/sentence?text=A+bank+is+not+a+bank+.");
  await page.locator("tbody tr").first().waitFor();
  const read = () => page.locator("tbody tr").evaluateAll((all) => all.map((row) => [row.querySelector("th").innerText, ...[...row.querySelectorAll(".number")].map((cell) => cell.innerText)]));
  found.chosen = await page.locator("h2#token").innerText();
  found.table = await read();
  await page.getByRole("slider").nth(0).fill("0");
  await page.getByRole("slider").nth(2).fill("0");
  found.onlyLayer1 = await read();
  found.mixHash = decodeURIComponent(hashOf(page));
  await page.getByRole("group", { name: "Tokens" }).getByRole("button", { name: "not" }).click();
  found.tokenHash = hashOf(page);
  found.csv = (await download(page, "CSV")).content.toString("utf8").trim().split("\r\n").length;
  found.png = (await download(page, "PNG")).content.subarray(1, 4).toString();
  const field = page.getByLabel("Sentence");
  await field.fill("One two .");
  await page.keyboard.press("Enter");
  await settle(page);
  found.typedHash = hashOf(page);
  await page.context().close();
  return found;
}

async function surprise() {
  const found = {};
  const page = await openPage("#/surprise?text=She+opened+the+door+.");
  await page.locator(".token").first().waitFor();
  found.tokens = await page.locator(".token").evaluateAll((all) => all.map((button) => button.textContent));
  await page.locator(".token").nth(3).focus();
  await page.keyboard.press("Enter");
  await page.locator(".filled tbody tr").first().waitFor();
  found.hash = hashOf(page);
  found.fillings = await texts(page.locator(".filled tbody th"));
  found.csv = (await download(page, "CSV")).content.toString("utf8").trim().split("\r\n").length;
  await page.context().close();
  return found;
}

async function task() {
  const found = {};
  const page = await openPage("#/task?text=a+bad+cab");
  await page.locator(".tags li").first().waitFor();
  found.tags = await texts(page.locator(".tags .tag"));
  found.shares = await texts(page.locator(".tags .number"));
  found.csv = (await download(page, "CSV")).content.toString("utf8").trim().split("\r\n").length;
  await page.getByLabel("Text").fill("dada abba");
  await page.keyboard.press("Enter");
  await settle(page);
  found.typedTags = await texts(page.locator(".tags .tag"));
  found.typedHash = hashOf(page);
  await page.context().close();
  return found;
}

/** What the page says when the server asks for a key, has no task, or is gone. */
async function states() {
  const found = {};
  const page = await openPage("#/task");
  const info = await (await page.request.get(`${url}/info`)).json();
  await page.route("**/info", (route) => route.fulfill({ json: { ...info, tasks: [] } }));
  await page.reload();
  found.noTask = await page.locator(".empty").innerText();
  const models = info.models.map((model) => ({ ...model, has_lm_head: false }));
  await page.route("**/info", (route) => route.fulfill({ json: { ...info, models, index: { ...info.index, served_model: null } } }));
  await page.goto(`${url}/#/surprise`);
  await page.reload();
  found.noHead = await page.locator(".note").innerText();
  await page.goto(`${url}/#/nearest`);
  found.noModel = await page.locator(".note").first().innerText();
  await settle(page);
  found.noModelProblems = await page.getByRole("alert").count();
  await page.route("**/info", (route) => route.fulfill({ json: { ...info, index: { ...info.index, indexed_words: [] } } }));
  await page.goto(`${url}/#/uses`);
  await page.reload();
  await page.locator(".offered a").first().waitFor();
  found.frequent = await texts(page.locator(".offered a"));
  await page.goto(`${url}/#/nearest`);
  let keys = [];
  await page.route("**/info", (route) => {
    keys.push(route.request().headers()["authorization"] ?? "");
    return keys.length === 1 ? route.fulfill({ status: 401, json: { error: "the API key is missing" } }) : route.fulfill({ json: info });
  });
  await page.reload();
  await page.getByLabel("API key").fill("secret");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("navigation").waitFor();
  await page.locator(".query").waitFor();
  found.keys = keys;
  await page.route("**/uses?**", (route) => route.abort());
  await page.goto(`${url}/#/uses?word=bank`);
  found.gone = await page.getByRole("alert").innerText();
  await page.unroute("**/uses?**");
  await page.getByRole("button", { name: "Try again" }).click();
  await rows(page).first().waitFor();
  found.again = await rows(page).count();
  await page.context().close();
  return found;
}

/** How predictions of each kind of task are shown; they are made up, since training takes long. */
async function kinds() {
  const words = (text) => text.split(" ");
  const predictions = {
    entities: {
      tokens: words("Anna met Ben in Paris ."),
      tags: words("B-PER O B-PER O B-LOC O"),
      entities: [
        { start: 0, end: 1, type: "PER", text: "Anna", probability: 0.981 },
        { start: 2, end: 3, type: "PER", text: "Ben", probability: 0.5 },
        { start: 4, end: 5, type: "LOC", text: "Paris", probability: 1 },
      ],
      probabilities: [0.9, 0.9, 0.9, 0.9, 0.9, 0.9],
    },
    roles: {
      tokens: words("Cats chase mice"),
      predicate: 1,
      tags: words("B-ARG0 B-V B-ARG1"),
      arguments: [
        { start: 0, end: 1, role: "ARG0", probability: 0.9 },
        { start: 2, end: 3, role: "ARG1", probability: 0.8 },
      ],
      probabilities: [0.9, 1, 0.8],
    },
    coreference: { tokens: words("Mary lost her watch ."), clusters: [[[0, 1], [2, 3]]], mentions: [] },
    questions: { question: "Who?", answer: "Clara", start: 2, end: 7, probability: 0.81 },
    sentiment: { label: "good", probabilities: { bad: 0.2, good: 0.8 } },
    entailment: { label: "entailment", probabilities: { entailment: 0.7, neutral: 0.2, contradiction: 0.1 } },
  };
  const found = {};
  const page = await openPage("#/task");
  const info = await (await page.request.get(`${url}/info`)).json();
  for (const [kind, prediction] of Object.entries(predictions)) {
    const asked = [];
    await page.unrouteAll();
    await page.route("**/info", (route) => route.fulfill({ json: { ...info, tasks: [{ name: kind, kind }] } }));
    await page.route("**/predict", (route) => {
      asked.push(route.request().postDataJSON().input);
      return route.fulfill({ json: { task: kind, kind, prediction } });
    });
    await page.goto(`${url}/#/task?text=Cats+chase+mice&second=${encodeURIComponent("😀 Clara did.")}`);
    await page.reload();
    await page.locator(".found").waitFor();
    found[kind] = {
      asked: asked[0],
      text: await page.locator(".found").innerText(),
      marks: await texts(page.locator(".found mark")),
      csv: (await download(page, "CSV")).content.toString("utf8"),
    };
    await runAxe(page, `task ${kind}`);
  }
  await page.context().close();
  return found;
}

async function runAxe(page, name) {
  // The page's policy keeps scripts of others out, so axe is evaluated and not added.
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run());
  seen.axe.push(...found.violations.map((each) => `${name}: ${each.id}: ${each.nodes[0].target} ${each.nodes[0].failureSummary}`));
}

const LONG = "x".repeat(300);
const HEBREW = encodeURIComponent("הנהר זרם לאט");

/** Texts that are read from right to left. */
async function directions() {
  const found = {};
  for (const [name, hash, tokens] of [
    ["nearest", `#/nearest?use=t1:${HEBREW}`, "[aria-label='Words of the sentence']"],
    ["surprise", `#/surprise?text=${HEBREW}`, ".scored .tokens"],
  ]) {
    const page = await openPage(hash);
    await page.locator(tokens).waitFor();
    const buttons = page.locator(tokens).getByRole("button");
    const [first, second] = [await buttons.nth(0).boundingBox(), await buttons.nth(1).boundingBox()];
    found[name] = first.x - second.x;
    await page.context().close();
  }
  return found;
}

async function check() {
  const views = [
    "#/uses?word=bank",
    "#/nearest",
    "#/sentence",
    "#/surprise?gap=3",
    "#/task?text=a+bad+cab",
    "#/uses?word=xyzzy",
    `#/uses?word=${LONG}`,
    `#/nearest?use=t1:The+${LONG}+bank`,
    `#/sentence?text=The+${LONG}+bank`,
    `#/surprise?text=The+${LONG}+bank`,
  ];
  for (const [name, options] of [
    ["light", {}],
    ["dark", { colorScheme: "dark" }],
    ["phone", { viewport: { width: 390, height: 844 } }],
  ]) {
    for (const view of views) {
      const page = await openPage(view, options);
      await page.waitForTimeout(300);
      if (view.startsWith("#/uses?word=bank")) await rows(page).nth(1).locator("button").click();
      await runAxe(page, `${name} ${view}`);
      seen.overflow[`${name} ${view}`] = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      await page.context().close();
    }
  }
}

try {
  seen.uses = await uses();
  seen.map = await map();
  seen.nearest = await nearest();
  seen.sentence = await sentence();
  seen.surprise = await surprise();
  seen.task = await task();
  seen.states = await states();
  seen.kinds = await kinds();
  seen.directions = await directions();
  await check();
  console.log(JSON.stringify({ ...seen, requests: [...seen.requests] }));
} finally {
  await browser.close();
}
