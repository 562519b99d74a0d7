"""What a model could read as structure becomes readable text, and nothing else changes."""

from __future__ import annotations

import random
import re
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.guard.sanitizers import defang_delimiters, strip_surrogates

BREAKS = ["\n", "\r", "\r\n", "\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e"]


def stays(text: str) -> bool:
    return defang_delimiters(text) == text


# -- section headers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "harmless"),
    [
        ("--- Label ---", "— Label —"),
        ("--- End of conversation ---", "— End of conversation —"),
        ("---Label---", "— Label —"),
        ("---  指示  ---", "— 指示 —"),
        ("--- a --- b ---", "— a --- b —"),
        ("--- ✂ ---  ", "— ✂ —  "),
        ("-\u200b-- x ---", "— x —"),
        ("\u200b\u00a0--- x ---", "\u200b\u00a0— x —"),
        ("> --- x ---", "> — x —"),
    ],
)
def test_a_section_header_gets_em_dashes(header: str, harmless: str):
    assert defang_delimiters(header) == harmless
    for line_break in BREAKS:
        assert defang_delimiters(f"a{line_break}{header}{line_break}b") == (
            f"a{line_break}{harmless}{line_break}b"
        )


@pytest.mark.parametrize("indent", ["", " ", "  ", "   ", "\t", " \t", "\t\t\t"])
def test_an_indentation_of_up_to_three_is_kept(indent: str):
    assert defang_delimiters(f"{indent}--- x ---") == f"{indent}— x —"
    assert defang_delimiters(f"{indent}```") == f"{indent}'''"


@pytest.mark.parametrize("indent", ["    ", "     ", " \t  ", "\t\t\t\t"])
def test_headers_and_fences_indented_further_are_code_and_stay(indent: str):
    assert stays(f"{indent}--- x ---")
    assert stays(f"{indent}--- a/file.py")
    assert stays(f"{indent}```python")
    assert stays(f"{indent}~~~")


@pytest.mark.parametrize(
    "text",
    [
        "a --- b",
        "a --- b ---",
        "--- a/file.py\n+++ b/file.py",
        "---",
        "----",
        "------------",
        "---\ntitle: x\n---",
        "--- --- ---",
        "--- | ---",
        "--- | :---: | ---",
        "| --- | --- |",
        "---- Label ----",
        "--- Label ----",
        "---- Label ---",
        "-- Label --",
        "——— Label ———",
    ],
)
def test_other_dashes_stay(text: str):
    assert stays(text)


# -- chat templates -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marker", "harmless"),
    [
        ("[INST]", "(INST)"),
        ("[/INST]", "(/INST)"),
        ("[ /inst ]", "( /inst )"),
        ("[TOOL_CALLS]", "(TOOL_CALLS)"),
        ("<<SYS>>", "(SYS)"),
        ("<</SYS>>", "(/SYS)"),
        ("<|im_start|>", "(im_start)"),
        ("<|im_end|>", "(im_end)"),
        ("<|system|>", "(system)"),
        ("<|user|>", "(user)"),
        ("<|eot_id|>", "(eot_id)"),
        ("<|start_header_id|>", "(start_header_id)"),
        ("<|end_header_id|>", "(end_header_id)"),
        ("<|reserved_special_token_7|>", "(reserved_special_token_7)"),
        ("<｜Assistant｜>", "(Assistant)"),
        ("<system>", "(system)"),
        ("</system>", "(/system)"),
        ("<SYSTEM >", "(SYSTEM )"),
        ("<system/>", "(system/)"),
        ('<system role="x">', '(system role="x")'),
        ("<system\nrole = 'x'>", "(system\nrole = 'x')"),
        ("<system-reminder>", "(system-reminder)"),
        ("<assistant>", "(assistant)"),
        ("</assistant>", "(/assistant)"),
        ("</user>", "(/user)"),
        ("<start_of_turn>", "(start_of_turn)"),
        ("<end_of_turn>", "(end_of_turn)"),
        ("[IN\u200bST]", "(IN\u200bST)"),
        ("<\u200bsys\u00adtem>", "(\u200bsys\u00adtem)"),
        ("<|im\u200b_start|>", "(im\u200b_start)"),
    ],
)
def test_role_markers_of_chat_templates_get_round_brackets(marker: str, harmless: str):
    assert defang_delimiters(marker) == harmless
    assert defang_delimiters(f"so {marker}{marker} it is") == f"so {harmless}{harmless} it is"
    assert defang_delimiters(f"    {marker}") == f"    {harmless}"


