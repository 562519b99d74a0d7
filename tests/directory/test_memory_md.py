from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain.directory.memory_md import Document, Fact
from retain.errors import InvalidType, InvalidValue, RetainError
from retain.models import one_line

relaxed = settings(max_examples=150)

SAMPLE = """# Agent Memory

## preferences
- Preferred language: Python
- Dark mode: enabled

## personal
- Works at Acme Corp
"""


def pairs(document: Document) -> list[tuple[str, str]]:
    return [(fact.category, fact.text) for fact in document.facts()]


def read(text: str) -> list[tuple[str, str]]:
    return pairs(Document.parse(text))


def lines_of(text: str) -> list[str]:
    """The lines without their ends and byte order marks, told apart the plain way."""
    lines = text.lstrip("\ufeff").split("\n")
    return [line.strip("\r\ufeff") for line in (lines if lines[-1] else lines[:-1])]


def own_lines(text: str) -> list[str]:
    facts = {fact.position for fact in Document.parse(text).facts()}
    return [line for number, line in enumerate(lines_of(text)) if number not in facts]


def is_subsequence(part: list[str], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in part)


# -- strategies ------------------------------------------------------------------------------

ODD = ["#", "##", "###", "-", "- ", "*", "* ", "+ ", "--", "---", "`", "```", "~~~", "<!--", "-->"]
ODD += [" ", "  ", "   ", "    ", "\t", "\r", "\u2028", "\x85", "\x0b", "\x1c", "\u3000", "\u00a0"]
ODD += ["\ufeff", "\0", "a", "x y", "1. ", "2) ", "general", "Agent Memory", "東京", "é", "e\u0301"]
odd_text = st.lists(st.sampled_from(ODD), max_size=8).map("".join)
any_text = st.text(max_size=30) | odd_text
words = any_text.filter(one_line)
categories = st.sampled_from(["general", "personal", "a #", "#", "C#", "## b", "```"]) | words

line = st.one_of(
    st.sampled_from(["", "# Agent Memory", "## general", "## personal", "## personal ##", "##"]),
    st.sampled_from(
        ["# Other", "### sub", "```", "~~~~", "```py", "<!--", "-->", "- b -->", "---"]
    ),
    st.sampled_from(["prose", "- a", "- b", "* c", "+ d", " - e", "  - f", "   - g", "    - h"]),
    st.sampled_from(["\ufeff- bom", "\ufeff# Agent Memory", "\ufeff- - -", "\ufeff  - b"]),
    st.sampled_from(["-", "  -", "1. one", "  text", "\t- tab", "-   wide", "- <!-- x", "  * s"]),
    odd_text.map(lambda text: text.replace("\n", "")),
    st.text(max_size=12).map(lambda text: text.replace("\n", "")),
)
ends = st.sampled_from(["\n", "\n", "\r\n", "\n\n"])
files = st.builds(
    lambda bom, lines, last: bom + "".join(a + b for a, b in lines) + last,
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(st.tuples(line, ends), max_size=14),
    line | st.just(""),
)
edits = st.lists(
    st.one_of(
        st.tuples(st.just("add"), categories, words),
        st.tuples(st.just("replace"), st.integers(0, 50), words),
        st.tuples(st.just("remove"), st.sets(st.integers(0, 20), max_size=4), st.none()),
    ),
    max_size=8,
)


def edit(document: Document, change: tuple) -> Counter[tuple[str, str]]:
    """Make one change; what facts there should be then."""
    kind, where, text = change
    facts = document.facts()
    expected = Counter((fact.category, fact.text) for fact in facts)
    if kind == "add":
        document.add(where, text)
        expected[one_line(where), one_line(text)] += 1
    elif kind == "replace" and facts:
        fact = facts[where % len(facts)]
        document.replace(fact.position, text)
        expected[fact.category, fact.text] -= 1
        expected[fact.category, one_line(text)] += 1
    elif kind == "remove" and facts:
        doomed = {facts[n % len(facts)] for n in where}
        document.remove(fact.position for fact in doomed)
        expected -= Counter((fact.category, fact.text) for fact in doomed)
    return +expected


# -- properties ------------------------------------------------------------------------------


