"""What a reader of the site sees under an exercise: hints, the solution, one answer that is wrong.

In a notebook `hint`, `solution` and `check` show the same, and more.
"""

from html import escape

from course_utils.checker import catalogue, source
from course_utils.checker.exercise import Exercise
from course_utils.checker.judge import judge_answer
from course_utils.checker.report import Result

PATIENCE = 60.0  # seconds that a wrong answer may take on a busy machine


def with_help(cells: list[dict]) -> list[dict]:
    """The cells of a notebook with a cell of help after the code cell of each exercise."""
    exercises, result = {e.name: e for e in catalogue()}, []
    asked = [exercises.get(cell["metadata"].get("exercise")) for cell in cells]
    known = [e for e in asked if e and e.wrong_answers]
    worked = next((e for e in known if "def " in source.solved(e)), known[0] if known else None)
    for cell in cells:
        result.append(cell)
        exercise = exercises.get(cell["metadata"].get("exercise"))
        if exercise is None or cell["cell_type"] != "code":
            continue
        text = folds(exercise)
        if exercise is worked:
            text = f"{wrong_answer(exercise)}\n\n{text}"
        below = {"id": f"{cell.get('id', 'x')}-help"[-64:], "cell_type": "markdown", "metadata": {}}
        result.append({**below, "source": text})
    return result


def folds(exercise: Exercise) -> str:
    """Hints one by one, then the solution, each to be unfolded."""
    hints = [
        f"<details><summary>Hint {n} of {len(exercise.hints)}</summary>\n\n{hint}\n\n</details>"
        for n, hint in enumerate(exercise.hints, 1)
    ]
    code = source.solved(exercise)
    solution = f"<details><summary>Solution</summary>\n\n```python\n{code}\n```\n\n</details>"
    return "\n\n".join([*hints, solution])


def wrong_answer(exercise: Exercise) -> str:
    """What `check` says to the first of the wrong answers that are known."""
    wrong = exercise.wrong_answers[0]
    said = repr(Result(exercise, judge_answer(exercise, wrong.answer, PATIENCE)))
    return (
        f"*What `check` says to a wrong answer*: here {wrong.name}.\n\n"
        f'<pre class="said">{escape(said)}</pre>'
    )
