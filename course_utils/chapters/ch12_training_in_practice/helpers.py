"""What the cells of chapter 12 only call: its sentences, its loop with switches, what it draws."""

import math

import torch
from torch import nn

from course_utils.text.small_world import common_sentences as common_sentences
from course_utils.text.vocab import Vocab
from course_utils.viz import display_figure, plot_curves
from course_utils.viz.style import FAINT


def train(model, optimizer, loss_of, text, updates, size, seed, *, switches, watch, every):
    """The chapter's loop, with its switches. Returns what `watch()` measured, in a list.

    loss_of(model, tokens, smoothing) is the loss; each update sees `size` rows of `text`, drawn by
    lot. switches: "smoothing" of the targets; "share" of the learning rate, a function of step and
    updates, or None; and "clip" for the norm of the gradient, which may be left out. `watch()` is
    called before the first update, after each `every` updates, and at the end.

    The model is left with `losses`, one an update, and with `best`: its weights where `watch()` was
    lowest.
    """
    draw = torch.Generator().manual_seed(seed)
    highest = optimizer.param_groups[0]["lr"]
    curve, model.losses, model.best = [], [], _copy(model)

    def measure():
        lowest = min(curve, default=math.inf)
        curve.append(watch())
        if curve[-1] < lowest:
            model.best = _copy(model)

    for step in range(1, updates + 1):
        if (step - 1) % every == 0:
            measure()
        if switches["share"] is not None:
            optimizer.param_groups[0]["lr"] = highest * switches["share"](step, updates)
        rows = torch.randint(len(text), (size,), generator=draw)
        loss = loss_of(model, text[rows], switches["smoothing"])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), switches.get("clip", math.inf))
        optimizer.step()
        model.losses.append(loss.item())
    measure()
    return curve


def _copy(model):
    return {name: weights.clone() for name, weights in model.state_dict().items()}


@torch.no_grad()
def write(model, words, seed, temperature=0.7, longest=12):
    """A text that the model writes: token after token is drawn, the logits over the temperature."""
    model.eval()
    draw = torch.Generator().manual_seed(seed)
    ids = [Vocab.bos]
    while ids[-1] != Vocab.eos and len(ids) < longest:
        logits = model(torch.tensor([ids]))[0, -1] / temperature
        p = logits.nan_to_num().softmax(-1)
        ids.append(torch.multinomial(p, 1, generator=draw).item())
    return " ".join(words.tokens[i] for i in ids[1:] if i != Vocab.eos)


def draw_runs(runs, names, every):
    """Held-out losses against updates: a line is the mean of a run's seeds, a dot one of them.

    runs: by name (seeds, measurements), one measurement `every` so many updates.
    """
    seeds, measurements = runs[names[0]].shape
    at = [every * i for i in range(measurements)]
    lines = {name: runs[name].mean(0) for name in names}
    dots = {name: (at * seeds, runs[name].flatten()) for name in names}
    plot_curves(at, lines, "updates", "loss on held-out text", points=dots)


def draw_sweep(swept):
    """The lowest held-out loss of each learning rate; at a dotted line, a rate's loss is NaN.

    swept: by name rates and losses.
    """
    curves, broken, said = {}, [], []
    for name, (rates, losses) in swept.items():
        for rate, loss in zip(rates, losses, strict=True):
            said.append(f"{name} at {rate:g}: {loss:.2f}.")
            if not math.isfinite(loss):
                broken.append((name, rate))
        if any(map(math.isfinite, losses)):
            curves[name] = rates, losses
    what = "learning rate", "lowest loss on held-out text"
    figure = plot_curves([], curves, *what, log="x", show=False)
    (ax,) = figure.axes
    above = {"xycoords": ax.get_xaxis_transform(), "textcoords": "offset points"}
    for name, rate in broken:
        ax.axvline(rate, color=FAINT, linestyle=":")
        ax.annotate(f"{name}: NaN", (rate, 1), (0, 3), ha="center", **above)
    alt = f"Line chart: {what[1]} against {what[0]}. {' '.join(said)}"
    display_figure(figure, alt, f"{len(curves)} curves")


def print_results(runs, learned, copied, names):
    """A row a run: losses on held-out text, lowest and end; on few sentences at the end; copies.

    runs: by name (seeds, measurements); learned, copied: by name one number. All are means over the
    seeds, and the lowest is that of the mean curve.
    """
    width = max(map(len, names))
    print(f"{'':{width}}  held out: lowest   end   on few: end   copies of 50")
    for name in names:
        curve = runs[name].mean(0)
        lowest, end = curve.min(), curve[-1]
        both = f"{learned[name]:13.2f} {copied[name]:14.0f}"
        print(f"{name:{width}} {lowest:17.2f} {end:5.2f} {both}")