@relaxed
@given(files | st.text())
@example("")
@example("\ufeff")
@example("\n")
@example("- a\r\n- b\n- c")
def test_a_document_that_is_not_edited_renders_byte_for_byte(text):
    assert Document.parse(text).render() == text


def check_edits(text: str, changes: list[tuple]) -> None:
    document = Document.parse(text)
    for change in changes:
        expected = edit(document, change)
        assert Counter(pairs(document)) == expected
        assert read(document.render()) == pairs(document)  # in the order of the file, too
    after = lines_of(document.render())
    own = own_lines(text)
    if any(kind == "remove" for kind, _, _ in changes):
        # a removal may take an emptied category's heading and one empty line along
        own = [line for line in own if line and not line.lstrip(" ").startswith("##")]
    assert is_subsequence(own, after)


@relaxed
@given(files, edits)
@example("<!--\n- a\n", [("add", "general", "x --> y"), ("replace", 0, "-->")])
@example("```\n- a\n", [("add", "general", "```"), ("add", "```", "```")])
@example("- a\n  - b\n", [("remove", {0}, None), ("add", "general", "c")])
@example("- p\n - i\n  - f", [("remove", {1}, None)])
@example("* a", [("replace", 0, "* *")])
@example("   ", [("add", "general", "a")])
def test_edits_do_what_they_say_and_the_persons_own_lines_survive(text, changes):
    check_edits(text, changes)


@pytest.mark.slow
@settings(max_examples=400)
@given(files, edits)
def test_edits_do_what_they_say_and_the_persons_own_lines_survive_long(text, changes):
    check_edits(text, changes)


@relaxed
@given(files, categories, words)
def test_what_is_added_is_read_back_on_one_line(text, category, fact):
    document = Document.parse(text)
    position = document.add(category, fact)
    wanted = (one_line(category), one_line(fact))
    assert Fact(*wanted, position) in document.facts()
    assert wanted in read(document.render())


@relaxed
@given(st.lists(st.tuples(categories, words)))
def test_a_file_built_from_facts_holds_them_by_category(facts):
    document = Document.build(facts)
    found = read(document.render())
    assert document.render().startswith("# Agent Memory\n")
    for category in {one_line(category) for category, _ in facts}:
        expected = [one_line(text) for name, text in facts if one_line(name) == category]
        assert [text for name, text in found if name == category] == expected
    assert len(found) == len(facts)


@relaxed
@given(files, st.lists(st.tuples(categories, words), min_size=1, max_size=5))
@example("## general\n## general\n", [("general", "0")])
def test_categories_that_come_and_go_do_not_make_the_file_longer(text, facts):
    document = Document.parse(text)
    sizes = []
    for _ in range(20):  # a heading that the file had twice goes in the second round
        positions = [document.add(category, fact) for category, fact in facts]
        document.remove(positions)
        sizes.append(len(document.render()))
    assert len(set(sizes[-4:])) == 1


# -- reading ---------------------------------------------------------------------------------


def test_facts_are_read_by_category_in_the_order_of_the_file():
    document = Document.parse(SAMPLE)
    assert document.facts() == [
        Fact("preferences", "Preferred language: Python", 3),
        Fact("preferences", "Dark mode: enabled", 4),
        Fact("personal", "Works at Acme Corp", 7),
    ]


def test_a_fact_under_no_category_is_general():
    assert read("- a\n## x\n- b\n# Notes\n- c\n##\n- d\n") == [
        ("general", "a"),
        ("x", "b"),
        ("general", "c"),
        ("general", "d"),
    ]


def test_a_sub_heading_does_not_change_the_category():
    assert read("## x\n- a\n### deeper\n- b\n") == [("x", "a"), ("x", "b")]


@pytest.mark.parametrize(
    "line", ["- a", "* a", "+ a", " - a", "   - a", "-   a  ", "-\ta", "- a\r"]
)
def test_every_bullet_a_person_types_makes_a_fact(line):
    assert read(f"## x\n{line}\n") == [("x", "a")]


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "-a",
        "-",
        "- ",
        "    - a",
        "\t- a",
        "1. a",
        "> - a",
        "---",
        "- - -",
        "* * *",
        "<!-- - a -->",
        "<!--\n- a\n-->",
        "<!-- - a\n- b -->",
        "```\n- a\n```",
        "~~~ text\n- a\n## y\n~~~~",
        "```\n- a\n~~~\n- b\n```",
        "``` \n\n- a\n\n```  ",
        "```\n```py\n- a\n```",
        "#- a",
    ],
)
def test_other_lines_are_no_facts(line):
    assert read(f"## x\n{line}\n- z\n") == [("x", "z")]


