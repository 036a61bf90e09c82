// Elements of a page, and numbers to read.

/** An HTML element; properties that start with "on" are listeners, the rest attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A number to read: three digits after the point, or a power of ten. */
export function number(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const text = size >= 100 ? size.toFixed(1) : size >= 0.001 ? size.toFixed(3) : size.toExponential(1);
  return (x < 0 ? "−" : "") + text.replace("e-", "e−");
}

export const exactly = (x, text = number(x)) => h("span", { class: "ax-number", title: String(x) }, text);
