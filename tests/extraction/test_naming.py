"""Names and relationships by rules: precise, in any script, in linear time."""

from __future__ import annotations

import time

import pytest

from retain.extraction.naming import named_in, related_in, without_blocks

NAMED = {
    "My colleague Alice is an engineer in Rio": [
        "Alice person role: engineer, city: Rio, relation: colleague"
    ],
    "Bob works at Acme.": ["Bob person company: Acme", "Acme organization "],
    "Please note that Bob currently works for Acme Corp!": [
        "Bob person company: Acme Corp",
        "Acme Corp organization ",
    ],
    "Alice and Bob work at Acme": [
        "Alice person company: Acme",
        "Acme organization ",
        "Bob person company: Acme",
    ],
    "田中 works at 東京電力 and lives in 大阪": [
        "田中 person company: 東京電力, city: 大阪",
        "東京電力 organization ",
    ],
    "Our CEO Olga Petrova founded Вега": [
        "Olga Petrova person founded: Вега, relation: CEO",
        "Вега organization ",
    ],
    "Yesterday Alice moved to Berlin": ["Alice person city: Berlin"],
    "My cat is called Miu. My wife's name is 花子.": [
        "Miu animal relation: cat",
        "花子 person relation: wife",
    ],
    "my name is Ana Sousa, nice to meet you": ["Ana Sousa person relation: the user"],
    "Alice's husband Tom is a teacher at St. Mary from Peru": [
        "Alice person husband: Tom",
        "Tom person role: teacher, company: St Mary, from: Peru",
        "St Mary organization ",
    ],
    "I have a friend named Zoë who works at Café Olé": [
        "Zoë person company: Café Olé, relation: friend",
        "Café Olé organization ",
    ],
    "My cat is called “Miu”": ["Miu animal relation: cat"],
    "Lyon is a city in France": ["Lyon place kind: city, in: France"],
}

TRIPLES = {
    "I live in Rio": ["user --[lives_in]--> Rio"],
    "I'm a nurse at Charité in Berlin": [
        "user --[is_a]--> nurse",
        "user --[works_at]--> Charité",
        "user --[lives_in]--> Berlin",
    ],
    "I think Bob works at Acme": ["Bob --[works_at]--> Acme (confidence: 0.6)"],
    "Alice is married to Bob. Bob is married to Alice.": [
        "Alice --[married_to]--> Bob",
        "Bob --[married_to]--> Alice",
    ],
    "my best friend Łukasz speaks Polish": [
        "user --[best_friend]--> Łukasz",
        "Łukasz --[speaks]--> Polish",
    ],
}

NOTHING = [
    "",
    "The weather is nice. Please call me. I am tired.",
    "Does Bob work at Acme? Bob works at Acme? 田中 works at Acme？",
    "If Bob works at Acme, tell him.",
    "Bob no longer works at Acme. Bob never lives in Rio. Bob doesn't work at Acme.",
    "I wish Alice lives in Rio",
    "Everyone uses Slack. Nobody knows Alice. Something works for Me.",
    "This is a company. It is a city in France. Coffee is a drink.",
    "He works at Acme. She lives in Rio. They work for Acme.",
    "My brother is German. My dentist is great.",
    "bob works at acme",
    "BOB WORKS AT ACME AND LIVES IN RIO",
    "Running works for me. Dinner is a mess.",
    "Engineers work at Acme. A doctor Bob.",
    "Paris is nice; Bob is late.",
    'Summarize this: "My name is Ishmael Brandt. I live in Rio."',
    "Er sagte: „My name is Ishmael“, and «Bob works at Acme» ```Bob works at Acme```",
    "works at Acme",
    "is a an the who and works at",
]


@pytest.mark.parametrize("text", NAMED)
def test_an_entity_has_a_name_a_type_and_what_is_said_of_it(text: str):
    found = [
        f"{one.name} {one.type} {', '.join(f'{k}: {v}' for k, v in one.attributes.items())}"
        for one in named_in(text)
    ]
    assert found == NAMED[text]


@pytest.mark.parametrize("text", TRIPLES)
def test_a_relationship_is_a_triple(text: str):
    assert [str(triple) for triple in related_in(text)] == TRIPLES[text]


@pytest.mark.parametrize("text", NOTHING)
def test_where_nothing_is_stated_of_a_name_nothing_is_found(text: str):
    assert named_in(text) == []
    assert related_in(text) == []


def test_what_the_assistant_says_of_itself_is_not_the_users():
    text = "I live in Rio and my colleague Alice works at Acme"
    assert [str(triple) for triple in related_in(text, user=False)] == [
        "Alice --[works_at]--> Acme"
    ]


@pytest.mark.parametrize(
    "echoed",
    [
        "[Known Entities]\n- Ghost works at Acme [x]\n- My colleague Ghost lives in Rio",
        "You said: [Known Relationships]\n- Ghost works at Acme",
        "> [known entities]\n> - Ghost works at Acme",
        "[Long-term Memory]\n## work\n- Ghost works at Acme\n\n[Recent Memory]\n- Ghost lives here",
        "- Ghost [person] (note: Ghost works at Acme)",
        "- Ghost --[works_at]--> Acme. Ghost works at Acme",
        "<from-memory>\nGhost works at Acme\n\nGhost lives in Rio\n</from-memory>",
        "<FROM-MEMORY>\nGhost works at Acme",
    ],
)
def test_a_context_block_that_was_echoed_teaches_nothing(echoed: str):
    text = without_blocks(f"Bob works at Acme.\n{echoed}\n\nOlga lives in Пермь.")
    assert "Ghost" not in text
    assert "Bob works at Acme" in text
    assert ("Olga lives in Пермь" in text) is ("<FROM" not in echoed)


def test_lists_and_brackets_of_ones_own_stay():
    text = "My team:\n- Alice works at Acme\n- Bob (engineer) [see above]\n\n# Title\n* 東京"
    assert without_blocks(text) == text.replace("- Bob (engineer) [see above]\n", "")


@pytest.mark.parametrize(
    "piece",
    [
        "Alice works at Acme and lives in Rio ",
        "A",
        "My my ",
        "- a [b ",
        "<from-memory>",
        "\n- x [y",
    ],
)
def test_the_time_grows_with_the_length_and_no_faster(piece: str):
    def seconds(text: str) -> float:
        start = time.process_time()
        named_in(text)
        without_blocks(text)
        return time.process_time() - start

    short, long = piece * (8_000 // len(piece)), piece * (80_000 // len(piece))
    seconds(short)
    assert seconds(long) < 40 * seconds(short) + 0.1  # a square would be 100 times as much
