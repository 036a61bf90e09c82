"""The still picture of a scene, for wherever nothing is live."""

from matplotlib.figure import Figure

from course_utils.viz import read_heatmap, show_heatmaps
from course_utils.viz.explorer.scenes import Scene

KINDS = {
    "cross": "cross-attention",
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
    "self": "self-attention",
}


def draw(scene: Scene) -> tuple[Figure, str]:
    """Heatmaps of the heads in the last layer of the first family, and their alt text."""
    family = scene.families[0]
    last, visible = family.weights[-1], family.layers[-1]["visible"]  # (h, Tq, Tk) both
    figure = show_heatmaps(
        last[None],
        f"Keys: {family.key_label}" if family.name != "self" else "Keys",
        f"Queries: {family.query_label}" if family.name != "self" else "Queries",
        titles=titles(scene),
        xticklabels=family.keys,
        yticklabels=family.queries,
        mask=visible[None],
        show=False,
    )
    readings = [
        f"{title}: {read_heatmap(weights, family.queries, family.keys, mask=seen, limit=4)}"
        for title, weights, seen in zip(titles(scene), last, visible, strict=True)
    ]
    return figure, f"Heatmaps of {KINDS[family.name]}. {'. '.join(readings)}."


def titles(scene: Scene) -> list[str]:
    """One title a head of the picture."""
    layers, heads = scene.families[0].weights.shape[:2]
    layer = f"layer {layers - 1}, " if layers > 1 else ""
    return [f"{layer}head {head}" for head in range(heads)]


def summary(scene: Scene) -> str:
    """What can be explored, in words that do not depend on trained numbers."""
    parts = []
    for family in scene.families:
        layers, heads = family.weights.shape[:2]
        parts.append(f"{KINDS[family.name]} ({layers} x {heads})")
    return f"<Explorer, layers x heads: {', '.join(parts)}>"