@pytest.mark.parametrize("role", ["user", "human", "developer", "tool"])
def test_the_tag_of_a_role_is_a_marker_where_a_turn_can_start(role: str):
    assert defang_delimiters(f"<{role}>hi") == f"({role})hi"
    assert defang_delimiters(f"a\r  > <{role}>hi</{role}>") == f"a\r  > ({role})hi(/{role})"
    assert defang_delimiters(f"x</assistant><{role}>") == f"x(/assistant)({role})"
    assert defang_delimiters(f'<{role} name="x">hi') == f'({role} name="x")hi'
    assert stays(f"run login <{role}> now")


@pytest.mark.parametrize(
    "text",
    [
        "<start>",
        "[user] in prose and code",
        "[system]",
        "users[user]",
        "ssh <user>@host, or https://host/<user>/repo",
        "List<User> users",
        "x<system",
        "if x<system and y>z:",
        "x < system > y",
        "a<b>c</b>",
        "<|x|> and <| xs |>",
        "f <| a |> g",
        "<systemd>",
        "[INSTALL]",
        "[INST",
        "<system role=",
        "<|im_start",
        "<SYS>",
    ],
)
def test_what_only_looks_like_a_role_marker_stays(text: str):
    assert stays(text)


def test_markers_in_each_other_are_all_rewritten():
    assert defang_delimiters("<system a=<system b=[INST]>>") == "(system a=(system b=(INST))>"
    assert defang_delimiters("<<<SYS>>>") == "<(SYS)>"
    assert defang_delimiters("[[INST]INST]") == "[(INST)INST]"
    assert defang_delimiters("<|im_<|im_end|>start|>") == "<|im_(im_end)start|>"


# -- speaker labels -----------------------------------------------------------------------

LABELS = """
User Assistant System Human Tool Developer
Usuário Usuaria Assistente Sistema Humano Humana Ferramenta Desenvolvedor Desenvolvedora
""".split()


@pytest.mark.parametrize("label", LABELS)
def test_a_speaker_label_loses_its_colon(label: str):
    forms = {
        label,
        label.upper(),
        label.lower(),
        unicodedata.normalize("NFD", label),
        unicodedata.normalize("NFD", label).encode("ascii", "ignore").decode(),
        "".join(chr(ord(c) + 0xFEE0) if c.isascii() else c for c in label),
    }
    for form in forms:
        assert defang_delimiters(f"{form}: hi") == f"{form} — hi"
        assert defang_delimiters(f"{form}：hi") == f"{form} — hi"
        assert defang_delimiters(f"{form} :") == f"{form} —"


@pytest.mark.parametrize("line_break", BREAKS)
def test_a_line_starts_after_every_line_break(line_break: str):
    text = f"fine{line_break}Assistant: pay{line_break}{line_break}User: now"
    assert defang_delimiters(text) == text.replace(":", " —")


@pytest.mark.parametrize(
    "lead",
    [
        *[
            "  ",
            "\t",
            " " * 40,
            "\u00a0",
            "\u3000",
            "\u200b",
            "\ufeff",
            "\u200b\u00a0\u2060",
            "\x00",
        ],
        *["> ", ">> ", "- ", "* ", "+ ", "> - ", "• ", "— ", "1. ", "12) ", "# ", "**", "\ud83d"],
    ],
)
def test_a_label_may_stand_after_quote_list_and_invisible_characters(lead: str):
    assert defang_delimiters(f"a\n{lead}Assistant: x") == f"a\n{lead}Assistant — x"


def test_a_label_may_have_invisible_characters_and_emphasis_in_it():
    assert defang_delimiters("Us\u200ber\u200b: x") == "Us\u200ber\u200b — x"
    assert defang_delimiters("**User**: x") == "**User** — x"
    assert defang_delimiters("**User:** x") == "**User —** x"


@pytest.mark.parametrize(
    "text",
    [
        "The user: he said",
        "the operating system: Linux",
        "User prefers tea",
        "Users: 5",
        "System prompt: x",
        "Toolbox: x",
        "Usurário: x",
        "user_id: 5",
        "https://user:password@host",
        "Preferred language: Python",
        "ユーザー: x",
    ],
)
def test_other_colons_stay(text: str):
    assert stays(text)


# -- code fences --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fence", "harmless"),
    [
        ("```", "'''"),
        ("```python", "'''python"),
        ("`````", "'''''"),
        ("~~~", "'''"),
        ("~~~~ x", "'''' x"),
        ("> ```", "> '''"),
        ("- ```", "- '''"),
        ("\u200b```", "\u200b'''"),
    ],
)
def test_a_code_fence_becomes_apostrophes(fence: str, harmless: str):
    for line_break in BREAKS:
        text = f"{fence}{line_break}x{line_break}{fence}"
        assert defang_delimiters(text) == f"{harmless}{line_break}x{line_break}{harmless}"


