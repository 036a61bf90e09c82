// One map: a column of queries, a column of keys, and lines between them that are weights.

import { h, svg } from "./dom.js";
import { other } from "./view.js";

const FAINTEST = 0.005; // weights below it get no line; their numbers are written all the same
const OVERVIEW = 0.15; // while nothing is chosen, lines are drawn from here on
const ROW = 32; // pixels per token, as in explorer.css

/** A map of the layer and head `chosen`; `act` is what its buttons do: lock, look, open, focus. */
export function buildPanel(view, chosen, act) {
  const { family } = view;
  const panel = { ...chosen };
  const height = ROW * Math.max(family.queries.length, family.keys.length);
  panel.lines = svg("svg", { class: "ax-lines", viewBox: `0 0 100 ${height}`, height,
    preserveAspectRatio: "none", "aria-hidden": "true" });
  panel.query = buildColumn(view, panel, "query", act);
  panel.key = buildColumn(view, panel, "key", act);
  const label = (side, title, text) =>
    h("div", { class: `ax-label ax-${side}` }, family.name === "self" ? title : `${title}: ${text}`);
  panel.element = h("div", { class: "ax-panel", role: "group", "aria-label": view.name(panel) || "Attention" },
    h("div", { class: "ax-title" }, view.name(panel)),
    label("query", "Queries", family.query_label), label("key", "Keys", family.key_label),
    panel.query.element, panel.lines, panel.key.element);
  return panel;
}

/** A column of tokens with a place for a weight beside each. */
function buildColumn(view, panel, side, act) {
  const column = { tokens: [], weights: [] };
  const rows = view.tokens(side).map((token, index) => {
    const at = { side, index };
    column.tokens.push(h("button", {
      type: "button", class: "ax-token", title: token, tabindex: -1, "data-index": index,
      onclick: () => act.lock(side, index), onfocus: () => act.look(at), onblur: () => act.look(null),
      onpointerenter: () => act.look(at), onpointerleave: () => act.look(null),
    }));
    column.weights.push(h("button", {
      type: "button", class: "ax-weight", tabindex: -1, "data-index": index,
      onclick: () => act.open(panel, side, index), onfocus: () => act.focus(index),
    }));
    const pair = [column.tokens.at(-1), column.weights.at(-1)];
    return h("div", { class: "ax-row" }, ...(side === "query" ? pair.reverse() : pair));
  });
  const label = side === "query" ? `Queries: ${view.family.query_label}` : `Keys: ${view.family.key_label}`;
  column.element = h("div", { class: `ax-column ax-${side}`, role: "group", "aria-label": label,
    onkeydown: (event) => walk(event, view, panel, side) }, ...rows);
  return column;
}

/** Arrows go through a column and across to the other; Tab stops once in each. */
function walk(event, view, panel, side) {
  const inWeights = event.target.classList.contains("ax-weight");
  const here = Number(event.target.dataset.index);
  const last = view.tokens(side).length - 1;
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

/** Colours, lines and numbers of panel number `n`; nothing changes its size. */
export function paintPanel(view, panel, n) {
  paintLines(view, panel);
  for (const side of ["query", "key"]) paintColumn(view, panel, side, n);
}

function paintColumn(view, panel, side, n) {
  const { active, locked, cell } = view;
  const answers = active && active.side !== side;
  const rove = reachable(panel[side].tokens[view.rove[side]] ?? {}) ? view.rove[side] : 0;
  view.tokens(side).forEach((token, i) => {
    const [button, slot] = [panel[side].tokens[i], panel[side].weights[i]];
    const there = view.exists(side, i);
    button.textContent = there ? token : "…";
    button.title = there ? token : "not said yet";
    button.disabled = !there;
    button.setAttribute("aria-pressed", String(locked?.side === side && locked.index === i));
    button.classList.toggle("ax-active", active?.side === side && active.index === i);
    button.classList.toggle("ax-now", view.growing && view.stepping && side === "query" && i === view.step - 1);
    button.tabIndex = i === rove ? 0 : -1;
    const [q, k] = side === "key" ? [active?.index, i] : [i, active?.index];
    const seen = answers && there && view.visible(panel, q, k);
    const w = seen ? view.weight(panel, q, k) : 0;
    slot.textContent = !answers || !there ? "" : seen ? w.toFixed(2) : "masked";
    slot.style.setProperty("--ax-share", seen ? w : 0);
    slot.classList.toggle("ax-masked", Boolean(answers && there && !seen));
    slot.disabled = !(answers && there && locked);
    slot.classList.toggle("ax-open", Boolean(answers && cell) && cell.panel === n && cell.q === q && cell.k === k);
    const said = seen ? `weight ${w.toFixed(2)}` : "masked";
    if (slot.disabled) slot.removeAttribute("aria-label");
    else slot.setAttribute("aria-label", `${token}: ${said}. Unfold its arithmetic`);
  });
  const slots = panel[side].weights;
  const stopAt = reachable(slots[view.rove.weight] ?? slots[0]) ?? slots.find(reachable);
  slots.forEach((slot) => { slot.tabIndex = slot === stopAt ? 0 : -1; });
}

function paintLines(view, panel) {
  const { active, family } = view;
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
    if (!view.exists("query", q) || (active?.side === "query" && active.index !== q)) return;
    family.keys.forEach((_, k) => {
      if (!view.exists("key", k) || !view.visible(panel, q, k)) return;
      if (active?.side === "key" && active.index !== k) return;
      const w = view.weight(panel, q, k);
      if (w >= (active ? FAINTEST : OVERVIEW)) line(q, k, w, active ? `from-${active.side}` : "overview");
    });
  });
  panel.lines.replaceChildren(...drawn);
}
