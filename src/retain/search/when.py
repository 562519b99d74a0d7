"""Dates in a question: which stretches of time it names, and how close a memory is to them.

:func:`spans` reads a query, :func:`closeness` scores memories by when they were made. What is
understood, in UTC, for the years 1900 to 2099:

- Numbers: ``2023-05-07``, ``2023/05/07``, ``2023-05``, ``7.5.2023``; ``5/7/2023`` and
  ``5-7-2023`` both ways round; ``2023年5月7日``, ``5月``, ``2023년 5월 7일``, ``去年5月``.
  A time behind a date is passed over.
- Months by name, with a day, a year or neither, in any order, in English, German, French,
  Spanish, Italian, Portuguese, Dutch, Russian, Polish and Turkish; abbreviated with a day or a
  year, or after "in", "last", "since" ...  A name that is also a word or a person ("may",
  "march", "june", "mars", "mayo", "марта") counts with a day, a year, another month, or a word
  before it as dates have ("in", "last", "seit"), May and March also by a capital amid a
  sentence; an abbreviation that is a word ("set", "ago") only with day and year.
- A year after a word such as "in", "since", "of", "im Jahr", "depuis", "в"; no other number.
- today, yesterday, the day before; last, this and past week, weekend, month, year, weekday and
  season (northern: summer is June to August); the past two weeks; three months ago, a few years
  ago; summer 2021, in the summer. The commonest of these in other languages, Chinese, Japanese
  and Korean among them.

Conventions: weeks begin on Monday. "Last week" is the week before this one, "the past week" the
seven days to today. "Last Monday" and "last weekend" began before today; "last May" is the
latest that has begun, "last summer" the latest that is over, "winter 2021" either winter with a
part in 2021. "Two weeks ago" is that day and three each way, "two months ago" a whole month,
"a few days ago" from four days ago to two. "Since 2021" names 2021.
"""

from __future__ import annotations

import functools
import operator
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

from ..clock import DAY, FOR_EVER, as_datetime
from ..stopwords import stop_words

__all__ = ["Span", "When", "Yearly", "closeness", "spans", "windows"]

Floats = npt.NDArray[np.float64]

_LOOKED_AT = 2_000  # characters of a query
_MOST = 8  # spans that a query gives
_FEW = 100  # stretches up to which comparing with each is quicker than a binary search


