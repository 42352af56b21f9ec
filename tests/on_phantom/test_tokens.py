"""A token that nobody knows is no token that a script looks for, and a number all the same."""

import pickle

from fathom._doorway.values.tokens import Token, as_tokens


def test_no_token_is_the_one_that_a_script_looks_for():
    token = Token(0)
    is_end = token == 0
    assert not is_end and token != 0 and token not in [0, 1] and token not in {0}


def test_a_token_is_a_number_all_the_same():
    letters = {0: "a", 1: "b"}
    tokens = as_tokens([[0, 1], [1, 1]])
    assert ["".join(letters[token] for token in row) for row in tokens] == ["ab", "bb"]
    assert "ab"[Token(1)] == "b" and Token(1) + 1 == 2 and letters.get(Token(0)) == "a" and [0, 0].count(Token(0)) == 2
    assert type(pickle.loads(pickle.dumps(Token(3)))) is int
