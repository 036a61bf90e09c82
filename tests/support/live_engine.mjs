// Runs requests on the engine of the live page: node live_engine.mjs FOLDER, with model.json,
// requests.json [{code, ask, ...}] and the scripts they name in it; writes answers.json.

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const folder = process.argv[2];
const json = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));
const model = json("model.json");
const translators = new Map();

async function translatorOf(name) {
  if (!translators.has(name)) {
    const { Translator } = await import(pathToFileURL(join(folder, name)).href);
    translators.set(name, new Translator(model));
  }
  return translators.get(name);
}

const answer = {
  encode: (t, { texts }) => texts.map((text) => t.tokens.encode(text)),
  decode: (t, { lists }) => lists.map((ids) => t.tokens.decode(ids)),
  labels: (t, { ids }) => ids.map((id) => t.tokens.label(id)),
  translate: (t, { sources, options }) => sources.map((ids) => t.translate(ids, options)),
  logits: (t, { source, said, change }) => t.listen(source, said, change).steps.map(({ logits }) => [...logits]),
};

const answers = [];
for (const request of json("requests.json")) {
  const translator = await translatorOf(request.code);
  answers.push(answer[request.ask](translator, request));
}
writeFileSync(join(folder, "answers.json"), JSON.stringify(answers));
