"""The dates that questions name, and how close memories are to them."""

from __future__ import annotations

import math
import time
import unicodedata
from calendar import monthrange
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retain.clock import DAY
from retain.search.when import Span, Yearly, closeness, spans, windows


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=timezone.utc).timestamp()


NOW = at("2023-08-16T15:30")  # a Wednesday


def written(query: str, now: float = NOW) -> list[str]:
    """What ``query`` names: ``2023-05-07``, ``2023-05-01/2023-06-01`` from/to, any ``*-05-07``."""
    found = []
    for when in spans(query, now):
        if isinstance(when, Yearly):
            found.append(f"*-{when.month:02}" + (f"-{when.day:02}" if when.day else ""))
            continue
        first, after = (
            datetime.fromtimestamp(moment, timezone.utc) for moment in (when.start, when.end)
        )
        assert first.time() == after.time() == datetime.min.time()
        day = f"{first:%Y-%m-%d}"
        found.append(day if after - first == timedelta(1) else f"{day}/{after:%Y-%m-%d}")
    return found


MAY_7, MAY, LAST_MAY = "2023-05-07", "2023-05-01/2023-06-01", "2022-05-01/2022-06-01"
YEAR_2021, YEAR_2022 = "2021-01-01/2022-01-01", "2022-01-01/2023-01-01"
LAST_WEEK, LAST_MONTH = "2023-08-07/2023-08-14", "2023-07-01/2023-08-01"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What happened on 2023-05-07?", MAY_7),
        ("2023/05/07", MAY_7),
        ("2023-05-07T10:15:00Z", MAY_7),
        ("2023-05-07 10:15", MAY_7),
        ("am 7.5.2023", MAY_7),
        ("am 07.05.2023.", MAY_7),
        ("am 7. 5. 2023 um 10 Uhr", MAY_7),
        ("5/7/2023", "2023-07-05 2023-05-07"),
        ("5-7-2023", "2023-07-05 2023-05-07"),
        ("13/7/2023", "2023-07-13"),
        ("7/13/2023", "2023-07-13"),
        ("5/5/2023", "2023-05-05"),
        ("in 2023-05", MAY),
        ("2023年5月7日做了什么", MAY_7),
        ("２０２３年５月７日", MAY_7),
        ("2023年5月", MAY),
        ("2023年发生了什么", "2023-01-01/2024-01-01"),
        ("5月7日に何をした", "*-05-07"),
        ("5月", "*-05"),
        ("2023년 5월 7일에", MAY_7),
        ("去年5月", LAST_MAY),
        ("去年的5月", LAST_MAY),
        ("from 2023-05-07 to 2024-02-29", f"{MAY_7} 2024-02-29"),
    ],
)
def test_dates_of_digits(query, expected):
    assert written(query) == expected.split()


