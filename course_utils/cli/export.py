"""python -m course_utils export --model DIR --out ONNX_DIR"""

from pathlib import Path

from course_utils.cli.command import add_model_option, parser, refusing
from course_utils.text.text import printable
from course_utils.training.runs.files import new_folder
from course_utils.training.runs.folder import VOCABULARY, load_model, write_vocabulary
from course_utils.training.runs.onnx_files import DECODER, ENCODER, write_onnx


@refusing("export", lower="close other programs")
def main(argv: list[str]) -> None:
    """Write a trained model as ONNX, for programs without PyTorch."""
    command = parser(
        "export",
        "Write a model as ONNX, for example: export --model fra-eng --out fra-eng-onnx. "
        f"{ENCODER} takes src (B, Ts), ids that end in 2 and are filled up with 0, and src_lens "
        f"(B,), and gives memory; {DECODER} takes tgt (B, Tt), ids that begin with 1, memory and "
        "src_lens, and gives the logits (B, V) of the next id, until it is 2. tokenizers reads "
        f"{VOCABULARY}.",
    )
    add_model_option(command)
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder")
    args = command.parse_args(argv)
    model, vocabulary = load_model(args.model)
    new_folder(args.out)
    write_onnx(model, args.out)
    write_vocabulary(args.out, vocabulary)
    size = sum((args.out / name).stat().st_size for name in (ENCODER, DECODER))
    print(printable(f"{args.out}: {ENCODER} and {DECODER}, {size / 1e6:.1f} MB; {VOCABULARY}"))
