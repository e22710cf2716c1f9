// The page: embed the sentence that is typed, and show how similar its tokens are to each other.

import { Elmo, cosine, splitTokens } from "./elmo.js";

const text = document.querySelector("#text");
const layer = document.querySelector("#layer");
const status = document.querySelector("#status");
const table = document.querySelector("#similarities");

const elmo = await Elmo.load("./model.onnx").catch((error) => {
  status.textContent = `The model could not be loaded: ${error.message}`;
  throw error;
});

let latest = 0; // sentences are embedded one after another; only the latest one is shown
let running = Promise.resolve();

function update() {
  const number = ++latest;
  running = running
    .then(() => (number === latest ? show(splitTokens(text.value)) : undefined))
    .catch((error) => {
      status.textContent = `This sentence could not be embedded: ${error.message}`;
    });
}

async function show(tokens) {
  const began = performance.now();
  const vectors = await elmo.embed(tokens);
  const milliseconds = performance.now() - began;
  if (layer.options.length !== vectors.length) {
    layer.replaceChildren(...vectors.map((_, number) => new Option(number)));
    layer.value = vectors.length - 1;
  }
  drawTable(tokens, vectors[layer.value]);
  const counted = tokens.length === 1 ? "1 token" : `${tokens.length} tokens`;
  status.textContent = `${counted}, ${vectors.length} layers: ${milliseconds.toFixed(0)} ms`;
}

function drawTable(tokens, vectors) {
  const head = [cell("td", ""), ...tokens.map((token) => cell("th", token))];
  const rows = tokens.map((token, row) => [
    cell("th", token),
    ...vectors.map((vector) => similarityCell(cosine(vectors[row], vector))),
  ]);
  table.replaceChildren(
    ...[head, ...rows].map((cells) => {
      const line = document.createElement("tr");
      line.append(...cells);
      return line;
    }),
  );
}

function similarityCell(value) {
  const made = cell("td", value.toFixed(2));
  made.style.setProperty("--similarity", `${Math.round(100 * Math.max(0, value))}%`);
  return made;
}

function cell(kind, content) {
  const made = document.createElement(kind);
  made.textContent = content;
  return made;
}

text.addEventListener("input", update);
layer.addEventListener("change", update);
update();