def test_sub_bullets_belong_to_the_fact_above_them():
    text = "- a\n  - b\n    - c\n\n  - d\n- e\n1. f\n   - g\n"
    assert read(text) == [("general", "a"), ("general", "e")]


def test_an_indented_list_without_a_parent_is_a_list_of_facts():
    assert read("## x\n  - a\n  - b\n\nprose\n\n  - c\n") == [("x", "a"), ("x", "b"), ("x", "c")]


@pytest.mark.parametrize(
    "between", ["", "lazy\n", "\n", "  text\n", "\n  text\n\n", "  ```\n  x\n  ```\n"]
)
def test_a_sub_bullet_stays_one_below_other_lines_of_its_fact(between):
    assert read(f"- a\n{between}  - b\n") == [("general", "a")]


@pytest.mark.parametrize(
    "between", ["\nprose\n", "```\nx\n```\n", "---\n", "\n<!-- x -->\n", "### x\n"]
)
def test_what_ends_a_list_ends_it_for_the_indented_bullets_below(between):
    assert read(f"- a\n{between}  - b\n") == [("general", "a"), ("general", "b")]


@pytest.mark.parametrize("opener", ["```", "~~~", "```python", "<!--", "<!-- note", "````\n```"])
def test_a_fence_or_comment_left_open_hides_nothing(opener):
    assert read(f"## x\n{opener}\n- a\n\n## y\n- b\n") == [("x", "a"), ("y", "b")]


@pytest.mark.parametrize(
    ("heading", "category"),
    [
        ("## a b", "a b"),
        ("##  a \t b  ", "a b"),
        ("   ## a", "a"),
        ("## a ##", "a"),
        ("## C#", "C#"),
        ("## # ##", "#"),
        ("## 東京", "東京"),
        ("##a", "general"),
        ("    ## a", "general"),
    ],
)
def test_categories_are_read_as_markdown_reads_headings(heading, category):
    assert read(f"{heading}\n\n- x\n") == [(category, "x")]


@pytest.mark.parametrize("title", ["# Agent Memory", "# agent memory  ", " #  AGENT  MEMORY #"])
def test_the_title_is_found_in_any_case(title):
    assert Document.parse(f"\ufeffhello\n{title}\r\n- a\n").has_title


@pytest.mark.parametrize(
    "title", ["", "Agent Memory", "## Agent Memory", "```\n# Agent Memory\n```"]
)
def test_other_lines_are_no_title(title):
    assert not Document.parse(f"{title}\n- a\n").has_title


def test_a_byte_order_mark_is_no_part_of_a_line():
    text = "\ufeff# Agent Memory\n- a\n\ufeff# Agent Memory\n\ufeff- \ufeffb\n"
    assert read(text) == [("general", "a"), ("general", "\ufeffb")]


def test_lines_end_at_newlines_only():
    assert read("- a\u2028- b\x0c- c\x85d\r- e\r\n- f") == [
        ("general", "a - b - c d - e"),
        ("general", "f"),
    ]


# -- writing ---------------------------------------------------------------------------------


def test_a_fact_goes_below_the_last_one_of_its_category():
    document = Document.parse(SAMPLE)
    document.add("preferences", "Likes\ntea")
    assert document.render() == SAMPLE.replace("enabled\n", "enabled\n- Likes tea\n")


def test_a_new_category_goes_to_the_end_after_one_blank_line():
    document = Document.parse(SAMPLE)
    document.add("technical", "Uses PostgreSQL")
    document.add("technical", "Prefers pytest")
    assert document.render() == (SAMPLE + "\n## technical\n- Uses PostgreSQL\n- Prefers pytest\n")


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_blank_line_that_is_there_already_is_enough(end):
    document = Document.parse("# Agent Memory\n\n## a\n- x" + end)
    document.add("b", "y")
    assert document.render().rstrip("\n") == "# Agent Memory\n\n## a\n- x\n\n## b\n- y"


