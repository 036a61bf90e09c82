// The live figure of the attention explorer: two columns of tokens, and lines that are weights.
// All numbers come from Python; here they are drawn and written, never computed anew, but for the
// products of two numbers in the tables of the unfolded arithmetic.

const ARRAYS = { float32: Float32Array, float64: Float64Array, uint8: Uint8Array };
const KINDS = {
  cross: "cross-attention: French looks at English",
  encoder: "encoder: English looks at English",
  decoder: "decoder: French looks at French",
  self: "self-attention",
};
const FAINTEST = 0.005; // weights below it get no line; their numbers are written all the same
const OVERVIEW = 0.15; // while nothing is chosen, lines are drawn from here on
const ROW = 28; // pixels per token, as in explorer.css
const STEP_MS = 1300;
const PATIENCE_MS = 20000; // how long a kernel may take for a sentence

/** A packed tensor: row(i, ...) is its last axis, at(i, ...) one number. */
function tensor({ dtype, shape, data }) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
  const flat = new ARRAYS[dtype](bytes.buffer);
  const start = (index) =>
    index.reduce((sum, i, axis) => sum * shape[axis] + i, 0) *
    shape.slice(index.length).reduce((a, b) => a * b, 1);
  return {
    shape,
    at: (...index) => flat[start(index)],
    row: (...index) => flat.subarray(start(index), start(index) + shape.at(-1)),
  };
}

function unpack(payload) {
  const families = payload.families.map((family) => ({
    ...family,
    layers: family.layers.map((layer) =>
      Object.fromEntries(Object.entries(layer).map(([name, x]) => [name, tensor(x)])),
    ),
  }));
  return { ...payload, families };
}

/** An HTML element; properties that start with "on" are listeners, the rest attributes. */
function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A number to read: three digits after the point, or a power of ten. */
function number(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const text = size >= 100 ? size.toFixed(1) : size >= 0.001 ? size.toFixed(3) : size.toExponential(1);
  return (x < 0 ? "−" : "") + text.replace("e-", "e−");
}

const exactly = (x, text = number(x)) => h("span", { class: "ax-number", title: String(x) }, text);

