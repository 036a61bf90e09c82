"""python -m course_utils heatmap --model DIR --text "I'm home." --out map.png"""

from pathlib import Path

from torch import Tensor

from course_utils.cli.command import add_model_option, parser, refusing, to_stderr
from course_utils.training.runs.files import write_atomic
from course_utils.training.runs.lines import translate_lines
from course_utils.training.runs.refusals import Refused, number
from course_utils.training.translation import Translator, load_translator
from course_utils.viz import read_heatmap, show_heatmaps
from course_utils.viz.in_notebook import png_bytes


def choose(weights: Tensor, layer: int | None, head: int | None) -> tuple[Tensor, str]:
    """One map (Tq, Tk) of weights (layers, h, Tq, Tk), and its title.

    Args:
        layer, head: counted from 0; None takes the mean.

    Raises:
        Refused: the model has no such layer or head.
    """
    names = []
    for name, chosen, count in (("layer", layer, len(weights)), ("head", head, weights.shape[1])):
        if chosen is not None and not 0 <= chosen < count:
            raise Refused(f"--{name} must lie in 0..{count - 1} for this model, got {chosen}")
        chosen = 0 if count == 1 else chosen
        names.append(f"mean of {count} {name}s" if chosen is None else f"{name} {chosen}")
    weights = weights.mean(0) if layer is None else weights[layer]  # (h, Tq, Tk)
    weights = weights.mean(0) if head is None else weights[head]  # (Tq, Tk)
    return weights, f"Cross-attention: {', '.join(names)}"


def _check_length(translator: Translator, option: str, text: str) -> None:
    found, most = len(translator.source.encode(text)), translator.model.config.max_len - 1
    if not 1 <= found <= most:
        raise Refused(f"{option} has {found} pieces, this model takes 1..{most}: {text[:60]!r}")


@refusing("heatmap", lower="take a shorter --text")
def main(argv: list[str]) -> None:
    """Draw which source pieces each target piece looks at, and say it in a line."""
    command = parser(
        "heatmap",
        "Draw the cross-attention map of a sentence as a PNG: a row for each piece that the model "
        "says, a column for each piece that it reads. A dot (\u00b7) begins a word.",
    )
    add_model_option(command)
    command.add_argument("--text", required=True, help="the sentence to read")
    command.add_argument("--target", help="the sentence to say (default: the model's translation)")
    command.add_argument("--layer", type=number(int, 0), help="from 0 (default: the mean)")
    command.add_argument("--head", type=number(int, 0), help="from 0 (default: the mean)")
    command.add_argument("--out", required=True, type=Path, metavar="FILE.png")
    args = command.parse_args(argv)
    if args.out.suffix.lower() != ".png":
        raise Refused(f"--out must end in .png, got {str(args.out)!r}")
    translator = load_translator(args.model)
    _check_length(translator, "--text", args.text)
    target = args.target
    if target is None:
        target = translate_lines(translator, [args.text])[0]
        if not target:
            raise Refused("the model has no translation for --text: name one with --target")
    _check_length(translator, "the target", target)
    maps, source_pieces, target_pieces = translator.attention_maps(args.text, target)
    weights, title = choose(maps["cross"], args.layer, args.head)
    figure = show_heatmaps(
        weights,
        xlabel="Source pieces (read)",
        ylabel="Target pieces (said)",
        titles=[title],
        xticklabels=source_pieces,
        yticklabels=target_pieces,
        show=False,
    )
    write_atomic(args.out, png_bytes(figure))
    print(read_heatmap(weights, target_pieces, source_pieces))
    to_stderr(f"heatmap: wrote {args.out}")