@pytest.mark.parametrize(
    "query",
    [
        "2023-02-31",
        "2023-02-29",
        "2023-13-01",
        "2023-00-10",
        "31.2.2023",
        "13/13/2023",
        "2023年13月",
        "31 February 2023",
        "February 30",
        "September 31st",
        "1066-10-14",
        "192.168.7.1",
        "version 1.2.2023.4",
        "call 2023-0512",
        "ticket 12023-05-07",
        "order 2023-05-07-11",
        "5个月",
        "3/4 of it",
        "room 2023",
        "2000 people",
        "in 2000 people",
        "in 2023.5",
    ],
)
def test_what_is_no_date(query):
    assert written(query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("7 May 2023", MAY_7),
        ("the 7th of May, 2023", MAY_7),
        ("May 7th, 2023", MAY_7),
        ("May 7,2023", MAY_7),
        ("may 7 2023", MAY_7),
        ("MAY 7 2023", MAY_7),
        ("2023 May 7", MAY_7),
        ("May 2023", MAY),
        ("May, 2023", MAY),
        ("May of 2023", MAY),
        ("in May last year", LAST_MAY),
        ("last year in May", LAST_MAY),
        ("on October 13", "*-10-13"),
        ("Oct 13", "*-10-13"),
        ("13 Oct.", "*-10-13"),
        ("Sept. 2023", "2023-09-01/2023-10-01"),
        ("in Oct", "*-10"),
        ("on 29 February", "*-02-29"),
        ("in May", "*-05"),
        ("What happened in July?", "*-07"),
        ("mid-May", "*-05"),
        ("between April and June", "*-04 *-06"),
        ("July or August", "*-07 *-08"),
        ("7 May and 8 June", "*-05-07 *-06-08"),
        ("July 2023, August 2023", "2023-07-01/2023-08-01 2023-08-01/2023-09-01"),
        ("between August 11 and August 15 2023", "*-08-11 2023-08-15"),
        ("What did Caroline say last May?", MAY),
        ("last October", "2022-10-01/2022-11-01"),
        ("this October", "2023-10-01/2023-11-01"),
        ("last August", "2023-08-01/2023-09-01"),
        ("7. Mai 2023", MAY_7),
        ("im März", "*-03"),
        ("im Mai", "*-05"),
        ("Was geschah letzten Mai?", "*-05"),
        ("le 1er mai 2023", "2023-05-01"),
        ("en août 2021", "2021-08-01/2021-09-01"),
        ("AOÛT 2021", "2021-08-01/2021-09-01"),
        ("en mars dernier", "*-03"),
        ("el 7 de mayo de 2023", MAY_7),
        ("en enero", "*-01"),
        ("a fines de julio", "*-07"),
        ("7 maggio 2023", MAY_7),
        ("7 de maio de 2023", MAY_7),
        ("em janeiro", "*-01"),
        ("7 mei 2023", MAY_7),
        ("sinds maart", "*-03"),
        ("7 мая 2023 года", MAY_7),
        ("в мае", "*-05"),
        ("В НОЯБРЕ", "*-11"),
        ("7 maja 2023", MAY_7),
        ("w październiku", "*-10"),
        ("7 Mayıs 2023", MAY_7),
        ("Mart'ta", "*-03"),
        ("kasımda", "*-11"),
        ("EKİM 2022", "2022-10-01/2022-11-01"),
        ("ARALIK 2022", "2022-12-01/2023-01-01"),
        ("7 ago. 2023", "2023-08-07"),
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_months_by_name(query, expected, form):
    assert written(unicodedata.normalize(form, query)) == expected.split()


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("What may I eat?", False),
        ("May I eat this?", False),
        ("WHAT MAY I EAT", False),
        ("What May I Eat?", False),
        ("Why this may be wrong", False),
        ("Theresa May resigned", False),
        ("What about it? May I?", False),
        ("March to the shop", False),
        ("They march on", False),
        ("What does April like?", False),
        ("Who is June?", False),
        ("Who went to Mars?", False),
        ("life on Mars", False),
        ("Do I like mayo?", False),
        ("¿Qué marca de coche tiene?", False),
        ("la hermana de Julio", False),
        ("in Rio de Janeiro", False),
        ("Io non dico mai niente", False),
        ("Что сказала Марта?", False),
        ("set 5 alarms", False),
        ("3 years of it, 7 ago", False),
        ("the mar of the oct", False),
        ("What did I do this may?", True),
        ("What did we do this May", True),
        ("the May meeting", True),
        ("the March meeting", True),
        ("since march", True),
        ("by June", True),
        ("late april", True),
        ("the 2nd of march", True),
    ],
)
def test_a_name_that_is_a_word_too_needs_more_to_be_a_month(query, named):
    assert bool(written(query)) is named


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("in 2021", YEAR_2021),
        ("since 2021?", YEAR_2021),
        ("the year 2021", YEAR_2021),
        ("of 2021.", YEAR_2021),
        ("im Jahr 2021", YEAR_2021),
        ("depuis 2021", YEAR_2021),
        ("en el año 2021", YEAR_2021),
        ("в 2021 году", YEAR_2021),
        ("2021 yılında", YEAR_2021),
        ("between 2021 and 2022", f"{YEAR_2021} {YEAR_2022}"),
        ("entre 2021 y 2022", f"{YEAR_2021} {YEAR_2022}"),
    ],
)
def test_a_year_counts_after_a_word_that_says_so(query, expected):
    assert written(query) == expected.split()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("today", "2023-08-16"),
        ("What did I eat yesterday?", "2023-08-15"),
        ("last night", "2023-08-15"),
        ("the day before yesterday", "2023-08-14"),
        ("last week", LAST_WEEK),
        ("this week", "2023-08-14/2023-08-21"),
        ("in the past week", "2023-08-09/2023-08-17"),
        ("in the last two weeks", "2023-08-02/2023-08-17"),
        ("How long did it last? Did it last two weeks?", ""),
        ("last weekend", "2023-08-12/2023-08-14"),
        ("this weekend", "2023-08-19/2023-08-21"),
        ("last month", LAST_MONTH),
        ("this month", "2023-08-01/2023-09-01"),
        ("last year's trip", YEAR_2022),
        ("this year", "2023-01-01/2024-01-01"),
        ("in the last year", "2022-08-16/2023-08-17"),
        ("last Monday", "2023-08-14"),
        ("last wednesday", "2023-08-09"),
        ("last Thursday", "2023-08-10"),
        ("this Friday", "2023-08-18"),
        ("this Monday", "2023-08-14"),
        ("3 days ago", "2023-08-13"),
        ("a week ago", "2023-08-06/2023-08-13"),
        ("two weeks ago", "2023-07-30/2023-08-06"),
        ("twelve months ago", "2022-08-01/2022-09-01"),
        ("a couple of months ago", "2023-06-01/2023-07-01"),
        ("a few days ago", "2023-08-12/2023-08-15"),
        ("a few years ago", "2019-01-01/2022-01-01"),
        ("4 years ago", "2019-01-01/2020-01-01"),
        ("last spring", "2023-03-01/2023-06-01"),
        ("last summer", "2022-06-01/2022-09-01"),
        ("this summer", "2023-06-01/2023-09-01"),
        ("last fall", "2022-09-01/2022-12-01"),
        ("last winter", "2022-12-01/2023-03-01"),
        ("in the autumn of 2021", "2021-09-01/2021-12-01"),
        ("summer 2021", "2021-06-01/2021-09-01"),
        ("winter 2021", "2020-12-01/2021-03-01 2021-12-01/2022-03-01"),
        ("during the summer", "*-06 *-07 *-08"),
        ("in winter", "*-12 *-01 *-02"),
        ("Did he fall?", ""),
        ("long ago, some years", ""),
    ],
)
def test_relative_times(query, expected):
    assert written(query) == expected.split()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("gestern", "2023-08-15"),
        ("vorgestern", "2023-08-14"),
        ("heute", "2023-08-16"),
        ("letzte Woche", LAST_WEEK),
        ("im letzten Monat", LAST_MONTH),
        ("letztes Jahr", YEAR_2022),
        ("Qu'a dit Caroline hier ?", "2023-08-15"),
        ("Was hat der Router hier für eine Adresse?", ""),
        ("Wat is hier het adres van?", ""),
        ("aujourd’hui", "2023-08-16"),
        ("la semaine dernière", LAST_WEEK),
        ("le mois dernier", LAST_MONTH),
        ("l'année dernière", YEAR_2022),
        ("¿Qué dijo ayer?", "2023-08-15"),
        ("hoy", "2023-08-16"),
        ("la semana pasada", LAST_WEEK),
        ("el mes pasado", LAST_MONTH),
        ("el año pasado", YEAR_2022),
        ("Что я ел вчера?", "2023-08-15"),
        ("сегодня", "2023-08-16"),
        ("на прошлой неделе", LAST_WEEK),
        ("в прошлом месяце", LAST_MONTH),
        ("в прошлом году", YEAR_2022),
        ("她昨天说了什么", "2023-08-15"),
        ("今天", "2023-08-16"),
        ("上周", LAST_WEEK),
        ("上周末", "2023-08-12/2023-08-14"),
        ("上个月", LAST_MONTH),
        ("去年", YEAR_2022),
        ("昨日何を食べた", "2023-08-15"),
        ("一昨日", "2023-08-14"),
        ("今日", "2023-08-16"),
        ("先週", LAST_WEEK),
        ("先月", LAST_MONTH),
        ("어제는", "2023-08-15"),
        ("지난 주에", LAST_WEEK),
        ("작년", YEAR_2022),
        ("geçen yıl", YEAR_2022),
    ],
)
def test_relative_times_in_other_languages(query, expected):
    assert written(query) == expected.split()


