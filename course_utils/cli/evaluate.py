"""python -m course_utils evaluate --model DIR --src FILE --ref FILE"""

from course_utils.cli.command import add_decoding_options, parser, refusing, to_stderr
from course_utils.text.text import normalise
from course_utils.training.metrics import bleu, chrf, measure_for
from course_utils.training.runs.lines import read_lines, translate_texts
from course_utils.training.runs.processes import best_device
from course_utils.training.runs.refusals import Refused
from course_utils.training.translation import load_translator


def _lines_of(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            return list(read_lines(file, lambda message: to_stderr(f"evaluate: {path}: {message}")))
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from None


@refusing("evaluate", lower="take a smaller --batch-size")
def main(argv: list[str]) -> None:
    """Translate a file and print its BLEU and chrF against a reference."""
    command = parser(
        "evaluate",
        "Translate a file, as `translate` does, and compare the result with a reference, line by "
        "line, for example: evaluate --model fra-eng --src en.txt --ref fr.txt. SacreBLEU (on the "
        "tokens that suit the script of the reference) and chrF2, cased, on the text as it "
        "stands, each with its signature.",
    )
    add_decoding_options(command)
    command.add_argument("--src", required=True, metavar="FILE", help="one sentence a line")
    command.add_argument(
        "--ref", required=True, metavar="FILE", help="one right translation a line"
    )
    args = command.parse_args(argv)
    sources, references = _lines_of(args.src), _lines_of(args.ref)
    if len(sources) != len(references) or not sources:
        raise Refused(
            f"{args.src} has {len(sources)} lines and {args.ref} has {len(references)}: line n of "
            "one must translate line n of the other, and there must be at least one"
        )
    translator = load_translator(args.model, best_device())
    hypotheses = translate_texts(translator, sources, beam=args.beam, batch_size=args.batch_size)
    scores = bleu(hypotheses, references, lowercase=False), chrf(hypotheses, references)
    if empty := [str(n) for n, line in enumerate(references, start=1) if not line.strip()]:
        to_stderr(
            f"evaluate: {args.ref} is empty in line {', '.join(empty[:5])}"
            f"{f' and {len(empty) - 5} more' if len(empty) > 5 else ''}: chrF2 leaves such lines "
            "out, and for BLEU every word there is wrong"
        )
    if sum(line.endswith(" .") for line in references) > len(references) / 2:
        to_stderr(
            f"evaluate: {args.ref} is cut into words, with a space before the full stop: its BLEU "
            "does not compare with that of plain text"
        )
    if odd := sum(normalise(line) != " ".join(line.split()) for line in references):
        to_stderr(
            f"evaluate: {odd} of the lines of {args.ref} have curly apostrophes, or accents apart "
            "from their letters (NFD); no model of `train` writes so: these words count as wrong"
        )
    if measure_for(references) != "BLEU":
        to_stderr(
            "evaluate: no line of the reference has four words, so BLEU is 0 whatever the "
            "translations are: look at chrF2"
        )
    for score in scores:
        print(f"{score.name} {score:.2f}  {score.signature}")
