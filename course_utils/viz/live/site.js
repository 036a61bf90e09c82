// Figures of a page: each is built when it is scrolled to. Scripts beside the page bring what they
// show, for a page that lies in a file may load scripts, and nothing else.
//
//   <div data-live="model.js"></div>     the live translator; model.js sets window.courseModel
//   <div data-scene="scene.js"></div>    an explorer; scene.js sets window.courseScenes["scene.js"]

import { h } from "../explorer/dom.js";
import { render } from "../explorer/explorer.js";
import { Live } from "./live.js";
import { bytesOf } from "./weights.js";

/** Run a script beside the page; a name begun with # is of this page and has run. */
function load(address) {
  if (address.startsWith("#")) return Promise.resolve();
  return new Promise((resolve, reject) => {
    document.head.append(h("script", { src: address, onload: resolve, onerror: () => reject(new Error(`cannot load ${address}`)) }));
  });
}

/** A scene as Python packs it, its numbers compressed into one text. */
export async function unpackScene(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const revive = (name, value) => (name === "data" && typeof value === "string" ? new DataView(bytesOf(value).buffer) : value);
  return JSON.parse(await new Response(stream).text(), revive);
}

async function start(place) {
  const { live, scene } = place.dataset;
  const told = h("p", { role: "status", class: "live-loading" },
    live ? `Loading the model (${place.dataset.size}) …` : "Loading the figure …");
  place.prepend(told);
  try {
    await load(live ?? scene);
    const root = h("div", {});
    if (live) {
      await new Promise((resolve) => setTimeout(resolve)); // so that the line above is seen
      place.append(root);
      new Live(root, window.courseModel, { compact: place.dataset.compact !== undefined });
      place.replaceChildren(root);
    } else {
      const payload = await unpackScene(window.courseScenes[scene]);
      place.replaceChildren(root);
      render({ el: root, model: { get: () => payload, on() {}, off() {}, send() {} } });
    }
    place.dataset.ready = "yes";
  } catch (error) {
    told.textContent = `This figure could not be shown: ${error.message}.`;
    throw error;
  }
}

const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    start(target);
  }
}, { rootMargin: "300px" });
for (const place of document.querySelectorAll("[data-live], [data-scene]")) watcher.observe(place);
