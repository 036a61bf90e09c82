"""Many lines at once are what each of them is alone."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from test_text import languages, lines, odd

from course_utils.text.numbering import Lines
from course_utils.text.text import tokenize
from course_utils.text.vocab import Vocab
from course_utils.text.words import Words

few = settings(deadline=None, max_examples=100, derandomize=True)


@few
@given(texts=st.lists(odd | lines, max_size=5), lang=languages)
def test_counts_and_ids_are_those_of_each_line(texts, lang):
    cut = [tokenize(text, lang) for text in texts]
    many = Lines(iter(texts), lang)
    assert many.counts() == Counter(token for tokens in cut for token in tokens)
    vocab = Vocab(cut, min_freq=2)
    assert many.ids(vocab) == [vocab.encode(tokens) for tokens in cut]
    assert many.ids(vocab) == [Words(vocab, lang).encode(text) for text in texts]
    assert many.ids(vocab, [1], (7, 2)) == [[1, *vocab.encode(tokens), 7, 2] for tokens in cut]