@pytest.mark.parametrize(
    ("now", "query", "expected"),
    [
        ("2023-08-19", "last weekend", "2023-08-12/2023-08-14"),  # on Saturday
        ("2023-08-20", "last weekend", "2023-08-19/2023-08-21"),  # on Sunday
        ("2023-08-21", "last weekend", "2023-08-19/2023-08-21"),
        ("2023-08-20", "last week", LAST_WEEK),
        ("2023-08-21", "last week", "2023-08-14/2023-08-21"),
        ("2024-01-01", "last month", "2023-12-01/2024-01-01"),
        ("2024-01-31", "2 months ago", "2023-11-01/2023-12-01"),
        ("2024-02-29T23:59:59", "yesterday", "2024-02-28"),
        ("2024-02-10", "last winter", "2022-12-01/2023-03-01"),
        ("2024-02-10", "this winter", "2023-12-01/2024-03-01"),
        ("2024-03-01", "last winter", "2023-12-01/2024-03-01"),
        ("2023-05-01", "last May", MAY),
        ("2023-04-30", "last May", LAST_MAY),
    ],
)
def test_relative_times_at_the_edges_of_the_calendar(now, query, expected):
    assert written(query, at(now)) == expected.split()


def test_spans_come_in_the_order_of_the_question_each_once():
    query = "yesterday, in 2021, on May 7th, 2023-05-07, in 2021 and on 7 May 2023?"
    assert written(query) == ["2023-08-15", YEAR_2021, "*-05-07", MAY_7]