@dataclass(frozen=True, slots=True)
class Span:
    """The time from ``start`` up to ``end``, in epoch seconds; ``end`` is outside."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Yearly:
    """A month (1 to 12) of any year, or a day of it (1 to 31) where ``day`` is given."""

    month: int
    day: int | None = None


When = Span | Yearly
Found = tuple[int, int, list[When]]  # from where to where in the text, and what it names


# --- how close ----------------------------------------------------------------------------------


def closeness(spans: Sequence[When], created: Floats, tail_days: float) -> Floats:
    """How close each time is to the nearest of ``spans``, in [0, 1], of the shape of ``created``.

    1 within a span and 0 before it; after its end it falls in a straight line to 0 over
    ``tail_days`` (at once, if that is not above 0), since people tell of things when they are
    over. Of several spans the one that gives most counts. ``created``: epoch seconds, finite.

    >>> closeness([Span(0.0, DAY)], np.array([-1.0, 0.0, 2 * DAY, 9 * DAY]), 4.0).tolist()
    [0.0, 1.0, 0.75, 0.0]
    """
    if not spans or not created.size:
        return np.zeros(created.shape)
    tail = min(tail_days, FOR_EVER) * DAY
    starts, ends = _stretches(spans, created, tail)
    order = np.argsort(starts)
    starts = starts[order]
    # All fall alike, so that of those that have begun the one with the latest end gives most.
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(ends[order])])
    since = created - latest[_begun(starts, created)]
    if not tail > 0:
        return np.where(since < 0, 1.0, 0.0)
    since /= -tail
    since += 1.0
    result: Floats = np.clip(since, 0.0, 1.0, out=since)
    return result


def windows(spans: Sequence[When], oldest: float, newest: float) -> list[tuple[float, float]]:
    """From when to when the times are that ``spans`` name, as far as they lie between two."""
    starts, ends = _stretches(spans, np.array([oldest, newest]), 0.0)
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [(start, end) for start, end in pairs if start <= newest and end > oldest]


def _begun(starts: Floats, created: Floats) -> npt.NDArray[np.intp]:
    """How many of the sorted ``starts`` are not after each time."""
    if len(starts) > _FEW:
        return np.searchsorted(starts, created, "right")
    count = np.zeros(created.shape, np.int8)
    for start in starts:
        count += created >= start
    return count.astype(np.intp)


def _stretches(spans: Sequence[When], created: Floats, tail: float) -> tuple[Floats, Floats]:
    """Starts and ends of ``spans``; of a yearly one, all that can matter to ``created``."""
    fixed = [(span.start, span.end) for span in spans if isinstance(span, Span)]
    yearly = [span for span in spans if isinstance(span, Yearly)]
    starts = [np.array([start for start, _ in fixed], np.float64)]
    ends = [np.array([end for _, end in fixed], np.float64)]
    if yearly:
        lowest, highest = float(created.min()) - max(tail, 0.0), float(created.max())
        limits = np.array([lowest, highest]).astype("M8[s]").astype("M8[Y]").astype(np.int64)
        januaries = np.arange(limits[0] - 1, limits[1] + 1) * 12
        for span in yearly:
            month = januaries + (span.month - 1)
            first, end = month.astype("M8[M]"), (month + 1).astype("M8[M]").astype("M8[D]")
            start = first.astype("M8[D]")
            if span.day is not None:
                start = start + np.timedelta64(span.day - 1, "D")
                start = start[start.astype("M8[M]") == first]  # 29 February
                end = start + np.timedelta64(1, "D")
            began, ended = (days.astype(np.float64) * DAY for days in (start, end))
            matters = (began <= highest) & (ended > lowest)
            starts.append(began[matters])
            ends.append(ended[matters])
    return np.concatenate(starts), np.concatenate(ends)


# --- tables -------------------------------------------------------------------------------------

# One line a month. Behind a colon what a word that isn't a month's name alone needs beside it:
# a word before it as languages have it (a key of _CUES), or day and year ("both").
_MONTH_NAMES = """
january januar jänner janvier enero gennaio janeiro:pt januari январь января январе январю styczeń \
 stycznia styczniu ocak:tr ocakta jan:short janv:short ene:short янв:short gen:both
february februar février fevrier febrero febbraio fevereiro februari февраль февраля феврале \
 февралю luty lutego lutym şubat şubatta feb:short févr:short fevr:short fev:short фев:short
march:en märz maerz mars:fr marzo março maart март марта:ru марте:ru марту:ru marzec marca:pl \
 marcu mart:tr martta mar:short mrz:short mrt:short мар:short
april:en+de avril:fr abril aprile апрель апреля апреле апрелю kwiecień kwietnia kwietniu nisan \
 nisanda apr:short avr:short abr:short апр:short
may:en mai:de+fr mayo:es maggio maio mei:nl май мая мае maj:pl maja:pl maju:pl mayıs mayısta \
 mag:both
june:en juni juin junio giugno junho июнь июня июне июню czerwiec czerwca czerwcu haziran \
 haziranda jun:short giu:short июн:short
july juli juillet julio:es luglio julho июль июля июле июлю lipiec lipca lipcu temmuz temmuzda \
 jul:short juil:short lug:short июл:short
august:en+de août aout agosto augustus:nl август августа августе августу sierpień sierpnia \
 sierpniu ağustos ağustosta aug:short авг:short ago:both
september septembre septiembre setiembre settembre setembro сентябрь сентября сентябре \
 сентябрю wrzesień września wrześniu eylül:tr eylülde sep:short sept:short сен:short сент:short \
 set:both
