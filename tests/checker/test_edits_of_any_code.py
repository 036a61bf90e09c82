"""Whatever Python a learner writes, each small change of it can be made, and is undone."""

import ast
import contextlib

import pytest

from course_utils.checker import check
from course_utils.checker.edits import Code

STRANGE = {
    "conditions": """
        odd = [t for i, t in enumerate(x) if i % 2 if t > 1]
        even = {t: i for i, t in enumerate(x) if not i % 2 and t > 1}
        return sum(1 for t in x if t > 2) + len(odd) + len({t for t in x if t in even})""",
    "stars and slices": """
        first, *rest = x
        both = [*rest, first, *x[::-1]]
        return max(*both, key=lambda t: -t if t else 0), {**{"a": both[1:-1]}}""",
    "walrus, try and with": """
        with open("/dev/null") as file:
            try:
                if (n := len(x)) > 2 and file:
                    return x[n // 2]
            except (IndexError, ValueError) as error:
                raise TypeError(f"{n!r:>{n}} {error}") from error
            else:
                pass
            finally:
                del file
        return None""",
    "loops that end otherwise": """
        while x:
            for a, (b, c) in zip(x, [(1, 2)]):
                if a == b:
                    continue
                break
            else:
                x = x[1:]
            x = x[1:] if x[0] < 3 <= len(x) else []
        assert not x, "left"
        return x""",
    "generators and nested functions": """
        def inner(y, *more, k=2, **other):
            nonlocal x
            yield from (t ** k for t in y if t)
            x = [*more]
        class Kept:
            value: int = 3
            @property
            def twice(self):
                return self.value * 2
        global seen
        seen = Kept().twice
        return list(inner(x, 1, k=3))""",
    "match": """
        match x:
            case [1, *rest] if rest:
                return rest
            case {"a": 1} | None:
                return 0
            case _:
                return 1""",
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE)
def test_every_edit_of_any_construct_can_be_made_and_undone(body):
    tree = ast.parse(f"def f(x):{body}")
    code = Code(tree.body[0], {})
    before = ast.dump(code.tree)
    made = [e for rank in range(3) for e in code.edits(rank)] + list(code.together())
    assert len(made) > 5
    for edit in made:
        with contextlib.suppress(SyntaxError, ValueError, TypeError):  # what does not compile
            code.answer(edit)
        assert ast.dump(code.tree) == before, edit.words


def shifted(sentence, bos, eos):
    return [bos] + sentence, [t for i, t in enumerate(sentence) if i > 1] + [eos, bos]


def test_a_condition_in_a_comprehension_is_judged_like_other_code():
    assert check(shifted).status == "wrong"