@pytest.mark.parametrize("blank", ["", "\ufeff", "\n \n"])
def test_a_document_without_a_visible_line_gets_its_title_first(blank):
    document = Document.parse(blank)
    document.add("general", "x")
    assert document.has_title
    assert [text for text in lines_of(document.render()) if text.strip()] == [
        "# Agent Memory",
        "## general",
        "- x",
    ]


def test_the_title_can_be_put_on_top_of_a_persons_file():
    document = Document.parse("\ufeff- a\r\n")
    document.add_title()
    document.add_title()
    assert document.render() == "\ufeff# Agent Memory\r\n\r\n- a\r\n"


def test_adding_to_general_makes_its_heading_if_there_is_none():
    document = Document.parse("# Agent Memory\n- a\n")
    document.add("general", "b")
    assert document.render() == "# Agent Memory\n- a\n\n## general\n- b\n"


def test_a_fact_goes_under_the_last_heading_of_its_name_above_its_sub_headings():
    document = Document.parse("## a\n- x\n## b\n## a\nnotes\n\n### deeper\n- y\n")
    document.add("a", "z")
    assert document.render() == "## a\n- x\n## b\n## a\nnotes\n- z\n\n### deeper\n- y\n"


def test_a_fact_does_not_part_another_from_what_hangs_on_it():
    text = "## a\n- x\n  more on x\n  - sub\nand more\n\nprose\n"
    document = Document.parse(text)
    document.add("a", "y")
    assert document.render() == text.replace("and more\n", "and more\n- y\n")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_new_lines_end_as_the_files_lines_do(end):
    document = Document.parse(SAMPLE.replace("\n", end))
    document.add("new", "fact")
    assert document.render() == (SAMPLE + "\n## new\n- fact\n").replace("\n", end)


def test_a_file_without_a_newline_at_its_end_stays_so():
    document = Document.parse("# Agent Memory\n## a\n- x")
    document.add("a", "y")
    assert document.render() == "# Agent Memory\n## a\n- x\n- y"


def test_a_replaced_line_keeps_its_place_and_its_bullet():
    document = Document.parse("## a\n- x\n *  old  \r\n- z\n")
    document.replace(document.facts()[1].position, "new\ntext")
    assert document.render() == "## a\n- x\n *  new text\r\n- z\n"


def test_replacing_a_text_by_itself_changes_no_byte():
    document = Document.parse("-   two  words  ")
    document.replace(0, "two words")
    assert document.render() == "-   two  words  "


@pytest.mark.parametrize("text", ["# x", "## x", "- y", "- -", "--", "* *", "```", "<!-- x", "+ "])
def test_a_text_that_looks_like_markdown_is_a_text(text):
    document = Document.build([("a", text)])
    assert read(document.render()) == [("a", one_line(text))]
    document = Document.parse("## a\n* x\n")
    document.replace(1, text)
    assert read(document.render()) == [("a", one_line(text))]


def test_a_text_that_would_close_an_open_comment_does_not():
    document = Document.parse("## a\n<!-- to do\n- x\n- y\n")
    document.add("a", "1 --> 2")
    document.replace(document.facts()[0].position, "x --> y")
    document.add("-->", "z")
    assert read(document.render()) == [
        ("a", "x --> y"),
        ("a", "y"),
        ("a", "1 --> 2"),
        ("-->", "z"),
    ]


def test_removing_a_categorys_last_fact_removes_its_heading():
    document = Document.parse(SAMPLE)
    document.remove([3, 4])
    assert document.render() == "# Agent Memory\n\n## personal\n- Works at Acme Corp\n"
    document.remove(7)
    assert document.render() == "# Agent Memory\n\n"


@pytest.mark.parametrize("own", ["prose", "### sub", "<!-- keep -->", "- a\n### sub\n- b"])
def test_a_heading_stays_while_anything_stands_under_it(own):
    document = Document.parse(f"## x\n- gone\n{own}\n\n## y\n")
    document.remove(1)
    assert document.render() == f"## x\n{own}\n\n## y\n"


def test_an_empty_heading_of_the_persons_stays_when_other_facts_go():
    document = Document.parse("## to do\n\n## x\n- a\n")
    document.remove(3)
    assert document.render() == "## to do\n\n"