october oktober octobre octubre ottobre outubro октябрь октября октябре октябрю październik \
 października październiku ekim:tr ekimde oct:short okt:short ott:short окт:short out:both
november novembre noviembre novembro ноябрь ноября ноябре ноябрю listopad listopada \
 listopadzie kasım:tr kasımda nov:short ноя:short нояб:short
december dezember décembre decembre diciembre dicembre dezembro декабрь декабря декабре \
 декабрю grudzień grudnia grudniu aralık:tr aralıkta dec:short déc:short dez:short dic:short \
 дек:short
"""
_CUES = {
    "en": "in|last|past|this|since|of|on|by|during|early|late|mid|until|till|before|after|around"
    "|between|from|every",
    "de": "im|seit|ende|anfang|mitte|letzte[nm]|diese[nm]|bis|vom|ab",
    "fr": "en|de|depuis|début|fin|mi|dès|ce",
    "es": "en|desde|este|hasta|(?:mes|fines|finales|mediados|principios|inicios) de",
    "pt": "em|desde|até|(?<!rio )de",
    "nl": "in|sinds|begin|eind|half|vorige|afgelopen|tot|vanaf",
    "pl": "w|od|do|po|przed|koniec|końcu|początku|połowie",
    "ru": "в|с|до|после|начал[ео]|начала|конц[еа]|конец|середин[еы]|прошл(?:ого|ом)|эт(?:ого|ом)",
    "tr": "geçen|bu|her",
    "short": "in|last|since|this|early|late|mid|during",
    "both": r"(?!)",
}
_VERBS = {"may", "march"}  # "this may", in small letters, goes on with a verb more often than not
_CAPITALS = {*_VERBS, "mai"}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_CJK = "\u2e80"  # from here on scripts whose words stick together
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # their first months
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
_DAYS_IN = {"day": 1, "week": 7, "month": 30, "year": 365}

# Units, how many ago they were, and the phrases for that.
_PHRASES = """
day0 today|heute|aujourd'hui|hoy|oggi|hoje|vandaag|сегодня|dzisiaj|dziś|bugün|今天|今日|오늘
day1 yesterday|last night|gestern|hier|ayer|ieri|ontem|gisteren|вчера|wczoraj|dün|昨天|昨日|\
きのう|어제
day2 day before yesterday|vorgestern|avant-hier|anteayer|позавчера|前天|一昨日|おととい|그저께
weekend0 this weekend|dieses wochenende|ce week-end|这个周末|这周末|今週末
weekend1 last weekend|past weekend|letztes wochenende|week-end dernier|上个周末|上周末|先週末
week0 this week|diese woche|dieser woche|cette semaine|esta semana|этой неделе|这周|這週|本周|\
今週|이번 주|이번주
week1 last week|previous week|letzte woche|letzter woche|letzten woche|vorige woche|\
voriger woche|semaine dernière|semaine passée|semana pasada|semana passada|settimana scorsa|\
vorige week|afgelopen week|прошлой неделе|прошлая неделя|прошлую неделю|zeszłym tygodniu|\
geçen hafta|上周|上週|上个星期|上星期|上個星期|上个礼拜|上礼拜|先週|지난 주|지난주
month0 this month|diesen monat|diesem monat|ce mois-ci|este mes|этом месяце|这个月|這個月|本月|\
今月|이번 달|이번달
month1 last month|previous month|letzten monat|letzter monat|vorigen monat|mois dernier|\
mois passé|mes pasado|mês passado|mese scorso|vorige maand|afgelopen maand|прошлом месяце|\
прошлый месяц|zeszłym miesiącu|geçen ay|上个月|上月|上個月|先月|지난 달|지난달
year0 this year|dieses jahr|diesem jahr|cette année|este año|этом году|bu yıl|bu sene
year1 last year|previous year|letztes jahr|letzten jahr|voriges jahr|vorigen jahr|an dernier|\
an passé|année dernière|année passée|año pasado|ano passado|anno scorso|vorig jaar|\
afgelopen jaar|прошлом году|прошлый год|zeszłym roku|geçen yıl|geçen sene|지난해
"""


def _small(text: str) -> str:
    """``text`` in small letters, with one i for the two of Turkish and one е for Russian's."""
    text = text.lower()
    return text if text.isascii() else text.translate(_ONE_I).replace("i\u0307", "i")