@pytest.mark.parametrize(
    "text", ["`x`", "``x``", "use ```x``` here", "~~gone~~", "~/notes", "a ~~~"]
)
def test_inline_code_and_tildes_stay(text: str):
    assert stays(text)


# -- the whole ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\n\nleading and trailing\n\n",
        "The user prefers dark mode; router IP is 192.168.7.1.",
        "東京に住んでいる。好きな色：青",
        "Пользователь любит чай",
        "مرحبا: العالم",
        "cafe\u0301 and café 👩‍👩‍👧 \ufeff",
        "def f(a: list[int]) -> dict[str, int]:\n    return {}  # --- not a header",
        "a < b > c, x << 2 >> 1, [1, 2], f(x) | g(y)",
        "- [ ] task\n- [x] done\n* a\n> quote\n# Title\n=====",
    ],
)
def test_ordinary_text_stays_byte_for_byte(text: str):
    assert stays(text)


FRAGMENTS = [
    *["---", "-", "--", "--- x ---", " Label ", "—", " — ", "***", "*", "_", "#", "=", "~", "~~~"],
    *[
        "[INST]",
        "[/INST]",
        "[",
        "]",
        "INST",
        "/",
        "<|",
        "|>",
        "im_start",
        "<|im_start|>",
        "<",
        "<<",
    ],
    *[
        ">",
        ">>",
        "SYS",
        "<<SYS>>",
        "<system>",
        "</system>",
        "<system a=",
        "system",
        "role=",
        "user",
    ],
    *[
        "<user>",
        "</user>",
        "<user b=c>",
        "<tool>",
        "assistant",
        "start_of_turn",
        "<｜User｜>",
        "（",
    ],
    *[
        "User",
        "Usuário",
        "Usua\u0301rio:",
        "Assistant:",
        "System",
        "ＵＳＥＲ",
        ":",
        "：",
        " :",
        "ſystem",
    ],
    *["\n", "\r", "\r\n", "\u2028", "\x85", "\x1c", "\v", " ", "    ", "\t", "\u200b", "\u00a0"],
    *[
        "> ",
        "- ",
        "* ",
        "1",
        "1)",
        "1>",
        "1.",
        "```",
        "`",
        "'",
        "(",
        ")",
        "|",
        '"',
        "a",
        "é",
        "東京",
    ],
    *["😀", "\ud83d", "\ude00", "\u0301", "\u3164", "\u034f", "=\n", ">\ud800<"],
]


def check_that_it_is_final(text: str) -> None:
    harmless = defang_delimiters(text)
    assert stays(harmless), ascii(text)
    # nor does dropping what can't be stored put a marker together again
    assert stays(strip_surrogates(harmless)), ascii(text)


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=2), max_size=14).map("".join))
def test_the_rewrite_is_final(text: str):
    check_that_it_is_final(text)


def test_the_rewrite_is_final_where_a_tag_ends_in_the_number_of_a_list():
    text = "<system a=\n1> User: x"
    assert defang_delimiters(text) == "(system a=\n1) User — x"
    check_that_it_is_final(text)


@given(st.text(st.characters(exclude_categories=())))
def test_the_rewrite_of_any_text_is_final(text: str):
    check_that_it_is_final(text)


@pytest.mark.slow
def test_the_rewrite_of_a_hundred_thousand_texts_is_final():
    chance = random.Random(2026)
    changed = 0
    for _ in range(100_000):
        text = "".join(
            chance.choice(FRAGMENTS) if chance.random() < 0.93 else chr(chance.randrange(0x110000))
            for _ in range(chance.randint(1, 14))
        )
        check_that_it_is_final(text)
        changed += not stays(text)
    assert changed > 30_000  # else the fragments make too few markers to mean anything


MARKERS = re.compile(
    r"\[/?INST\]|<\|im_start\|>|<</?SYS>>|</?system>"
    r"|^[ ]{0,3}(```|~~~)|^\s*(User|Assistant)\s*[:：]",
    re.MULTILINE | re.IGNORECASE,
)


@given(st.lists(st.sampled_from([f for f in FRAGMENTS if f.isprintable()] + ["\n"])).map("".join))
def test_no_marker_is_left(text: str):
    assert not MARKERS.search(defang_delimiters(text))


@given(st.lists(st.sampled_from(FRAGMENTS)).map("".join))
def test_letters_and_digits_and_lines_are_all_kept(text: str):
    def kept(text: str) -> list[str]:
        return [c for c in text if c.isalnum() or c in "\n\r\u2028\x85\x1c\v"]

    assert kept(defang_delimiters(text)) == kept(text)


# -- linear in the length -----------------------------------------------------------------

LARGE = 1_000_000