/** One figure in `root`; returns the function that stops it. */
function figure(root, model) {
  let scene, family, panels, status, stepText, controls, unfolded, form;
  const state = {};

  const layer = (panel) => family.layers[panel.layer];
  const weight = (panel, q, k) => layer(panel).weights.at(panel.head, q, k);
  const visible = (panel, q, k) => layer(panel).visible.at(panel.head, q, k) === 1;
  const tokens = (side) => (side === "query" ? family.queries : family.keys);
  const other = (side) => (side === "query" ? "key" : "query");
  const exists = (side, i) =>
    i < state.step || !(family.grows === "both" || (family.grows === "queries" && side === "query"));
  const growing = () => family.grows && scene.steps.length > 0;
  const single = () => family.layers.length * family.layers[0].weights.shape[0] === 1;
  const name = (panel) => (single() ? "" : `layer ${panel.layer}, head ${panel.head}`);

  /** A token in words; one that stands there more than once is followed by its position. */
  function spoken(side, i) {
    const all = tokens(side);
    return all.indexOf(all[i]) === all.lastIndexOf(all[i]) ? all[i] : `${all[i]}[${i}]`;
  }

  /** What is drawn now: the locked token, or the one under pointer or focus, or this step's. */
  function active() {
    if (state.locked) return state.locked;
    if (state.preview) return state.preview;
    return state.stepping ? { side: "query", index: state.step - 1 } : null;
  }

  // ---- state changes -------------------------------------------------------------------------

  function load(payload) {
    scene = unpack(payload);
    state.layer = scene.families[0].layers.length - 1;
    state.head = 0;
    choose(scene.families[0]);
  }

  function choose(next) {
    stop();
    const [deepest, heads] = [next.layers.length - 1, next.layers[0].weights.shape[0] - 1];
    family = next;
    Object.assign(state, {
      layer: Math.min(state.layer, deepest),
      head: Math.min(state.head, heads),
      compare: null,
      preview: null,
      locked: null,
      cell: null,
      step: family.queries.length,
      stepping: false,
      rove: { query: 0, key: 0, weight: 0 },
    });
    build();
  }

  function lock(side, index) {
    const same = state.locked?.side === side && state.locked.index === index;
    state.locked = same || !exists(side, index) ? null : { side, index };
    state.preview = same ? null : state.locked;
    state.cell = null;
    paint();
  }

  function unlock() {
    const { side, index } = state.locked;
    const focused = root.getRootNode().activeElement;
    const back = panels.find((panel) => panel.element.contains(focused));
    if (focused?.classList.contains("ax-weight")) back[side].tokens[index].focus();
    state.locked = state.preview = state.cell = null;
    paint();
  }

  function goTo(step) {
    state.step = Math.max(1, Math.min(step, family.queries.length));
    state.stepping = true;
    if (state.locked && !exists(state.locked.side, state.locked.index)) state.locked = null;
    if (!state.locked) state.cell = null;
    state.preview = null;
    paint();
  }

  function play() {
    const last = family.queries.length;
    if (state.timer) stop();
    else {
      state.timer = setInterval(() => {
        if (state.step + 1 >= last) stop();
        goTo(state.step + 1);
      }, STEP_MS);
      goTo(state.step >= last ? 1 : state.step + 1);
    }
    paint();
  }

  function stop() {
    clearInterval(state.timer);
    state.timer = null;
  }

  // ---- building: what stands where; nothing here depends on the pointer ----------------------

  function build() {
    status = h("p", { class: state.compare ? "ax-status ax-long" : "ax-status", role: "status" });
    unfolded = h("section", { class: "ax-unfolded", "aria-label": "Arithmetic of one weight", hidden: true });
    controls = buildControls();
    const both = [{ layer: state.layer, head: state.head }, state.compare].filter(Boolean);
    panels = both.map(buildPanel);
    const parts = [
      buildSentences(),
      h("div", { class: "ax-controls" }, ...controls.selects),
      controls.steps,
      status,
      h("div", { class: "ax-panels" }, ...panels.map((panel) => panel.element)),
      unfolded,
    ];
    const focused = root.getRootNode().activeElement;
    const label = root.contains(focused) && focused.tagName === "SELECT" && focused.ariaLabel;
    root.replaceChildren(...parts.filter(Boolean));
    if (label) root.querySelector(`select[aria-label="${label}"]`)?.focus();
    paint();
  }

  function buildSentences() {
    const translated = scene.said || scene.source;
    if (!translated) return null;
    const line = h("p", { class: "ax-sentences" }, h("span", { lang: "en" }, scene.source), " → ",
      h("span", { lang: "fr" }, scene.said || "(nothing)"));
    const notice = h("p", { class: "ax-notice", role: "alert" }, scene.notice);
    if (!scene.own_sentences) return h("div", {}, line, notice);
    const input = h("input", { type: "text", name: "sentence", placeholder: "I'm home.", autocomplete: "off" });
    const button = h("button", { type: "submit" }, "Translate");
    input.value = form?.input.value ?? ""; // what is typed outlives a change of head or layer
    form = { input, button, notice };
    const element = h("form", { class: "ax-own", onsubmit: ask },
      h("label", {}, "Your own English sentence ", input), button);
    return h("div", {}, element, notice, line);
  }

  function ask(event) {
    event.preventDefault();
    const text = form.input.value.trim();
    if (!text) return say("Write an English sentence first.");
    form.button.disabled = true;
    say("Translating …");
    state.waiting = setTimeout(() => {
      form.button.disabled = false;
      say("No answer: the kernel is busy or gone. Run the cell again.");
    }, PATIENCE_MS);
    model.send({ type: "translate", text });
  }

  function say(text) {
    form.notice.textContent = text;
  }

  function heard(message) {
    clearTimeout(state.waiting);
    if (message.type === "translated") {
      load(model.get("payload"));
      form.input.focus();
    } else if (message.type === "refused") {
      say(`Not translated: ${message.why}.`);
    }
    form.button.disabled = false;
  }

  function select(label, options, chosen, change) {
    if (options.length < 2) return null;
    const element = h("select", { "aria-label": label, onchange: () => change(element.value) },
      ...options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
    return h("label", {}, `${label} `, element);
  }

  function buildControls() {
    const heads = family.layers[0].weights.shape[0];
    const count = (n) => Array.from({ length: n }, (_, i) => [String(i), String(i)]);
    const pairs = family.layers.flatMap((_, l) =>
      Array.from({ length: heads }, (_, i) => [`${l}:${i}`, `layer ${l}, head ${i}`]));
    const rebuild = (change) => {
      Object.assign(state, change, { cell: null });
      build();
    };
    const compared = state.compare ? `${state.compare.layer}:${state.compare.head}` : "";
    const selects = [
      select("Attention", scene.families.map((f) => [f.name, KINDS[f.name]]), family.name,
        (value) => choose(scene.families.find((f) => f.name === value))),
      select("Layer", count(family.layers.length), String(state.layer), (v) => rebuild({ layer: Number(v) })),
      select("Head", count(heads), String(state.head), (v) => rebuild({ head: Number(v) })),
      pairs.length > 1 && select("Compare with", [["", "nothing"], ...pairs], compared, (value) => {
        const [l, i] = value.split(":").map(Number);
        rebuild({ compare: value ? { layer: l, head: i } : null });
      }),
    ].filter(Boolean);
    return { selects, ...buildSteps() };
  }

  function buildSteps() {
    if (scene.steps.length === 0) return {};
    if (!growing()) {
      return { steps: h("p", { class: "ax-steps" }, "The encoder reads all tokens at once: no steps to play.") };
    }
    const last = family.queries.length;
    const slider = h("input", { type: "range", min: 1, max: last, value: last, "aria-label": "Step of the decoder",
      oninput: () => { stop(); goTo(Number(slider.value)); } });
    const move = (by) => () => { stop(); goTo(state.step + by); };
    const back = h("button", { type: "button", onclick: move(-1), "aria-label": "One step back" }, "◀");
    const forth = h("button", { type: "button", onclick: move(1), "aria-label": "One step on" }, "▶");
    const playing = h("button", { type: "button", class: "ax-play", onclick: play }, "Play");
    stepText = h("p", { class: "ax-step", role: "status" });
    return {
      slider, back, forth, playing,
      steps: h("div", { class: "ax-steps" }, h("div", { class: "ax-player" }, playing, back, slider, forth), stepText),
    };
  }

  function buildPanel(chosen) {
    const panel = { ...chosen };
    const height = ROW * Math.max(family.queries.length, family.keys.length);
    panel.lines = svg("svg", { class: "ax-lines", viewBox: `0 0 100 ${height}`, height,
      preserveAspectRatio: "none", "aria-hidden": "true" });
    panel.query = buildColumn(panel, "query");
    panel.key = buildColumn(panel, "key");
    const heading = (side, text) => h("div", { class: `ax-label ax-${side}` }, text);
    panel.element = h("div", { class: "ax-panel", role: "group", "aria-label": name(panel) || "Attention" },
      h("div", { class: "ax-title" }, name(panel)),
      heading("query", `Queries: ${family.query_label}`), heading("key", `Keys: ${family.key_label}`),
      panel.query.element, panel.lines, panel.key.element);
    if (family.name === "self") {
      panel.element.querySelectorAll(".ax-label").forEach((e, i) => { e.textContent = i ? "Keys" : "Queries"; });
    }
    return panel;
  }

  /** A column of tokens with a place for a weight beside each. */
  function buildColumn(panel, side) {
    const column = { tokens: [], weights: [] };
    const rows = tokens(side).map((token, index) => {
      const at = { side, index };
      column.tokens.push(h("button", {
        type: "button", class: "ax-token", title: token, tabindex: -1, "data-index": index,
        onclick: () => lock(side, index), onfocus: () => look(at), onblur: () => look(null),
        onpointerenter: () => look(at), onpointerleave: () => look(null),
      }, token));
      column.weights.push(h("button", {
        type: "button", class: "ax-weight", tabindex: -1, "data-index": index,
        onclick: () => open(panel, side, index), onfocus: () => { state.rove.weight = index; paint(); },
      }));
      const pair = [column.tokens.at(-1), column.weights.at(-1)];
      return h("div", { class: "ax-row" }, ...(side === "query" ? pair.reverse() : pair));
    });
    column.element = h("div", { class: `ax-column ax-${side}`, role: "group",
      "aria-label": side === "query" ? `Queries: ${family.query_label}` : `Keys: ${family.key_label}`,
      onkeydown: (event) => walk(event, panel, side) }, ...rows);
    return column;
  }

  function look(at) {
    if (at) state.rove[at.side] = at.index;
    state.preview = at && exists(at.side, at.index) ? at : null;
    paint();
  }

  // ---- keyboard: one stop of Tab per column, arrows inside -----------------------------------

  function walk(event, panel, side) {
    const inWeights = event.target.classList.contains("ax-weight");
    const here = Number(event.target.dataset.index);
    const last = tokens(side).length - 1;
    const inward = side === "query" ? "ArrowRight" : "ArrowLeft";
    const outward = side === "query" ? "ArrowLeft" : "ArrowRight";
    const list = inWeights ? panel[side].weights : panel[side].tokens;
    let target;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const by = event.key === "ArrowDown" ? 1 : -1;
      for (let i = here + by; i >= 0 && i <= last && !target; i += by) target = reachable(list[i]);
    } else if (event.key === "Home" || event.key === "End") {
      const ordered = event.key === "Home" ? list : [...list].reverse();
      target = ordered.find(reachable);
    } else if (event.key === inward) {
      const across = panel[other(side)].tokens;
      target = inWeights ? panel[side].tokens[here] : across[Math.min(here, across.length - 1)];
      if (!reachable(target)) target = across.findLast(reachable);
    } else if (event.key === outward && !inWeights) {
      target = reachable(panel[side].weights[here]) ?? panel[side].weights.find(reachable);
    } else return;
    event.preventDefault();
    target?.focus();
  }

  const reachable = (button) => (button.disabled ? undefined : button);

  function onKey(event) {
    event.stopPropagation(); // JupyterLab's one-letter commands stay outside
    if (event.key !== "Escape" || !(state.cell || state.locked)) return;
    event.preventDefault();
    if (state.cell) close();
    else unlock();
  }

  // ---- painting: colours, lines and numbers; nothing changes its size ------------------------

  function paint() {
    const now = active();
    panels.forEach((panel, n) => {
      paintLines(panel, now);
      for (const side of ["query", "key"]) paintColumn(panel, side, now, n);
    });
    paintSteps();
    status.textContent = describe(now);
    unfold();
  }

  function paintColumn(panel, side, now, n) {
    const answers = now && now.side !== side;
    const rove = reachable(panel[side].tokens[state.rove[side]]) ? state.rove[side] : 0;
    tokens(side).forEach((token, i) => {
      const [button, slot] = [panel[side].tokens[i], panel[side].weights[i]];
      const there = exists(side, i);
      const locked = state.locked?.side === side && state.locked.index === i;
      button.textContent = there ? token : "…";
      button.title = there ? token : "not said yet";
      button.disabled = !there;
      button.setAttribute("aria-pressed", String(locked));
      button.classList.toggle("ax-active", now?.side === side && now.index === i);
      button.classList.toggle("ax-now", Boolean(growing()) && state.stepping && side === "query" && i === state.step - 1);
      button.tabIndex = i === rove ? 0 : -1;
      const [q, k] = side === "key" ? [now?.index, i] : [i, now?.index];
      const seen = answers && there && visible(panel, q, k);
      const w = seen ? weight(panel, q, k) : 0;
      slot.textContent = !answers || !there ? "" : seen ? w.toFixed(2) : "masked";
      slot.style.setProperty("--ax-share", seen ? w : 0);
      slot.classList.toggle("ax-masked", Boolean(answers && there && !seen));
      slot.disabled = !(answers && there && state.locked);
      slot.classList.toggle("ax-open", Boolean(state.cell) && state.cell.panel === n && state.cell.q === q && state.cell.k === k);
      const said = seen ? `weight ${w.toFixed(2)}` : "masked";
      if (slot.disabled) slot.removeAttribute("aria-label");
      else slot.setAttribute("aria-label", `${token}: ${said}. Unfold its arithmetic`);
    });
    const slots = panel[side].weights;
    const stopAt = reachable(slots[state.rove.weight] ?? slots[0]) ?? slots.find(reachable);
    slots.forEach((slot) => { slot.tabIndex = slot === stopAt ? 0 : -1; });
  }

  function paintLines(panel, now) {
    const drawn = [];
    const line = (q, k, w, kind) => {
      const half = ROW / 2;
      const attributes = { class: `ax-line ax-${kind}`, x1: 0, y1: q * ROW + half, x2: 100, y2: k * ROW + half,
        "data-q": q, "data-k": k, "vector-effect": "non-scaling-stroke" };
      if (kind !== "overview") {
        attributes["stroke-width"] = (0.6 + 9 * w).toFixed(2);
        attributes["stroke-opacity"] = (0.45 + 0.55 * w).toFixed(2);
      }
      drawn.push(svg("line", attributes));
    };
    family.queries.forEach((_, q) => {
      if (!exists("query", q) || (now?.side === "query" && now.index !== q)) return;
      family.keys.forEach((_, k) => {
        if (!exists("key", k) || !visible(panel, q, k) || (now?.side === "key" && now.index !== k)) return;
        const w = weight(panel, q, k);
        if (w >= (now ? FAINTEST : OVERVIEW)) line(q, k, w, now ? `from-${now.side}` : "overview");
      });
    });
    panel.lines.replaceChildren(...drawn);
  }

  function paintSteps() {
    if (!growing()) return;
    const step = scene.steps[state.step - 1];
    const { slider, back, forth, playing } = controls;
    slider.value = state.step;
    back.disabled = state.step <= 1;
    forth.disabled = state.step >= family.queries.length;
    playing.textContent = state.timer ? "Pause" : "Play";
    const chances = step.candidates.map(([token, p]) => `${token} ${p.toFixed(2)}`).join(" · ");
    stepText.textContent =
      `Step ${state.step} of ${family.queries.length}: reads ${step.reads}, says ${step.says}. Likeliest: ${chances}`;
  }

  /** The line under the controls, in words. */
  function describe(now) {
    if (!now) return "Point at a token, or Tab to one and use the arrow keys. Click or Enter locks it.";
    const looks = now.side === "query" ? "looks most at" : "is looked at most by";
    const said = panels.map((panel) => {
      const where = panels.length > 1 ? ` in ${name(panel)}` : "";
      return (strongest(panel, now).join(", then ") || "nothing") + where;
    });
    const locked = state.locked ? " Locked: choose a weight to unfold its arithmetic; Escape unlocks." : "";
    return `${spoken(now.side, now.index)} ${looks} ${said.join("; ")}.${locked}`;
  }

  /** The two largest weights of a row or a column, with their tokens. */
  function strongest(panel, { side, index }) {
    const theirs = other(side);
    return tokens(theirs)
      .map((_, i) => ({ i, q: side === "query" ? index : i, k: side === "query" ? i : index }))
      .filter(({ i, q, k }) => exists(theirs, i) && visible(panel, q, k))
      .map(({ i, q, k }) => ({ token: spoken(theirs, i), w: weight(panel, q, k) }))
      .sort((a, b) => b.w - a.w)
      .slice(0, 2)
      .map(({ token, w }) => `${token} (${w.toFixed(2)})`);
  }

  // ---- the arithmetic of one weight ----------------------------------------------------------

  function open(panel, side, index) {
    const n = panels.indexOf(panel);
    const [q, k] = side === "key" ? [state.locked.index, index] : [index, state.locked.index];
    const same = state.cell?.panel === n && state.cell.q === q && state.cell.k === k;
    if (same) return close();
    state.cell = { panel: n, q, k, side, index };
    paint();
    unfolded.querySelector("h4").focus({ preventScroll: true });
    unfolded.scrollIntoView({ block: "nearest" });
  }

  function close() {
    const { panel, side, index } = state.cell;
    state.cell = null;
    paint();
    panels[panel][side].weights[index].focus();
  }

  function unfold() {
    const key = JSON.stringify(state.cell);
    if (key === unfolded.dataset.cell) return;
    unfolded.dataset.cell = key;
    unfolded.hidden = !state.cell;
    if (!state.cell) return unfolded.replaceChildren();
    const { panel, q, k } = state.cell;
    const chosen = panels[panel];
    const cell = arithmeticOf(layer(chosen), chosen.head, q, k);
    const [query, target] = [spoken("query", q), spoken("key", k)];
    const keys = family.keys.map((_, i) => spoken("key", i));
    const steps = [...cell.before(query, target), ...afterScore(cell, keys, query, target)];
    unfolded.replaceChildren(
      h("h4", { tabindex: -1 }, [`Query ${query}, key ${target}`, name(chosen)].filter(Boolean).join(": ")),
      h("button", { type: "button", class: "ax-close", onclick: close }, "Close"),
      h("ol", {}, ...steps.map((step) => h("li", {}, ...step))),
    );
  }

  // ---- life ----------------------------------------------------------------------------------

  root.addEventListener("keydown", onKey);
  model.on("msg:custom", heard);
  load(model.get("payload"));
  return () => {
    stop();
    clearTimeout(state.waiting);
    model.off("msg:custom", heard);
  };
}