def test_a_fact_with_sub_bullets_leaves_its_bullet_so_that_they_stay_what_they_are():
    document = Document.parse("## x\n- a\n- secret\n  - sub\n- b\n")
    document.remove(2)
    assert document.render() == "## x\n- a\n-\n  - sub\n- b\n"
    assert read(document.render()) == [("x", "a"), ("x", "b")]


def test_indented_prose_below_a_removed_fact_does_not_hang_on_another():
    document = Document.parse("- a\n- secret\n  more on it\n")
    document.remove(1)
    assert document.render() == "- a\n-\n  more on it\n"


def test_a_fact_that_holds_the_next_one_out_of_a_list_leaves_its_bullet():
    document = Document.parse("- a\n - secret\n  - b\n")
    document.remove(1)
    assert document.render() == "- a\n -\n  - b\n"
    assert read(document.render()) == [("general", "a"), ("general", "b")]


# -- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", " ", "\n", "\u3000\u2028"])
def test_blank_texts_and_categories_are_refused(blank):
    document = Document.parse(SAMPLE)
    with pytest.raises(InvalidValue, match="text is blank"):
        document.add("a", blank)
    with pytest.raises(InvalidValue, match="category is blank"):
        document.add(blank, "a")
    with pytest.raises(InvalidValue, match="text is blank"):
        document.replace(3, blank)
    with pytest.raises(InvalidType, match="text is a NoneType"):
        document.add("a", None)
    assert document.render() == SAMPLE


def test_a_position_that_is_no_facts_is_refused_before_anything_is_changed():
    document = Document.parse(SAMPLE)
    with pytest.raises(InvalidValue, match="position 2 is no fact"):
        document.remove([3, 2])
    with pytest.raises(RetainError, match="take one from facts"):
        document.replace(99, "x")
    assert document.render() == SAMPLE
    document.remove(3)
    with pytest.raises(InvalidValue, match="position 3"):
        document.remove(3)


def test_positions_stay_good_through_edits():
    document = Document.parse(SAMPLE)
    added = document.add("preferences", "new")
    document.remove([3])
    document.replace(7, "Works at Globex")
    document.replace(added, "newer")
    assert document.facts() == [
        Fact("preferences", "Dark mode: enabled", 4),
        Fact("preferences", "newer", added),
        Fact("personal", "Works at Globex", 7),
    ]


# -- size ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "<!--\n" * 40_000,
        "```a\n" * 40_000,
        "```\n" * 40_001,
        "\n".join("`" * (1_000 - n) + "a" for n in range(1_000)),
        "- " * 100_000,
        " " * 200_000 + "x",
        "-" * 200_000 + "x",
        "## " + "# " * 100_000 + "x",
        "- a\n  - b\n" * 20_000,
    ],
    ids=["comments", "fences", "blocks", "runs", "bullets", "spaces", "dashes", "signs", "lists"],
)
def test_no_file_takes_more_than_linear_time(text):
    started = time.perf_counter()
    document = Document.parse(text)
    document.remove(fact.position for fact in document.facts())
    document.add("general", "x")
    assert document.facts()[-1].text == "x"
    assert time.perf_counter() - started < 10  # quadratic: minutes


def test_five_thousand_facts_are_added_and_removed_in_a_moment():
    started = time.perf_counter()
    document = Document.build((f"category {n % 50}", f"fact {n}") for n in range(5_000))
    text = document.render()
    document.remove(fact.position for fact in document.facts()[::2])
    assert len(document.facts()) == 2_500
    document = Document.parse(text)
    for fact in document.facts()[:500]:
        document.replace(fact.position, "changed")
    assert document.render().count("changed") == 500
    assert time.perf_counter() - started < 10


@relaxed
@given(files, edits)
def test_a_text_that_is_rendered_between_edits_is_the_same_as_one_rendered_at_the_end(
    text, changes
):
    often, once = Document.parse(text), Document.parse(text)
    for number, change in enumerate(changes):
        positions = [fact.position for fact in often.facts()]
        for document in (often, once):
            if positions and number % 3 == 1:
                document.remove(positions[number % len(positions)])
            elif positions and number % 3 == 2:
                document.replace(positions[number % len(positions)], f"changed {number}")
            else:
                document.add(f"category {number % 4}", f"fact {number} {change!r}"[:80])
        often.render()
    assert often.render() == once.render()