def test_a_span_is_in_whole_utc_days_wherever_the_machine_is(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        assert spans("yesterday", NOW) == [Span(at("2023-08-15"), at("2023-08-16"))]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_no_more_than_eight_spans_and_two_thousand_characters_are_looked_at():
    assert len(spans(", ".join(f"May {day}" for day in range(1, 31)), NOW)) == 8
    assert spans("x " * 999 + "today", NOW) == []
    assert written("x " * 900 + "today") == ["2023-08-16"]


# --- any text -----------------------------------------------------------------------------------

PIECES = (
    "may May march last this in of 7 31 2023 1999 05 - / . , : 7th year month week weekend monday "
    "summer winter ago a few couple two past days 年 月 日 5 去年 년 월 昨天 上周 мая "
    "2023-05 ٣ ² İ ı ’ today hier que Mai mars ago set 999 9999 0 \x00 \ud800 \u0301 \u2028"
).split(" ")
texts = (
    st.text()
    | st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)
    | (st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
)


@given(query=texts, now=st.floats(-62_135_596_800, 253_402_300_799))
@example(query="999 years ago, last year, last May, last week, this year", now=-62_135_596_800.0)
@example(query="this weekend, this year, last May, this December", now=253_402_300_799.0)
@example(query="December 31 2099, in 2099, winter 2099, winter 1900", now=0.0)
def test_any_text_gives_spans_that_make_sense(query, now):
    found = spans(query, now)
    assert len(found) == len(set(found)) <= 8
    for when in found:
        if isinstance(when, Span):
            assert math.isfinite(when.start)
            assert math.isfinite(when.end)
            assert when.start < when.end
        else:
            assert 1 <= when.month <= 12
            assert when.day is None or 1 <= when.day <= monthrange(2000, when.month)[1]


@pytest.mark.parametrize(
    "unit",
    ["1/", "may ", "7 may 2023 ", " ", "1", "5月", "e\u0301", "\u0301", "\ufdfa", "past a few ",
     "last ", "in 2023 ", "summer of ", "the day before ", "2023-", "昨", "a", "hier "],
)  # fmt: skip
def test_a_hostile_query_costs_no_more_when_it_is_longer(unit):
    def cost(length: int) -> float:
        query, best = (unit * length)[:length], math.inf
        for _ in range(5):
            start = time.perf_counter()
            spans(query, NOW)
            best = min(best, time.perf_counter() - start)
        return best

    assert cost(100_000) < 10 * cost(10_000) + 0.005


# --- closeness ----------------------------------------------------------------------------------


def occurrences(when: Span | Yearly) -> list[tuple[float, float]]:
    """Every time that ``when`` can mean in the years of the tests, by the calendar of Python."""
    if isinstance(when, Span):
        return [(when.start, when.end)]
    found = []
    for year in range(1950, 2060):
        days = monthrange(year, when.month)[1]
        if when.day is None or when.day <= days:
            start = datetime(year, when.month, when.day or 1, tzinfo=timezone.utc)
            end = start + timedelta(1 if when.day else days)
            found.append((start.timestamp(), end.timestamp()))
    return found


def naive(whens: list[Span | Yearly], created: float, tail_days: float) -> float:
    most = 0.0
    for start, end in (stretch for when in whens for stretch in occurrences(when)):
        if start <= created < end:
            most = 1.0
        elif created >= end and tail_days > 0:
            most = max(most, 1 - (created - end) / (tail_days * DAY))
    return most


moments = st.one_of(
    st.floats(at("1970-01-01"), at("2050-01-01")),
    st.dates(datetime(1970, 1, 1).date(), datetime(2050, 1, 1).date()).map(lambda d: at(f"{d}")),
)
fixed = st.tuples(moments, st.floats(1, 400 * DAY)).map(lambda s: Span(s[0], s[0] + s[1]))
yearly = st.dates().map(lambda d: Yearly(d.month, d.day)) | st.builds(Yearly, st.integers(1, 12))


@given(
    whens=st.lists(fixed | yearly | st.just(Yearly(2, 29)), max_size=8),
    created=st.lists(moments, max_size=12),
    tail_days=st.sampled_from([0.0, -1.0, 0.5, 30.0, 365.0, 1200.0]),
)
def test_closeness_is_that_of_the_calendar(whens, created, tail_days):
    close = closeness(whens, np.array(created, np.float64), tail_days)
    assert close.dtype == np.float64
    assert close.tolist() == pytest.approx(
        [naive(whens, moment, tail_days) for moment in created], abs=1e-6
    )


@given(
    query=texts,
    created=st.lists(st.floats(-62_135_596_800, 253_402_300_799), max_size=5),
    tail_days=st.floats(allow_nan=True, allow_infinity=True),
)
def test_closeness_is_between_none_and_one_for_whatever_a_question_names(query, created, tail_days):
    close = closeness(spans(query, NOW), np.array(created, np.float64), tail_days)
    assert close.shape == (len(created),)
    assert ((close >= 0) & (close <= 1)).all()


def test_people_tell_of_things_when_they_are_over():
    times = np.array([at(day) for day in ("2023-04-30", "2023-05-01", "2023-05-31", "2023-06-11")])
    for query in ("in May 2023", "in May"):
        close = closeness(spans(query, NOW), times, 20.0)
        assert close.tolist() == [0.0, 1.0, 1.0, 0.5]


def test_a_month_of_any_year_is_as_close_in_every_year():
    times = np.array([at(f"{year}-05-{day}") for year in (1999, 2016, 2040) for day in (10, 31)])
    assert closeness([Yearly(5, 11)], times, 38.0).tolist() == [0.0, 0.5] * 3


def test_many_stretches_are_told_apart_as_few_are():
    rng = np.random.default_rng(7)
    created = rng.uniform(at("1960-01-01"), at("2055-01-01"), 500)
    whens: list[Span | Yearly] = [
        Yearly(6),
        Yearly(2, 29),
        Span(at("1999-12-31"), at("2000-01-02")),
    ]
    close = closeness(whens, created, 45.0)
    assert close.tolist() == pytest.approx([naive(whens, moment, 45.0) for moment in created])


def test_no_span_and_no_time_are_close_to_nothing():
    assert closeness([], np.array([1.0, 2.0]), 30.0).tolist() == [0.0, 0.0]
    assert closeness([Yearly(5)], np.zeros(0), 30.0).shape == (0,)


def test_windows_are_the_named_times_between_two_others():
    named = [Span(10.0, 20.0), Span(90.0, 95.0), Yearly(5, 7)]
    may = datetime(2023, 5, 7, tzinfo=timezone.utc).timestamp()
    found = windows(named, 15.0, may)
    assert found[:2] == [(10.0, 20.0), (90.0, 95.0)]
    assert found[-1] == (may, may + 86_400.0)
    assert len(found) == 2 + 54  # 1970 to 2023
    assert windows([Span(10.0, 20.0)], 20.0, 30.0) == []
