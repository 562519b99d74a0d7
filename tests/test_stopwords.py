"""The lists of function words."""

from __future__ import annotations

import unicodedata

import pytest

from retain.errors import InvalidValue, RetainError
from retain.stopwords import LANGUAGES, LOOKALIKES, stop_words

# Words that a memory is about, in every language that has a list: none may be dropped.
CONTENT = {
    "en": "fact computer home color name like want need time day people work May us one two three",
    "es": "casa color nombre gato trabajo tiempo vino dos tres uvas",
    "fr": "maison couleur nom chat travail temps deux trois voiture",
    "de": "haus farbe name katze arbeit zeit zwei drei auto fest",
    "it": "casa colore nome gatto lavoro tempo due tre",
    "pt": "casa cor nome gato trabalho tempo dois duas",
    "nl": "huis kleur naam kat werk tijd twee drie auto",
    "sv": "hus färg namn katt arbete tid två tre bil barn",
    "da": "hus farve navn kat arbejde tid to tre bil",
    "no": "hus farge navn katt arbeid tid to tre bil",
    "fi": "talo väri nimi kissa työ aika kaksi kolme",
    "hu": "ház szín név macska munka idő két három",
    "ro": "casă culoare nume pisică timp doi trei",
    "tr": "ev renk isim kedi iş zaman iki üç doğru",
    "pl": "dom kolor imię kot praca czas dwa trzy",
    "cs": "dům barva jméno kočka práce čas dva tři",
    "ca": "casa color nom gat feina temps dos tres",
    "id": "rumah warna nama kucing kerja waktu dua tiga",
    "vi": "nhà màu tên mèo việc một hai ba mới",
    "ru": "дом цвет имя кошка работа время один два",
    "uk": "дім колір ім'я кішка робота час один два",
    "el": "σπίτι χρώμα όνομα γάτα δουλειά δύο τρία",
    "ar": "بيت لون اسم قطة عمل وقت واحد اثنان",
    "he": "בית צבע שם חתול עבודה זמן שניים",
    "fa": "خانه رنگ نام گربه کار زمان یک دو",
    "hi": "घर रंग नाम बिल्ली काम समय एक दो",
    "ja": "猫 家 名前 時間 仕事 ねこ いえ",
    "zh": "猫 家 名字 时间 工作 一 二",
    "ko": "고양 집 이름 시간 하나 둘",
}


def test_the_languages_are_those_that_text_is_told_apart_in() -> None:
    assert set(LANGUAGES) == set(CONTENT)
    assert LANGUAGES[0] == "en"  # wins the ties of the vote


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_list_has_between_40_and_150_words(language: str) -> None:
    assert 40 <= len(stop_words(language)) <= 150


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_are_single_words_as_folding_leaves_them(language: str) -> None:
    for word in stop_words(language):
        folded = unicodedata.normalize("NFKC", word.casefold())
        assert word == unicodedata.normalize("NFKC", folded)
        assert len(word.split()) == 1
        assert any(char.isalpha() for char in word)
        assert not any(char.isdigit() for char in word)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_with_content_and_numbers_are_no_stop_words(language: str) -> None:
    content = {word.casefold() for word in CONTENT[language].split()}
    assert content & stop_words(language) == set()


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "the of is what who where dont how many"),
        ("es", "el de está qué cuál mi es"),
        ("fr", "le des est qui où et"),
        ("de", "der die und ist was wo nicht"),
        ("tr", "ve bir bu için ne"),
        ("ru", "и в на что где мой"),
        ("el", "ο τησ και είναι πού"),
        ("ar", "في من هل هذا على"),
        ("he", "של את הוא מה"),
        ("fa", "در از را است چه"),
        ("hi", "का में है क्या और"),
        ("ja", "の は です ます"),
        ("zh", "的 了 什么 什麼"),
    ],
)
def test_function_words_are_there(language: str, words: str) -> None:
    assert set(words.split()) <= stop_words(language)


def test_lookalikes_are_words_that_a_list_has_and_the_english_one_has_not() -> None:
    elsewhere = frozenset().union(*(stop_words(name) for name in LANGUAGES if name != "en"))
    assert elsewhere - stop_words("en") >= LOOKALIKES
    assert all(word.isascii() for word in LOOKALIKES)


def test_an_unknown_language_is_refused_with_the_list_of_those_known() -> None:
    with pytest.raises(InvalidValue, match=r"'tlh'.*\ben, es, fr\b") as caught:
        stop_words("tlh")
    assert isinstance(caught.value, RetainError)
    assert isinstance(caught.value, ValueError)