_ONE_I = str.maketrans("ıё", "iе")
_MONTHS = {
    word: (number, rule)
    for number, line in enumerate(_small(_MONTH_NAMES).strip().splitlines(), 1)
    for word, _, rule in (entry.partition(":") for entry in line.split())
}

# --- patterns: for small letters and single spaces ----------------------------------------------

_WORD = re.compile(r"[^\W\d_]+")
_HINT = re.compile(
    r"[\d年月週周天昨]|어제|오늘|그저께|이번|지난|작년|올해|きのう|おととい|星期|礼拜"
)
_YEAR = r"(?:19|20)\d\d(?!\d)"
_NAMED_YEAR = rf"(?:{_YEAR}|(?:last|this) year(?!\w))"
_DAY = r"(?:[12]\d|3[01]|0?[1-9])"
_ALONE = r"(?<![\w.,/-])"
_DATES = [  # of digits
    re.compile(pattern)
    for pattern in (
        rf"{_ALONE}(?P<y>(?:19|20)\d\d)([-/])(?P<m>\d\d?)\2(?P<d>\d\d?)(?!\d|[-/.]\d)",
        rf"{_ALONE}(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?!\w|[-/.]\d)",
        rf"{_ALONE}(?P<d>\d\d?)\. ?(?P<m>\d\d?)\. ?(?P<y>{_YEAR})(?![-/.]\d)",
        rf"{_ALONE}(?P<d>\d\d?)([-/])(?P<m>\d\d?)\2(?P<y>{_YEAR})(?P<both>)(?![-/.]\d)",
        r"(?<!\d)(?P<y>(?:19|20)\d\d ?[年년]|[去昨今]年|작년|올해)(?: ?[の的]?(?P<m>\d\d?) ?[月월]"
        r"(?: ?(?P<d>\d\d?) ?[日号號일])?)?",
        r"(?<!\d)(?P<m>\d\d?) ?[月월](?: ?(?P<d>\d\d?) ?[日号號일])?",
    )
]
_BEFORE_MONTH = re.compile(
    rf"(?:(?<![\w.:/])(?P<day>{_DAY})(?:st|nd|rd|th|er|[.ºª°]|-?го)? ?(?:(?:of|de|di) )?"
    rf"|(?<!\w)(?P<year>{_NAMED_YEAR}),? (?:in )?|(?<!\w)(?P<which>last|past|this) )\Z"
)
_DAY_AFTER = re.compile(rf"\.? (?:the )?(?P<day>{_DAY})(?:st|nd|rd|th|\.)?(?!\w|[.:/]\d|%)")
_YEAR_AFTER = re.compile(
    rf"[.,]? ?(?:(?:of|in|de|del|do) )?(?P<year>{_NAMED_YEAR})(?![-/]\d\d?(?!\d))"
)
_CUE_AFTER = re.compile(
    r" (?:dernier|passé|pasado|passado|scorso|ayi\w*)(?!\w)|['’][td][ae]n?(?!\w)"
)
_BETWEEN_MONTHS = re.compile(
    r" ?(?:,|[-–]|,? (?:and|or|to|until|through|und|bis|et|ou|y|e|и|en|i)) ?"
)
_CUED_YEAR = re.compile(
    r"(?<!\w)(?:(?:in|since|during|of|by|until|till|before|after|from|between|around|year|jahre?"
    r"|seit|von|bis|zwischen|entre|между|anno|en|depuis|année|desde|año|nel|dal|em|ano|sinds|jaar|в|с|w|od|roku"
    rf"|(?<=\d\d\d\d )(?:and|or|to|und|bis|et|y|e|и)) (?P<year>{_YEAR})"
    rf"|(?P<year_before>{_YEAR}) (?:год[уа]?|roku|yili?\w*))"
    r"(?!\w|[.,:/-]\d| ?[%€$£°]| (?:people|words|steps|dollars|euros|years|times|miles|users))"
)
_COUNT = rf"(?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)}|an?|(?:a )?couple(?: of)?|(?:a )?few)"
_AGO = re.compile(rf"(?<![\w.]){_COUNT} (?P<unit>day|week|month|year)s? ago(?!\w)")
_PAST = re.compile(  # not "did it last two weeks?"
    rf"(?<!\w)(?:(?:(?:the|these|over|during|in|for) last|past) {_COUNT} "
    r"(?P<unit>day|week|month|year)s?|(?:(?:in|over|during) the last|past) "
    r"(?P<one>day|week|month|year))(?!\w)"
)
_WEEKDAY = re.compile(rf"(?<!\w)(last|past|previous|this) ({'|'.join(_WEEKDAYS)})(?!\w)")
_SEASON = re.compile(
    rf"(?<!\w)(?:(?P<which>last|past|previous|this|in|during) (?:the )?)?(?P<season>"
    rf"{'|'.join(_SEASONS)})(?:,?(?: of)? (?P<year>{_NAMED_YEAR}))?(?!\w)"
)
_RELATIVE = {
    phrase: (name[:-1], int(name[-1]))
    for name, _, phrases in (line.partition(" ") for line in _small(_PHRASES).strip().splitlines())
    for phrase in phrases.split("|")
}
_STUCK = [phrase for phrase in _RELATIVE if phrase[-1] >= _CJK]
_STUCK_PHRASE = re.compile("|".join(sorted(_STUCK, key=len, reverse=True)))
# What there is to read where one of these words is; a query with none, and no digit, names no time.
_RELATIVE_WORDS = frozenset(
    ["ago", "past", *(f"{unit}s" for unit in _DAYS_IN), *_WEEKDAYS]
    + [_WORD.findall(phrase)[-1] for phrase in _RELATIVE]
)
_WORDS = _RELATIVE_WORDS.union(_MONTHS, _SEASONS)