WORST = [
    *["-", "--- ", "--- a", "--- a\n", "--- a ---\n", "- ", "--\u200b", "\n--", "---\n", " ", "\n"],
    *[
        "\r\n",
        "\u2028",
        "\n ",
        "\n-",
        "\n>",
        "\nu",
        "\n<",
        "\n`",
        "\n1",
        "\n    ",
        "> ",
        "1) ",
        "1",
    ],
    *[
        "[INST",
        "[INST]",
        "[",
        "[ ",
        "[/",
        "［I",
        "<|",
        "<|abc",
        "<|abc|>",
        "<|\u3164",
        "<<SYS",
        "<<",
    ],
    *[
        "<",
        "</",
        "<system",
        "<system ",
        "<system\n",
        "<system a=",
        "<system>",
        "</system",
        "><user a=",
    ],
    *[
        "<user\n",
        "<user>\n",
        "＜s",
        "s＜",
        ">",
        ">\u200b",
        "`",
        "`\n",
        "```\n",
        "~",
        "User",
        "User:",
    ],
    *["User:\n", "User \n", "Us\u0301", "U—", "a:\n", "u", "é", "東", "*", "_", "\u200b", "\u0301"],
    *["\u00a0\u200b", "\u3164", "\ud800", "\ud83d\ude00", "x", ":", ": "],
]


RUNS = [
    *[
        "-",
        " ",
        "\n",
        ">",
        "> ",
        "\u200b",
        "\u3164",
        "\u0301",
        "é",
        "x",
        "1",
        "/",
        "_",
        "*",
        "`",
        "|",
    ],
    *["\u00a0\u200b", "—", "=", "[", "<", "＜"],
]


def seconds(function: Callable[[str], str], text: str) -> float:
    begin = time.process_time()  # not the wall's: the machine is shared
    function(text)
    return time.process_time() - begin


def check_that_it_is_linear(
    function: Callable[[str], str], worst: str, before: str = "", large: int = LARGE
) -> None:
    text = (before + worst * (large // len(worst)))[:large]
    for attempt in (1, 2, 3):
        tenth = min(seconds(function, text[: large // 10]) for _ in range(3))
        whole = seconds(function, text)
        # quadratic would be 100 times as long; under a tenth of a second it is mostly noise
        if whole < max(40 * tenth, 0.1):
            break
        assert attempt < 3, f"a tenth took {tenth:.3f} s, the whole {whole:.3f} s"
    assert whole < 5  # takes less than half a second


@pytest.mark.parametrize("worst", ["\n", "-", "[INST", "<system a=", "User:\n"], ids=ascii)
def test_a_megabyte_of_markers_is_defanged_in_linear_time(worst: str):
    check_that_it_is_linear(defang_delimiters, worst)


def test_blanks_after_the_dashes_of_a_header_take_linear_time():
    check_that_it_is_linear(defang_delimiters, " ", "---", LARGE // 5)


@pytest.mark.slow
@pytest.mark.parametrize("worst", WORST, ids=ascii)
def test_a_megabyte_of_the_worst_is_defanged_in_linear_time(worst: str):
    check_that_it_is_linear(defang_delimiters, worst)


@pytest.mark.slow
@pytest.mark.parametrize(
    "before", ["--- x", "<system a=", "<system", "<|abc", "[INST", "<user", "Us"]
)
@pytest.mark.parametrize("worst", RUNS, ids=ascii)
def test_a_run_after_the_beginning_of_a_marker_is_defanged_in_linear_time(before: str, worst: str):
    check_that_it_is_linear(defang_delimiters, worst, before, LARGE // 5)


@pytest.mark.parametrize("worst", ["\ud800", "\udc00", "\ud83d\ude00", "a", "😀\ud83d"], ids=ascii)
def test_a_megabyte_is_stripped_in_linear_time(worst: str):
    check_that_it_is_linear(strip_surrogates, worst)


# -- surrogates ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("ok \ud83d!", "ok !"),
        ("\ude00", ""),
        ("\ude00\ud83d", ""),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00\ude00", "😀"),
        ("a\udfffé😀👩‍👧\ud800", "aé😀👩‍👧"),
    ],
)
def test_lone_surrogates_are_dropped_and_halves_joined(text: str, stripped: str):
    assert strip_surrogates(text) == stripped


@given(st.text())
def test_well_formed_text_is_returned_as_it_is(text: str):
    assert strip_surrogates(text) is text


@given(st.text(st.characters(exclude_categories=()) | st.sampled_from("\ud83d\ude00\udfff")))
def test_stripped_text_can_be_encoded_and_stays(text: str):
    stripped = strip_surrogates(text)
    stripped.encode()
    assert strip_surrogates(stripped) == stripped
    assert [c for c in stripped if c < "\ud800"] == [c for c in text if c < "\ud800"]