/** The numbers of one cell, as Python recorded them. */
function arithmeticOf(layer, head, q, k) {
  const cell = {
    q: layer.q.row(head, q), k: layer.k.row(head, k), v: layer.v.row(head, k),
    output: layer.output.row(head, q), score: layer.scores.at(head, q, k),
    seen: layer.visible.row(head, q), scores: layer.scores.row(head, q), exps: layer.exps.row(head, q),
    weights: layer.weights.row(head, q), peak: layer.peaks.at(head, q), total: layer.totals.at(head, q), at: k,
  };
  cell.before = layer.products
    ? (query, key) => dotProduct(cell, layer.products.at(head, q, k), query, key)
    : (query, key) => additive(cell, layer.features.row(head, q, k), layer.w_v.row(), query, key);
  return cell;
}

function dotProduct({ q, k, score }, product, query, key) {
  const terms = q.length > 1 ? [...q].slice(0, 2).flatMap((x, i) => [i ? " + " : "", times(x, k[i])]) : [times(q[0], k[0])];
  return [
    [h("b", {}, "Multiply. "), "q · k = ", ...terms, q.length > 2 ? ` + … (${q.length} products) = ` : " = ",
      result(product, "product"),
      ...vectors([[`q of ${query}`, q], [`k of ${key}`, k], ["q × k", multiply(q, k)]])],
    [h("b", {}, "Scale. "), "Divide by √d: ", exactly(product), ` / √${q.length} = `, result(score, "score")],
  ];
}

