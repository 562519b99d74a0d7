"""The tokenizer: folding, segmentation, forms, queries."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from retain import text as text_module
from retain.stopwords import LANGUAGES
from retain.text import _key_cache, fold, key, keys, plain, query_terms, signature, terms

Forms = tuple[str, ...]


def forms(text: str) -> set[str]:
    return {form for word in terms(text) for form in word}


def found(query: str, text: str) -> bool:
    """Every word of the query is in the text."""
    held = forms(text)
    words = query_terms(query)
    return bool(words) and all(not held.isdisjoint(word) for word in words)


def equal_words(one: list[Forms], other: list[Forms]) -> bool:
    return len(one) == len(other) and all(
        not set(a).isdisjoint(b) for a, b in zip(one, other, strict=True)
    )


# Any character at all, lone surrogates too, and often those that have rules of their own.
TRICKY = (
    "aAzZ09'’-_+#.,\"“ \t\n\0éßİıſΣςйЁאבש״׳خمیك\u200cـ٣猫カーｶﾞ゚각가\u1100\u1161กำ้เ\u0e34ក្ខမ္"
    "👩👍🏽\u200d🇩🇪❤\ufe0f🏴\U000e0067\u0301\u0316\u3099\u034f\ud800·lก\u093c\u0915\u0958𠮷"
)
ANY = st.lists(
    st.one_of(st.sampled_from(TRICKY), st.integers(0, 0x10FFFF).map(chr)), max_size=40
).map("".join)
HAN_AND_KANA = st.text(
    st.one_of(
        st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF, categories=["Lo"]),
        st.characters(min_codepoint=0x20000, max_codepoint=0x2A6DF, categories=["Lo"]),
        st.sampled_from("ぁあいうのはがをんアイウカガッタワー々〆"),
        st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
    ),
    min_size=2,
    max_size=30,
)


class TestFold:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("STRASSE", "straße"),
            ("STRAẞE", "strasse"),
            ("café", "cafe\u0301"),
            ("ＣＡＦＥ１", "cafe1"),
            ("ΟΔΟΣ", "οδος"),
            ("ﬁne", "FINE"),
            ("ｶﾞｯﾂ", "ガッツ"),
            ("각", "\u1100\u1161\u11a8"),
            ("Ёлка", "ёлка"),
            ("ǰ", "J\u030c"),
            ("ᲙᲐᲢᲐ", "კატა"),
        ],
    )
    def test_what_differs_in_case_or_encoding_only_is_equal(self, one: str, other: str) -> None:
        assert fold(one) == fold(other)

    def test_diacritics_and_punctuation_stay(self) -> None:
        assert fold("Écoute, ça va ?") == "écoute, ça va ?"

    @given(ANY)
    def test_composed_and_decomposed_text_is_equal(self, text: str) -> None:
        assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


class TestPlain:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("  The router\n is\t\t192.168.7.1 ", "The router is 192.168.7.1"),
            ("cafe\u0301", "café"),
            ("a\u3000b\xa0c\u2028d", "a b c d"),
            ("Case Stays", "Case Stays"),
            ("２ is not 2", "２ is not 2"),
            ("", ""),
            (" \n ", ""),
        ],
    )
    def test_is_nfc_with_single_spaces(self, text: str, expected: str) -> None:
        assert plain(text) == expected

    @given(ANY)
    def test_twice_is_once_and_encoding_does_not_matter(self, text: str) -> None:
        once = plain(text)
        assert plain(once) == once
        assert plain(unicodedata.normalize("NFD", text)) == once

    def test_rows_of_symbols_of_different_lengths_are_different(self) -> None:
        assert plain("😀" * 1000) != plain("😀" * 1001)
        assert plain("—" * 1000) != plain("—" * 1001)


# A text in each language, and queries whose every word it answers.
LANGUAGE_TABLE = [
    ("en", "Caroline was running to the adoption agencies", "run|agency|Where did Caroline run?"),
    (
        "es",
        "Mi color favorito es azul y vivo en una ciudad pequeña",
        "colores favoritos|azul|¿Cuál es mi color?|ciudades|las ciudades pequeñas|pequena",
    ),
    (
        "fr",
        "Les chevaux de ma sœur aiment l'eau et l’été",
        "cheval|soeur|eau|ETE|L'EAU|où sont les chevaux ?",
    ),
    ("de", "Die Häuser in unserer Straße sind groß", "Haus|STRASSE|das große Haus der Straße"),
    (
        "it",
        "Le mie amiche sono andate alla stazione con la macchina dell'amica",
        "stazioni delle amiche|macchina|dove è la stazione|amica",
    ),
    (
        "pt",
        "As minhas flores favoritas não são azuis",
        "a flor que é minha|favoritas|nossas FLORES",
    ),
    ("nl", "Het huis van mijn zus heeft geen tuin", "de tuinen van het huis|zus|tuin"),
    (
        "sv",
        "Hunden och katterna sover inte i bilen när det regnar",
        "katterna|var är bilar och katt",
    ),
    (
        "da",
        "Hunden og kattene sover ikke i bilen når det regner",
        "hvor er bilerne og kattene|BILEN",
    ),
    ("no", "Hunden og kattene sover ikke i bilen hos meg", "katten og hunden til meg|bilen"),
    ("fi", "Minun koirani on talossa ja kissani ovat pihalla", "missä on talo ja koirani|kissani"),
    ("hu", "A házban nem volt macska, de a kertben van egy kutya", "hol van a kert és a ház|kutya"),
    ("ro", "Pisicile și câinii sunt în grădina noastră", "unde este grădina și pisica|gradina"),
    (
        "tr",
        "Kitapları ve defterleri İstanbul'da bir evde bıraktım",
        "kitaplar ve evler nerede|istanbul|ISTANBUL|İSTANBUL",
    ),
    (
        "pl",
        "Moje koty nie są w ogrodzie, ale Łukasz jest w domu",
        "koty|lukasz|gdzie jest mój Łukasz",
    ),
    (
        "cs",
        "Moje kočky nejsou na zahradě, ale pes je doma se mnou",
        "kočky|kocky|kde jsou moje kočky",
    ),
    ("ca", "Els meus gossos no són al jardí de l'escola col·lectiva", "jardi|escola|collectiva"),
    ("id", "Saya tidak suka makanan itu karena sangat mahal", "makanan|di mana saya makan"),
    ("vi", "Tôi không thích cà phê nhưng tôi uống trà Đà Lạt", "cà phê|CA PHE|da lat|tôi uống gì"),
    (
        "ru",
        "Мои любимые кошки живут в старых домах, а ёжик в саду",
        "кошка|дом|где ежик|ЁЖИКИ|старый дом",
    ),
    ("uk", "Мої улюблені кішки живуть у старих будинках, їх п'ять", "кішка|у старому будинку|пять"),
    ("el", "Τα χρώματα της θάλασσας και οι δρόμοι του νησιού", "χρώμα|ΧΡΩΜΑ|δρομος|ΔΡΌΜΟΣ"),
    ("ar", "اَلْمَكْتَبَةُ الجديدة قريبة من المدرسة", "مكتبة|مدرسه|الجديدة|أين المدرسة|قريبا|ومدرسة"),
    ("he", 'הַבַּיִת שלי גדול מאוד, צה"ל', "בית|ובבית|איפה הבית שלי|צה״ל|צהל"),
    ("fa", "کتاب‌های من در خانه است و می‌خواهم", "کتاب|كتاب|خانه|کتابهای|میخواهم|کتاب کجا است"),
    ("hi", "मेरी किताबें मेज़ पर हैं और मैं दिल्ली में रहता हूँ", "किताब|दिल्ली|मेरी किताब कहाँ है"),
    ("ja", "私の猫の名前は東京タワーです。ﾈｺ", "猫|東京|ネコ|タワー|東京ﾀﾜｰ"),
    ("zh", "我的貓叫小白，它喜欢喝牛奶", "貓|牛奶|小白|喜欢|喝牛奶"),
    ("ko", "제 고양이는 서울에 살아요", "고양이|서울|서울에서|\u1109\u1165\u110b\u116e\u11af"),
    ("Thai", "แมวของฉันอยู่ในบ้านที่กรุงเทพ มีน้ำ", "แมว|บ้าน|กรุงเทพ|น้ำ|มี|ฉัน"),
    ("Lao", "ແມວຂອງຂ້ອຍຢູ່ໃນເຮືອນ", "ແມວ|ເຮືອນ"),
    ("Khmer", "ខ្ញុំចូលចិត្តឆ្មា", "ឆ្មា|ខ្ញុំ"),
    ("Burmese", "ကျွန်တော့်ကြောင်က ရန်ကုန်မှာ နေတယ်", "ရန်ကုန်|ကြောင်"),
    ("Tibetan", "བོད་ཡིག་སློབ་པ", "བོད|བོད་ཡིག"),
    ("Tamil", "என் பூனைகள் வீட்டில் இருக்கின்றன", "பூனை|வீட்டில்"),
    ("Armenian", "Իմ կատուները Երևանում են", "ԿԱՏՈՒՆԵՐԸ|երևանում"),
    ("Georgian", "ჩემი კატა სახლშია", "კატა|ᲙᲐᲢᲐ"),
    ("Bengali", "আমার বিড়ালের নাম মিনু", "মিনু|বিড়ালের"),
    ("Amharic", "ድመቴ አዲስ አበባ ትኖራለች", "አዲስ አበባ"),
]


class TestLanguages:
    @pytest.mark.parametrize(("language", "text", "queries"), LANGUAGE_TABLE)
    def test_a_text_is_found_by_its_words_inflected(
        self, language: str, text: str, queries: str
    ) -> None:
        missed = [query for query in queries.split("|") if not found(query, text)]
        assert missed == []

    @pytest.mark.parametrize(("language", "text", "queries"), LANGUAGE_TABLE)
    def test_the_encoding_of_a_text_does_not_matter(
        self, language: str, text: str, queries: str
    ) -> None:
        assert terms(unicodedata.normalize("NFC", text)) == terms(text)
        assert terms(unicodedata.normalize("NFD", text)) == terms(text)
        assert terms(unicodedata.normalize("NFKC", text)) == terms(text)
        assert terms(unicodedata.normalize("NFKD", text)) == terms(text)

    @pytest.mark.parametrize(("language", "text", "queries"), LANGUAGE_TABLE)
    def test_the_case_of_a_text_does_not_matter(
        self, language: str, text: str, queries: str
    ) -> None:
        assert equal_words(terms(text.upper()), terms(text))

    @pytest.mark.parametrize(("language", "text", "queries"), LANGUAGE_TABLE)
    def test_nothing_is_found_in_a_text_of_other_words(
        self, language: str, text: str, queries: str
    ) -> None:
        for query in queries.split("|"):
            assert not found(query, "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich")

    @pytest.mark.parametrize(
        ("algorithm", "query", "text"),
        [
            ("polish", "gdzie jest kot", "Moje koty nie są w ogrodzie, ale pies jest w domu"),
            ("czech", "kde je ta kočka na zahradě", "Moje kočky jsou na zahradě, ale pes není"),
        ],
    )
    def test_languages_that_newer_stemmers_know_are_stemmed(
        self, algorithm: str, query: str, text: str
    ) -> None:
        if algorithm not in text_module._snowball().algorithms():
            pytest.skip(f"this PyStemmer has no {algorithm} stemmer")
        assert found(query, text)

    def test_the_table_has_every_language_with_stop_words(self) -> None:
        assert {row[0] for row in LANGUAGE_TABLE} >= set(LANGUAGES)

    def test_the_first_form_is_the_same_whatever_the_language_of_the_text(self) -> None:
        alone = {word: terms(word)[0][0] for word in ("favorito", "casas", "rojas")}
        [(_, *rest)] = [terms("mis casas rojas de mi pueblo favorito")]
        held = {word[0] for word in rest}
        assert held >= set(alone.values())

    def test_english_texts_have_one_form_a_word(self) -> None:
        text = "We met Ella, Ben and Dan, who own a car; he wants more of it, you know, at most."
        assert all(len(word) == 1 for word in terms(text))

    def test_function_words_of_another_language_add_its_stems(self) -> None:
        assert ("favorito", "favorit") in terms("Mi color favorito es azul")
        assert ("favorito",) in terms("favorito")

    def test_as_many_english_words_as_others_make_a_text_english(self) -> None:
        assert terms("houses the und") == [("hous",), ("the",), ("und",)]

    @pytest.mark.parametrize(
        ("one", "other"),
        [("й", "и"), ("कम", "काम"), ("มา", "ม้า"), ("が", "か"), ("ぱ", "は"), ("ம", "மா")],
    )
    def test_marks_that_make_another_letter_stay(self, one: str, other: str) -> None:
        assert not found(one, other)
        assert not found(other, one)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("naïve", "naive"),
            ("Ærøskøbing", "aeroskobing"),
            ("Đặng", "dang"),
            ("ἄνθρωπος", "ανθρωπος"),
            ("מִשְׂרָד", "משרד"),
            ("مُدَرِّس", "مدرس"),
            ("مــدرس", "مدرس"),
            ("ёж", "еж"),
            ("за́мок", "замок"),
            ("٣٤", "34"),
            ("३४", "34"),
            ("２０２４", "2024"),
        ],
    )
    def test_marks_that_are_left_out_at_will_do_not_count(self, one: str, other: str) -> None:
        assert terms(one)[0][0] == terms(other)[0][0]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            ("  \n\t ", []),
            ("hello world", ["hello", "world"]),
            ("hello,world;(again)!", ["hello", "world", "again"]),
            ("192.168.7.1", ["192", "168", "7", "1"]),
            ("v3.14", ["v3", "14"]),
            ("ann.lee@example.org", ["ann", "lee", "exampl", "org"]),
            ("https://example.org/a?b=c#d", ["https", "exampl", "org", "a", "b", "c", "d"]),
            ("#hashtag @user", ["hashtag", "user"]),
            ("$10 50% 3pm", ["10", "50", "3pm"]),
            ("a\0b\x07c\x7fd", ["a", "b", "c", "d"]),
            ("“quoted”—and…so", ["quot", "and", "so"]),
            ("«да»", ["да"]),
            ("left\ud800right", ["left", "right"]),
            ("foo_bar_baz", ["foo", "bar", "baz"]),
            ("__init__", ["init"]),
            ("'quoted' words'", ["quot", "word"]),
            ("C++ c# F# and C", ["c++", "c#", "f#", "and", "c"]),
            ("C++20, C++/CLI; Notepad++", ["c++", "20", "c++", "cli", "notepad"]),
            (".NET", ["net"]),
            ("issue #5 page#section", ["issu", "5", "page", "section"]),
        ],
    )
    def test_are_cut_at_white_space_and_punctuation(self, text: str, expected: list[str]) -> None:
        assert [word[0] for word in terms(text)] == expected

    @pytest.mark.parametrize("text", ["++", "???", "...", "\0", "\u200b", "\u0301", "—", "=+-#'"])
    def test_symbols_alone_are_none(self, text: str) -> None:
        assert terms(text) == []
        assert query_terms(text) == []

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("caroline", "Caroline's house"),
            ("Caroline’s", "caroline"),
            ("dont", "don't"),
            ("obrien", "Mr. O'Brien"),
            ("Brien", "O’Brien"),
            ("O'Brien", "obrien"),
            ("hawaii", "Hawai'i"),
            ("hawaii", "Hawaiʻi"),
            ("ankara", "Ankara'da"),
            ("foo_bar", "def foo_bar(x)"),
            ("bar", "def foo_bar(x)"),
            ("foobar", "def foo_bar(x)"),
            ("wifi", "the wi-fi network"),
            ("wi fi", "the Wi-Fi network"),
            ("email", "an e-mail"),
            ("covid19", "COVID-19"),
            ("GPT4", "gpt-4"),
            ("интернет-магазин", "интернет магазин"),
            ("10000", "it cost 10,000 dollars"),
            ("10,000", "it cost 10000 dollars"),
            ("1_000_000", "1,000,000"),
            ("443", "ports 80,443"),
            ("c++", "I like C++."),
            ("C#", "written in c#!"),
            (".NET", "the .NET runtime"),
            ("7.1", "192.168.7.1"),
            ("so\u00adft hy\u200bphen", "soft hyphen"),
            ("\u202eabc\u202c", "abc"),
            ("क्‍ष", "क्ष"),
        ],
    )
    def test_are_found_however_they_are_written(self, query: str, text: str) -> None:
        assert found(query, text)

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("192.168.9.1", "192.168.7.1"),
            ("c++", "vitamin C"),
            ("c", "C++"),
            ("c#", "C++"),
            ("10", "1000"),
            ("wifi", "wi fi"),
            ("20240313", "2024-03"),
            ("don", "don't"),
        ],
    )
    def test_that_differ_are_told_apart(self, query: str, text: str) -> None:
        assert not found(query, text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("iPhone15を買った", ["iphone15", "を買", "買っ", "った", "た"]),
            ("Python言語", ["python", "言語", "語"]),
            ("2024年3月", ["2024", "年", "3", "月"]),
            ("Windowsс", ["window", "с"]),
            ("T34 т34", ["t34", "т34"]),
            ("10μm", ["10μ", "m"]),
        ],
    )
    def test_are_cut_where_the_script_changes(self, text: str, expected: list[str]) -> None:
        assert [word[0] for word in terms(text)] == expected

    def test_count_by_their_first_64_characters(self) -> None:
        long = "x" * 64
        assert terms(long + "a") == terms(long + "b") == [(long,)]
        assert terms("x" * 63 + "a") != terms("x" * 63 + "b")
        assert found("é" * 1000, "é" * 2000)

    def test_a_word_of_letters_and_marks_is_one(self) -> None:
        for point in range(0x300, 0x20000):
            if unicodedata.category(chr(point))[0] == "M" and point != 0x345:  # which is a letter
                assert len(terms(f"क{chr(point)}क")) == 1, hex(point)

    @given(st.text("abAB09'-_+#.,\"  \nzs!", max_size=30))
    @example("1'000 1'a 1990's 10_000 a1_000 c++a x#1 d'e'f 80,443,8080")
    def test_ascii_text_is_cut_as_any_other(self, text: str) -> None:
        assert terms(text + " 漢") == [*terms(text), ("漢",)]


class TestScriptsWithoutSpaces:
    def test_a_text_holds_pairs_and_single_characters(self) -> None:
        assert terms("東京都") == [("東京", "東"), ("京都", "京"), ("都",)]
        assert terms("𠮷野") == [("𠮷野", "𠮷"), ("野",)]

    def test_a_query_holds_pairs_or_one_character(self) -> None:
        assert query_terms("東京都") == [("東京",), ("京都",)]
        assert query_terms("猫") == [("猫",)]

    def test_characters_far_apart_are_no_pair(self) -> None:
        assert not found("東都", "東京都")
        assert not found("東京", "東。京")
        assert not found("東京", "東 京")

    def test_half_width_kana_and_their_sound_marks_are_kana(self) -> None:
        assert terms("ｶﾞｰﾄﾞ") == terms("ガード")

    def test_variation_selectors_do_not_count(self) -> None:
        assert terms("葛\U000e0100城") == terms("葛城")

    def test_marks_stay_with_their_letters(self) -> None:
        assert terms("กี่") == [("กี่",)]
        assert terms("ឆ្មា") == [("ឆ្មា",)]  # the letter below belongs to the one above
        assert len(terms("แมว")) == 3

    @given(HAN_AND_KANA, st.data())
    def test_any_two_characters_of_a_run_are_found(self, run: str, data: st.DataObject) -> None:
        run = fold(run)
        start = data.draw(st.integers(0, len(run) - 1))
        end = data.draw(st.integers(start + 1, len(run)))
        held = forms("前 " + run)
        for word in query_terms(run[start:end]):
            assert not held.isdisjoint(word)

    @given(st.sampled_from("แมวของฉันอยู่ในบ้านที่กรุงเทพมหานคร ข้าวผัดกุ้ง".split()), st.data())
    def test_any_run_of_whole_thai_letters_is_found(self, run: str, data: st.DataObject) -> None:
        starts = [i for i, char in enumerate(run) if unicodedata.category(char)[0] != "M"]
        start, end = sorted(data.draw(st.lists(st.sampled_from(starts), min_size=2, max_size=2)))
        assume(start < end)
        assert found(run[start:end], run)


class TestEmoji:
    @pytest.mark.parametrize(
        "emoji",
        [
            "👍",
            "👍🏽",
            "👩‍💻",
            "👨‍👩‍👧",
            "🇩🇪",
            "❤️",
            "❤️‍🔥",
            "🏳️‍🌈",
            "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
            "☕",
            "⭐",
            "🀄",
            "🤷🏿‍♀️",
            "〽️",
            "🥲",
            "🏽",
        ],
    )
    def test_each_is_one_word_that_is_found(self, emoji: str) -> None:
        text = f"nice{emoji}day and 猫{emoji}"
        assert len(terms(emoji)) == 1
        assert found(emoji, text)
        assert len(terms(text)) == 6

    def test_a_row_of_them_is_a_word_each(self) -> None:
        assert [word[0] for word in terms("👍🎉🇩🇪🇫🇷")] == ["👍", "🎉", "🇩🇪", "🇫🇷"]

    def test_skin_tone_does_not_count_and_the_first_of_a_sequence_does(self) -> None:
        assert terms("👍🏿") == terms("👍")
        assert found("🤷", "🤷🏽‍♀️")
        assert found("👩🏽‍💻", "👩‍💻")

    def test_different_ones_are_different(self) -> None:
        assert not found("🇫🇷", "🇩🇪")
        assert not found("👎", "👍")
        assert forms("🏴󠁧󠁢󠁳󠁣󠁴󠁿").isdisjoint(forms("🏴󠁧󠁢󠁥󠁮󠁧󠁿"))

    def test_other_symbols_separate(self) -> None:
        assert terms("a→b•c■d™") == [("a",), ("b",), ("c",), ("dtm",)]


class TestQueries:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("What is the color of Caroline's house?", ["color", "carolin", "hous"]),
            ("I don't know what it's about", ["know"]),
            ("What'll we've eaten, isn't it?", ["eaten"]),
            ("house HOUSE houses", ["hous"]),
            ("¿Dónde está la casa de mi madre?", ["casa", "madr"]),
            ("Was ist die Farbe von meinem Haus?", ["farb", "haus"]),
            ("Où est l'eau de la mer ?", ["eau", "mer"]),
            ("Где моя кошка?", ["кошк"]),
            ("Где моя the кошка?", ["кошк"]),
            ("أين المكتبة", ["مكتب"]),
            ("איפה החתול שלי", ["החתול"]),
            ("मेरा घर कहाँ है", ["घर"]),
            ("猫です", ["猫で"]),
            ("las ciudades", ["ciudad"]),
        ],
    )
    def test_are_cut_to_distinct_words_that_say_something(
        self, query: str, expected: list[str]
    ) -> None:
        assert [word[0] for word in query_terms(query)] == expected

    @pytest.mark.parametrize(
        "query",
        ["to be or not to be", "the", "Der die das", "что это", "の", "です", "من هو", "de la"],
    )
    def test_of_stop_words_alone_keep_them(self, query: str) -> None:
        words = query_terms(query)
        assert words
        assert found(query, query)

    @pytest.mark.parametrize(
        "name", ["Ben", "Ella", "Dan", "Mia", "Ed", "Jim", "Kim", "Hans", "Van", "Theo", "LA", "EU"]
    )
    def test_keep_names_that_are_function_words_elsewhere(self, name: str) -> None:
        assert terms(name)[0] in query_terms(f"{name} birthday")
        assert terms(name)[0] in query_terms(f"Where did {name} go on Monday?")

    def test_words_that_share_a_form_appear_once(self) -> None:
        assert query_terms("wi-fi wifi") == [("wi", "wifi"), ("fi",)]

    def test_nothing_but_symbols_is_no_word(self) -> None:
        assert query_terms("?! ... ++") == []

    def test_numbers_are_kept(self) -> None:
        assert [word[0] for word in query_terms("Was it 2 or 3?")] == ["2", "3"]


class TestAnyText:
    @given(ANY)
    def test_gives_words_of_distinct_forms_that_are_not_empty_nor_long(self, text: str) -> None:
        for word in terms(text) + query_terms(text):
            assert isinstance(word, tuple)
            assert word
            assert len(set(word)) == len(word)
            assert all(0 < len(form) <= 128 for form in word)

    @given(ANY)
    def test_is_found_by_itself(self, text: str) -> None:
        held = forms(text)
        assert all(not held.isdisjoint(word) for word in query_terms(text))
        assert bool(query_terms(text)) == bool(terms(text))

    @given(ANY)
    def test_is_cut_alike_composed_and_decomposed(self, text: str) -> None:
        composed = terms(unicodedata.normalize("NFC", text))
        assert composed == terms(unicodedata.normalize("NFD", text)) == terms(text)

    @given(ANY)
    @example("ΟΔΟΣ Straße ǰ ŉ ﬃ Ⓐ")
    def test_is_cut_alike_in_upper_and_lower_case(self, text: str) -> None:
        # A dotless i has the capital of the dotted one, and U+0345 a capital that is a letter.
        assume(not set(unicodedata.normalize("NFD", text)) & {"ı", "İ", "\u0345"})
        for other in (text.upper(), text.lower(), text.swapcase()):
            assert equal_words(terms(other), terms(text))

    @given(ANY)
    def test_is_cut_alike_every_time_and_with_empty_caches(self, text: str) -> None:
        first = terms(text), query_terms(text)
        assert (terms(text), query_terms(text)) == first
        _forget()
        assert (query_terms(text), terms(text)) == first[::-1]

    @pytest.mark.slow
    @settings(max_examples=1_000)
    @given(ANY)
    def test_holds_all_of_this_for_long_fuzzing(self, text: str) -> None:
        held = forms(text)
        assert all(not held.isdisjoint(word) for word in query_terms(text))
        assert terms(unicodedata.normalize("NFD", text)) == terms(text)
        assert plain(plain(text)) == plain(text)

    @pytest.mark.slow
    def test_every_kind_of_character_is_cut_and_found(self) -> None:
        # All but the thousands of Han and Hangul characters and the unassigned ones, which
        # are alike: of those every 97th.
        few = {"Lo", "Cn", "Co", "Cs"}
        points = (
            point
            for point in range(0x110000)
            if point % 97 == 0 or unicodedata.category(chr(point)) not in few
        )
        for point in points:
            text = f"x{chr(point)}y"
            assert found(text, text)
            assert terms(unicodedata.normalize("NFD", text)) == terms(text)

    @pytest.mark.parametrize(
        "unit",
        [
            *("a", "é", "猫", "ก", "á\u0316", "\u0301\u0316", "a'", "é'", "é-", "x_", "1_", "é1'"),
            *(
                "👩\u200d",
                "\u200d",
                "🏴\U000e0041",
                "🇩",
                "1,000",
                "c++",
                "aя",
                "1я",
                "\ufdfa",
                "\ud800",
            ),
            *(
                "\0",
                "می\u200c",
                'צ"',
                "111_",
                "က္",
                "😀",
                "👍🏽",
                "각",
                "İ",
                "l·l",
                "—",
                "क्षि",
                "word é ",
            ),
        ],
    )
    def test_takes_time_in_proportion_to_its_length(self, unit: str) -> None:
        text = unit * (100_000 // len(unit))
        started = time.process_time()
        terms(text)
        query_terms(text)
        fold(text)
        plain(text)
        # One tenth of a second on an idle machine; minutes if anything were quadratic.
        assert time.process_time() - started < 20

    def test_a_megabyte_without_a_space_is_one_word(self) -> None:
        assert terms("A" * 1_000_000) == [("a" * 64,)]

    def test_caches_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_module, "_CACHED", 50)
        _forget()
        words = [f"w{number}" for number in range(500)]
        assert [word[0] for word in terms(" ".join(words))] == words
        assert [word[0] for word in query_terms(" ".join(words))] == words
        points = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
        assert len(terms(points)) == 500
        assert len(text_module._text_cache("en")) <= 50
        assert len(text_module._kinds) <= 50
        assert len(text_module._pairs) <= 50
        terms("y" * 65)
        assert "y" * 65 not in text_module._text_cache("en")


def _forget() -> None:
    for cache in (text_module._text_cache, text_module._query_cache):
        cache.cache_clear()
    text_module._kinds.clear()
    text_module._pairs.clear()


class TestWhereItRuns:
    def test_many_threads_get_what_one_gets(self) -> None:
        texts = [row[1] for row in LANGUAGE_TABLE] * 5
        expected = [(terms(text), query_terms(text)) for text in texts]
        _forget()
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda text: (terms(text), query_terms(text)), texts))
        assert answers == expected

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    def test_a_forked_child_gets_what_its_parent_gets(self) -> None:
        program = (
            "import os, sys\n"
            "from retain.text import terms\n"
            "before = terms('Die Häuser und cats running')\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    same = terms('Die Häuser und cats running') == before\n"
            "    os._exit(0 if same and terms('jumping foxes') == [('jump',), ('fox',)] else 1)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

    def test_importing_it_loads_no_stemmer(self) -> None:
        program = "import sys, retain.text; sys.exit('Stemmer' in sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

    def test_hashes_differ_between_processes_and_answers_do_not(self) -> None:
        program = (
            "import sys; from retain.text import terms, query_terms\n"
            "text = 'Les chevaux de ma sœur: el perro, der Hund, кошка 猫です'\n"
            "sys.stdout.buffer.write(ascii((terms(text), query_terms(text))).encode())\n"
        )
        answers = {
            subprocess.run(
                [sys.executable, "-c", program],
                check=True,
                timeout=60,
                capture_output=True,
                env={**os.environ, "PYTHONHASHSEED": seed},
            ).stdout
            for seed in ("1", "2", "3")
        }
        assert len(answers) == 1

    def test_a_stemmer_that_is_not_installed_is_done_without(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class OlderSnowball:
            @staticmethod
            def algorithms() -> list[str]:
                return []

        monkeypatch.setattr(text_module, "_snowball", lambda: OlderSnowball)
        monkeypatch.setattr(text_module, "_stemmers", text_module._Stemmers())
        _forget()
        assert terms("running cats") == [("running",), ("cats",)]
        assert found("kotami", "Moje koty są z kotami w domu")
        _forget()

    def test_the_signature_names_what_the_forms_depend_on(self) -> None:
        assert unicodedata.unidata_version in signature()
        assert signature() == signature()


class TestKeys:
    @given(ANY)
    def test_are_those_of_all_forms_in_order(self, text: str) -> None:
        forms = [form for word in terms(text) for form in word]
        assert keys(text) == b"".join(map(key, forms))

    def test_are_the_same_in_every_process(self) -> None:
        code = "from retain.text import key; print(key('tea').hex(), key('東京').hex())"
        run = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True
        )
        assert run.stdout.split() == [key("tea").hex(), key("東京").hex()]

    def test_are_remembered_within_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("retain.text._CACHED", 4)
        cache = _key_cache("en")
        cache.clear()
        for n in range(20):
            assert keys(f"word{n}")
        assert len(cache) <= 4
