// An exported ELMo model in the browser: tokens in, one vector per token and layer out.
// Byte models only, such as the English model that comes with elmore.

import * as ort from "./ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1; // more need headers (COOP, COEP) that plain web servers do not send

export class Elmo {
  static async load(url) {
    const session = await ort.InferenceSession.create(url);
    const input = session.inputMetadata.find(({ name }) => name === "char_ids");
    return new Elmo(session, input.shape[2]);
  }

  constructor(session, maxChars) {
    this.session = session;
    this.maxChars = maxChars;
  }

  // Return vectors[layer][position], each a Float32Array.
  async embed(tokens) {
    const ids = tokens.flatMap((token) => spell(token, this.maxChars));
    const { layers } = await this.session.run({
      char_ids: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [
        1,
        tokens.length,
        this.maxChars,
      ]),
      lengths: new ort.Tensor("int64", BigInt64Array.of(BigInt(tokens.length)), [1]),
    });
    const [, numLayers, numTokens, dim] = layers.dims;
    const vector = (index) => layers.data.subarray(index * dim, (index + 1) * dim);
    return Array.from({ length: numLayers }, (_, layer) =>
      Array.from({ length: numTokens }, (_, position) => vector(layer * numTokens + position)),
    );
  }
}

// Return the UTF-8 bytes of a token between 258 and 259, filled up with 260. Long tokens are cut
// between two characters, as in models that elmore trained.
export function spell(token, maxChars) {
  const encoder = new TextEncoder();
  const ids = [258];
  for (const character of token) {
    const bytes = encoder.encode(character);
    if (ids.length + bytes.length > maxChars - 1) break;
    ids.push(...bytes);
  }
  ids.push(259);
  return [...ids, ...Array(maxChars - ids.length).fill(260)];
}

// Split at spaces and around punctuation. elmore's own tokenizer knows more: abbreviations, URLs.
export function splitTokens(text) {
  return text.match(/[\p{L}\p{M}\p{N}]+(?:[-'’.,][\p{L}\p{M}\p{N}]+)*|[^\s]/gu) ?? [];
}

export function cosine(a, b) {
  let [product, squareA, squareB] = [0, 0, 0];
  for (let index = 0; index < a.length; index++) {
    product += a[index] * b[index];
    squareA += a[index] * a[index];
    squareB += b[index] * b[index];
  }
  return product / Math.sqrt(squareA * squareB);
}