@functools.cache
def _cue(rule: str) -> re.Pattern[str]:
    cues = "|".join(_CUES[key] for key in rule.split("+"))
    return re.compile(rf"(?<!\w)(?:{_small(cues)})[ -](?:the )?\Z")


# --- stretches of the calendar ------------------------------------------------------------------


def _between(first: date, after: date) -> Span:
    start, end = ((day - date(1970, 1, 1)).days * DAY for day in (first, after))
    return Span(start, end)


def _month(year: int, month: int, months: int = 1) -> Span:
    """``months`` from that one on; any ``month``, 0 being the December before."""
    first, after = (divmod(year * 12 + month - 1 + more, 12) for more in (0, months))
    return _between(date(first[0], first[1] + 1, 1), date(after[0], after[1] + 1, 1))


def _named(year: int | None, month: int | None, day: int | None) -> list[When]:
    """The date with these parts; none if there is no such day, as 31 February."""
    try:
        parts = (2000 if year is None else year, month, day)
        first = date(*(1 if part is None else part for part in parts))
        if month is None:
            return [_month(first.year, 1, 12)]
        if year is None:
            return [Yearly(month, day)]
        if day is None:
            return [_month(year, month)]
        return [_between(first, first + timedelta(1))]
    except (ValueError, OverflowError):
        return []


