"""An explorer on a page: its tokens, weights and lines, and how well its text can be read."""

CONTRAST = """element => {
  const style = getComputedStyle(element), rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  let under = element;
  while ((rgb(getComputedStyle(under).backgroundColor)[3] ?? 1) === 0) under = under.parentElement;
  const light = (colour) => rgb(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(style.color), light(getComputedStyle(under).backgroundColor)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


class Figure:
    """The n-th explorer of a page."""

    def __init__(self, page, n=0):
        self.page, self.root = page, page.locator(".ax").nth(n)

    def token(self, side, index, panel=0):
        return self.root.locator(f".ax-panel >> nth={panel} >> .ax-{side} .ax-token").nth(index)

    def slot(self, side, index, panel=0):
        return self.root.locator(f".ax-panel >> nth={panel} >> .ax-{side} .ax-weight").nth(index)

    def weights(self, side, panel=0):
        found = f".ax-panel >> nth={panel} >> .ax-{side} .ax-weight"
        return self.root.locator(found).all_inner_texts()

    def tokens(self, side):
        return self.root.locator(f".ax-{side} .ax-token").all_inner_texts()

    def lines(self, kind, panel=0):
        """The (query, key) pairs that a line of this kind joins, and its width."""
        found = self.root.locator(f".ax-lines >> nth={panel} >> .ax-{kind}").evaluate_all(
            "lines => lines.map(l => [l.dataset.q, l.dataset.k, l.getAttribute('stroke-width')])"
        )
        return {(int(q), int(k)): float(width) for q, k, width in found}

    def places(self):
        """Where all tokens and weights stand."""
        return self.root.locator(".ax-token, .ax-weight, .ax-lines").evaluate_all(
            "all => all.map(e => JSON.stringify(e.getBoundingClientRect()))"
        )

    def number(self, role):
        """A result of the unfolded arithmetic, with all its digits."""
        return float(self.root.locator(f"[data-role={role}]").get_attribute("title"))

    def choose(self, label, option):
        self.root.get_by_label(label, exact=True).select_option(option)
