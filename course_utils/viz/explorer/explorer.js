// The explorer in a notebook. All its numbers come from Python; here they are drawn and written,
// never computed anew, but for products and sums in the tables of the unfolded arithmetic.

import { h } from "./dom.js";
import { Figure } from "./figure.js";
import { unpack } from "./payload.js";

const PATIENCE_MS = 20000; // how long a kernel may take for a sentence

/** Called by anywidget for each figure; a page calls it with a model that only holds a payload. */
export function render({ model, el }) {
  const root = h("div", { class: "ax", "data-lm-suppress-shortcuts": "true" });
  el.append(root);
  let form, waiting;
  const say = (text) => { form.notice.textContent = text; };
  const figure = new Figure(root, { head });

  /** The sentence and its translation, and where a kernel listens, a line for one's own. */
  function head(scene) {
    if (!scene.said && !scene.source) return null;
    const line = h("p", { class: "ax-sentences" }, h("span", { lang: "en" }, scene.source), " → ",
      h("span", { lang: "fr" }, scene.said || "(nothing)"));
    const notice = h("p", { class: "ax-notice", role: "alert" }, scene.notice);
    if (!scene.own_sentences) return h("div", {}, line, scene.notice ? notice : "");
    const input = h("input", { type: "text", name: "sentence", placeholder: "I'm home.", autocomplete: "off" });
    const button = h("button", { type: "submit" }, "Translate");
    input.value = form?.input.value ?? ""; // what is typed outlives a change of head or layer
    form = { input, button, notice };
    return h("div", {}, h("form", { class: "ax-own", onsubmit: ask },
      h("label", {}, "Your own English sentence ", input), button), notice, line);
  }

  function ask(event) {
    event.preventDefault();
    const text = form.input.value.trim();
    if (!text) return say("Write an English sentence first.");
    form.button.disabled = true;
    say("Translating …");
    waiting = setTimeout(() => {
      form.button.disabled = false;
      say("No answer: the kernel is busy or gone. Run the cell again.");
    }, PATIENCE_MS);
    model.send({ type: "translate", text });
  }

  function heard(message) {
    clearTimeout(waiting);
    if (message.type === "translated") {
      figure.show(unpack(model.get("payload")));
      form.input.focus();
    } else if (message.type === "refused") {
      say(`Not translated: ${message.why}.`);
    }
    form.button.disabled = false;
  }

  model.on("msg:custom", heard);
  figure.show(unpack(model.get("payload")));
  return () => {
    figure.player.stop();
    clearTimeout(waiting);
    model.off("msg:custom", heard);
  };
}