def _back(unit: str, count: int, today: date) -> Span:
    """The day, calendar week, weekend, month or year that was ``count`` ago."""
    if unit == "month":
        return _month(today.year, today.month - count)
    if unit == "year":
        return _month(today.year - count, 1, 12)
    if unit == "day":
        first, days = today, 1
    else:
        first, days = today - timedelta(today.weekday()), 7
        if unit == "weekend":
            first, days = first + timedelta(5), 2
            if count and first < today:  # it's Sunday, and the weekend began yesterday
                count = 0
        count *= 7
    first -= timedelta(count)
    return _between(first, first + timedelta(days))


def _ago(unit: str, far: int, near: int, today: date) -> Span:
    """From ``far`` to ``near`` units ago, as roughly as people mean it."""
    if unit == "week":
        first, last = today - timedelta(7 * far + 3), today - timedelta(7 * near - 3)
        return _between(first, last + timedelta(1))
    return Span(_back(unit, far, today).start, _back(unit, near, today).end)


# --- readers: of small, tidy text ---------------------------------------------------------------


def _year_of(text: str | None, today: date) -> int | None:
    if not text:
        return None
    if text[:4].isdecimal():
        return int(text[:4])
    return today.year - (text not in ("this year", "今年", "올해"))


def _read_dates(text: str, today: date) -> Iterator[Found]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            part = match.groupdict()
            year = _year_of(part.get("y"), today)
            month, day = (int(part[key]) if part.get(key) else None for key in "md")
            named = _named(year, month, day)
            if "both" in part:
                named += _named(year, day, month)
            yield match.start(), match.end(), named


def _read_months(text: str, cased: str, today: date) -> Iterator[Found]:
    done = 0  # up to where the text belongs to a month before
    for word in _WORD.finditer(text):
        month, rule = _MONTHS.get(word[0], (0, ""))
        start, end = word.span()
        if not month or start < done:
            continue
        before = _BEFORE_MONTH.search(text, max(done, start - 20), start)
        day, year, which = before.group("day", "year", "which") if before else (None, None, None)
        if not day and (match := _DAY_AFTER.match(text, end)):
            day, end = match["day"], match.end()
        if not year and (match := _YEAR_AFTER.match(text, end)):
            year, end = match["year"], match.end()
        if rule == "both" and not (day and year):
            continue
        if not (day or year or not rule or _is_cued(word, rule, cased, done)):
            continue
        number = _year_of(year, today)
        if which and not day and not year:
            number = today.year - (which != "this" and month > today.month)
        named = _named(number, month, int(day) if day else None)
        yield (before or word).start(), end, named
        done = end


def _is_cued(word: re.Match[str], rule: str, cased: str, done: int) -> bool:
    """Whether what stands around a month that may be another word says that it is one."""
    text, (start, end) = word.string, word.span()
    if done and _BETWEEN_MONTHS.fullmatch(text, done, start):
        return True
    if word[0] in _CAPITALS and cased[start].isupper() and cased[start + 1].islower():
        previous = cased[max(0, start - 30) : start].rstrip(" ,").rpartition(" ")[2]
        if previous[:1].islower() and previous[-1].isalnum():  # not "Theresa May", not a title
            return True
    if word[0] in _VERBS and text.startswith("this ", start - 5) and start >= 5:
        return not text[end : end + 2].strip().isalnum()
    return bool(_cue(rule).search(text, max(0, start - 20), start) or _CUE_AFTER.match(text, end))


def _read_relative(text: str, today: date) -> Iterator[Found]:
    for match in _AGO.finditer(text):
        yield *match.span(), [_ago(match["unit"], *_count(match["n"]), today)]
    for match in _PAST.finditer(text):
        unit, (most, _) = match["unit"] or match["one"], _count(match["n"] or "a")
        first = today - timedelta(most * _DAYS_IN[unit])
        yield *match.span(), [_between(first, today + timedelta(1))]
    words = [word.span() for word in _WORD.finditer(text)]
    here = "hier" in text and not _is_french(text)
    for at, (start, _) in enumerate(words):
        for _, end in words[at : at + 3]:
            phrase = text[start:end]
            if phrase in _RELATIVE and not (here and phrase == "hier"):
                yield start, end, [_back(*_RELATIVE[phrase], today)]
    for match in _STUCK_PHRASE.finditer(text):
        yield *match.span(), [_back(*_RELATIVE[match[0]], today)]
    for match in _WEEKDAY.finditer(text):
        ahead = _WEEKDAYS.index(match[2]) - today.weekday()
        if match[1] != "this" and ahead >= 0:
            ahead -= 7
        yield *match.span(), [_back("day", -ahead, today)]