function additive({ q, k, score }, features, w_v, query, key) {
  return [
    [h("b", {}, "Add and squash. "), `tanh(W_q q + W_k k), ${q.length} numbers between −1 and 1.`],
    [h("b", {}, "Weigh and sum. "), "w_v · tanh(W_q q + W_k k) = ", result(score, "score"),
      ...vectors([[`W_q q for ${query}`, q], [`W_k k of ${key}`, k], ["tanh of their sum", features],
        ["w_v", w_v], ["w_v × tanh", multiply(w_v, features)]])],
  ];
}

/** Mask, softmax and weighted sum are the same for every scoring function. */
function afterScore({ score, seen, scores, exps, weights, peak, total, at, v, output }, keys, query, key) {
  const mask = seen[at]
    ? [`${query} may look at ${key}: the score stays `, exactly(score), "."]
    : [`${query} may not look at ${key}: the score becomes −∞, the weight 0.`];
  const rows = keys.map((token, i) => h("tr", { class: i === at ? "ax-here" : null },
    h("th", { scope: "row" }, token), h("td", {}, seen[i] ? exactly(scores[i]) : "masked"),
    h("td", {}, exactly(exps[i])), h("td", {}, exactly(weights[i]))));
  const head = ["key", "score", "e^(score−max)", "weight"].map((text) => h("th", { scope: "col" }, text));
  const sum = h("tr", {}, h("th", { scope: "row" }, "sum"), h("td", {}), h("td", {}, exactly(total)), h("td", {}));
  const softmax = total > 0
    ? ["e^(", exactly(seen[at] ? score : -Infinity), " − ", bracketed(peak), ") / sum = ", exactly(exps[at]), " / ", exactly(total), " = "]
    : [`${query} may look at nothing, so all its weights are `];
  return [
    [h("b", {}, "Mask. "), ...mask],
    [h("b", {}, "Softmax. "), ...softmax, result(weights[at], "weight"),
      h("div", { class: "ax-scroll", tabindex: 0, role: "region", "aria-label": "Softmax of the row" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows, sum)))],
    [h("b", {}, "Weighted sum. "), `The value of ${key} counts `, exactly(weights[at]),
      ` times; with those of all other keys it adds up to the head's output for ${query}.`,
      ...vectors([[`v of ${key}`, v], ["weight × v", multiply(v, new Float64Array(v.length).fill(weights[at]))],
        ["output, all keys", output]])],
  ];
}

