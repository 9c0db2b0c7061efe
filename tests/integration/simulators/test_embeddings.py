import pytest

from simulators.ai.embeddings import embed


def nearness(first, second, dimensions=1_536):
    vectors = embed(first, dimensions), embed(second, dimensions)
    return sum(a * b for a, b in zip(*vectors, strict=True))


NEAR = [
    ("Strength training for people over forty", "Training strength after forty: a plan for people"),
    ("How to bake sourdough bread at home", "Baking sourdough bread at home, step by step"),
    ("朝の光の中でコーヒーを飲む", "朝の光の中でコーヒーを飲む。"),
]
FAR = [
    ("Strength training for people over forty", "Sourdough bread needs rye flour and time"),
    ("How to bake sourdough bread at home", "The night train to the islands leaves at nine"),
    ("mortgage rates and open houses", "film photography in a darkroom"),
]


@pytest.mark.parametrize(("first", "second"), NEAR)
def test_similar_texts_are_near_each_other(first, second):
    assert nearness(first, second) > 0.4


@pytest.mark.parametrize(("first", "second"), FAR)
def test_dissimilar_texts_are_not_near_each_other(first, second):
    assert abs(nearness(first, second)) < 0.12


def test_unrelated_texts_have_no_bias_in_few_dimensions():
    found = [nearness(first, second, 32) for first, _ in FAR for _, second in FAR]

    assert abs(sum(found)) / len(found) < 0.2


def test_case_does_not_change_a_vector():
    assert nearness("Strength Training", "strength training") == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "!!!", "the of and", "\u200b"])
def test_vector_of_a_text_without_words_has_length_one(text):
    assert nearness(text, text) == pytest.approx(1)