def _count(text: str) -> tuple[int, int]:
    """The most and the least that a number can mean."""
    if text.isdecimal():
        return int(text), int(text)
    if text.endswith("few"):
        return 4, 2
    number = 2 if "couple" in text else _NUMBERS.index(text) + 1 if text in _NUMBERS else 1
    return number, number


def _is_french(text: str) -> bool:
    """Whether "hier" is yesterday, or the "here" of German and Dutch."""
    words = set(_WORD.findall(text)) - {"hier"}
    french, german, dutch = (len(words & stop_words(name)) for name in ("fr", "de", "nl"))
    return french > max(german, dutch)


def _read_seasons(text: str, today: date) -> Iterator[Found]:
    for match in _SEASON.finditer(text):
        which, first = match["which"], _SEASONS[match["season"]]
        named: list[When] = []
        if year := _year_of(match["year"], today):
            years = (year - 1, year) if first == 12 else (year,)
            named += [_month(each, first, 3) for each in years]
        elif which in ("in", "during"):
            named += [Yearly((first + more - 1) % 12 + 1) for more in range(3)]
        elif which:
            year = today.year - (first == 12 and today.month < 3)
            if which != "this" and _month(year, first, 3).end > _between(today, today).end:
                year -= 1
            named.append(_month(year, first, 3))
        yield match.start(), match.end(), named


def _read_years(text: str) -> Iterator[Found]:
    for match in _CUED_YEAR.finditer(text):
        year = int(match["year"] or match["year_before"])
        yield *match.span(), _named(year, None, None)


def spans(query: str, now: float) -> list[When]:
    """The times that ``query`` names, asked at ``now`` (epoch seconds): distinct, in order.

    At most 8, of the first 2,000 characters; [] if there are none. For any string.

    >>> from datetime import datetime, timezone
    >>> now = datetime(2023, 8, 16, tzinfo=timezone.utc).timestamp()
    >>> spans("What did Caroline say on May 7th?", now)
    [Yearly(month=5, day=7)]
    >>> spans("And last May?", now) == spans("2023-05", now) == [Span(1682899200.0, 1685577600.0)]
    True
    """
    text = query[:_LOOKED_AT]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)[:_LOOKED_AT].replace("’", "'")
    small = _small(text)
    words = _WORDS.intersection(_WORD.findall(small))
    if not words and not _HINT.search(small):
        return []
    text = " ".join(text.split())
    small = _small(text)
    cased = text if len(text) == len(small) else small  # for a capital, places must agree
    taken = bytearray(len(small))
    found: list[Found] = []
    for start, end, named in _read(small, cased, words, as_datetime(now).date()):
        if named and not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            found.append((start, end, named))
    found.sort(key=operator.itemgetter(0))
    return list(dict.fromkeys(when for _, _, named in found for when in named))[:_MOST]


def _read(text: str, cased: str, words: frozenset[str], today: date) -> Iterator[Found]:
    """What all readers find; where two read the same words, the first is right."""
    digits = bool(_HINT.search(text))
    if digits:
        yield from _read_dates(text, today)
    if not words.isdisjoint(_MONTHS):
        yield from _read_months(text, cased, today)
    if 1900 <= today.year <= 2099:
        if not words.isdisjoint(_SEASONS):
            yield from _read_seasons(text, today)
        if not words.isdisjoint(_RELATIVE_WORDS) or not text.isascii():
            yield from _read_relative(text, today)
    if digits:
        yield from _read_years(text)
