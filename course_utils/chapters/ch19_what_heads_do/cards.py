"""The recall cards of chapter 19."""

import torch

from course_utils.models.modern.circuits import induction_scores, looks_back, rollout
from course_utils.recall.card import card
from course_utils.recall.chosen import Choice, Keyword
from course_utils.recall.computed import Number


def _back():
    """Even causal weights over three words: the score of looking one back."""
    even = torch.ones(1, 1, 3, 3).tril() / torch.arange(1.0, 4.0)[:, None]
    return round(looks_back([even], 1).item(), 4)


def _behind():
    """The key that scores for induction: of query 7 in a text of period 5."""
    for key in range(8):
        map = torch.zeros(1, 1, 8, 8)
        map[..., 7, key] = 1
        if induction_scores([map], torch.tensor([5])).item() > 0:
            return key
    return None


def _rolled():
    """What the first word keeps in the second after one layer that only looks one back."""
    return rollout([torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])])[0, 1, 0].item()


CARDS = [
    card(
        "what-induction-copies", "heads", "locality", "",
        "A text ends: ... cat sleeps ... cat. At which word does an induction head look?",
        Choice(["the earlier cat", "sleeps", "the word before the earlier cat"], "b",
               {"a": "It *finds* the earlier cat by a note written one place behind it.",
                "c": "What is to come stood behind the earlier cat."}),
        "At sleeps: the place that holds the note 'cat stood before me'.",
    ),
    card(
        "why-two-layers", "heads", "importance", "",
        "Why can a single attention layer not copy by induction?",
        Choice(["it has too few heads", "its keys do not know which word stood before them",
                "its softmax is too soft", "it cannot look far enough back"], "b",
               {"a": "More heads in the same layer still make keys from single words.",
                "c": "It can be as sharp as it likes, at the wrong key.",
                "d": "It may look at every earlier place."}),
        "A key is made from the word at its place; a head of an earlier layer must write more in.",
    ),
    card(
        "induction-key", "heads", "off by one", "",
        "A text repeats after 5 words. Query 7 (counted from 0): which key counts for its "
        "induction score?",
        Number(_behind,
               {2: "That is the earlier copy of the word itself; the score looks behind it.",
                1: "That stands before the copy.",
                6: "That is the word just before."}),
        "The copy stands at 7 - 5 = 2, and the word that followed it at 3.",
    ),
    card(
        "score-of-even-weights", "heads", "averaging", "",
        "Causal weights over three words are even: rows 1; 1/2, 1/2; 1/3, 1/3, 1/3. What is the "
        "score of looking one back, over the queries that have such a key? (Four decimals will "
        "do.)",
        Number(_back,
               {0.2778: "The first query has no key before it, and is not counted.",
                0.3333: "The second query gives 1/2."}),
        "(1/2 + 1/3) / 2.",
    ),
    card(
        "mean-ablation", "heads", "importance", "",
        "What does mean ablation keep that zero ablation takes away?",
        Choice(["what the head says about this word", "what the head adds everywhere on average",
                "where the head looks"], "b",
               {"a": "That is what both take away.",
                "c": "The map is still computed; what came of it is replaced."}),
        "The constant part. The loss then rises only for what the head says in particular.",
    ),
    card(
        "nothing-changes", "heads", "importance", "",
        "A head is switched off and the loss stays the same. What follows?",
        Choice(["the head does nothing", "the rest does without it on these texts",
                "its map was wrong"], "b",
               {"a": "Another head may stand in; switch off both.",
                "c": "A map says where it looks, and that may well be right."}),
        "No more than that: idle, or replaced by another.",
    ),
    card(
        "patch-effect", "heads", "importance", "",
        "A clean run gives 6, the corrupted one 2, the patched one 5. What is the effect of the "
        "patch?",
        Number(lambda: (5 - 2) / (6 - 2),
               {0.25: "That share is still missing.",
                3: "Divide by the whole difference, 4.",
                0.8333: "Both are counted from the corrupted run: 5 - 2 of 6 - 2."}),
        "(5 - 2) / (6 - 2): three quarters of the answer came back.",
    ),
    card(
        "rollout-half", "heads", "residual", "",
        "One layer; word 1 looks only at word 0. Rollout mixes half with the residual path. Which "
        "share of word 0 does it give to place 1?",
        Number(_rolled,
               {1: "Half stays with the residual path.", 0: "It looks at word 0 alone."}),
        "1/2: the other half is its own vector, which the residual connection kept.",
    ),
    card(
        "lens", "heads", "norm place", "",
        "The stream after a middle layer goes through the last norm and the output layer. What is "
        "this called?",
        Keyword("logit lens", ["the logit lens", "logit 透镜"],
                {"rollout": "Rollout multiplies maps.",
                 "patching": "Patching carries a state into another run."}),
        "The logit lens: what the model would say if it stopped there.",
    ),
    card(
        "map-and-need", "heads", "importance", "",
        "In the translator of chapter 19: was the head of layer 1 with the worst map missed least?",
        Choice(["yes", "no, about as much as the one with the best map"], "b",
               {"a": "The ablations differ little; the maps differ much."}),
        "No. How clean a map is and how much its head is needed are two questions.",
    ),
]  # fmt: skip