const multiply = (a, b) => Float64Array.from(a, (x, i) => x * b[i]);
const bracketed = (x) => exactly(x, x < 0 ? `(${number(x)})` : number(x));
const times = (a, b) => h("span", {}, bracketed(a), " × ", bracketed(b));
const result = (x, role) => h("strong", { class: "ax-result", "data-role": role, title: String(x) }, number(x));

/** Vectors as strips of bars, up for positive, and all their numbers in a table to open. */
function vectors(named) {
  const strips = named.map(([label, x]) => h("div", { class: "ax-strip" }, h("span", {}, label), bars(x)));
  const index = Array.from(named[0][1], (_, i) => i);
  const table = h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "i"), ...named.map(([label]) => h("th", { scope: "col" }, label)))),
    h("tbody", {}, ...index.map((i) => h("tr", {}, h("th", { scope: "row" }, String(i)),
      ...named.map(([, x]) => h("td", {}, exactly(x[i])))))));
  return [h("div", { class: "ax-strips" }, ...strips),
    h("details", {}, h("summary", {}, "all numbers"),
      h("div", { class: "ax-scroll", tabindex: 0, role: "region", "aria-label": "All numbers" }, table))];
}

function bars(x) {
  const most = x.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  const strip = svg("svg", { class: "ax-bars", viewBox: `0 -1 ${x.length} 2`, preserveAspectRatio: "none",
    role: "img", "aria-label": `${x.length} numbers, the largest of size ${number(most)}` });
  strip.append(svg("line", { class: "ax-zero", x1: 0, x2: x.length, y1: 0, y2: 0, "vector-effect": "non-scaling-stroke" }));
  x.forEach((value, i) => {
    const high = Math.abs(value) / most;
    strip.append(svg("rect", { class: value < 0 ? "ax-down" : "ax-up", x: i + 0.1, width: 0.8, height: high,
      y: value < 0 ? 0 : -high }));
  });
  return h("span", { class: "ax-scale" }, strip, h("small", {}, `±${number(most)}`));
}

/** Called by anywidget for each figure. */
function render({ model, el }) {
  const root = h("div", { class: "ax", "data-lm-suppress-shortcuts": "true" });
  el.append(root);
  return figure(root, model);
}

export default { render };
