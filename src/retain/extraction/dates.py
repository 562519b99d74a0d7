"""The day that a sentence names, seen from the day on which it was said.

``tomorrow``, ``next Friday``, ``vor drei Tagen``, ``14 de mayo``, ``下周三``: in English, German,
Spanish, French, Portuguese, Japanese and Chinese. Weeks begin on Monday. "Next Friday" is that
of the next week (in Spanish, French and Portuguese the next one to come), "on Friday" the next
one to come, or the last one where the sentence is of the past. (``search/when.py`` reads
questions about the past, and names stretches; here it is one day, and mostly one to come.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

__all__ = ["Named", "is_past", "may_begin", "named"]


class Named(NamedTuple):
    """A date in a text: what it is, and where its words begin and end.

    ``date``: ``2026-12-11``, ``2026-W50``, ``2026-12`` or ``2026``. ``spelt``: whether the words
    are the whole date already, year included.
    """

    date: str
    end: int
    spelt: bool
    start: int = 0


def is_past(when: str, day: date) -> bool:
    """Whether a date in any of its forms was over on ``day``.

    >>> is_past("2026-11", date(2026, 12, 1)), is_past("2026-W49", date(2026, 12, 1))
    (True, False)
    """
    year, week, _ = day.isocalendar()
    here = f"{year:04}-W{week:02}" if "W" in when else day.isoformat()
    return when < here[: len(when)]


_DAYS = {
    -2: "day before yesterday|vorgestern|anteayer|antes de ayer|avant-hier|anteontem|一昨日|前天",
    -1: "yesterday|last night|gestern|ayer|anoche|ontem|昨日|昨天|昨晚",
    0: "today|tonight|this (?:morning|afternoon|evening)|heute|hoy|aujourd'hui|hoje|今日|今天|今晚",
    1: "tomorrow|(?<!guten )(?<!heute )(?<!am )(?<!jeden )morgen"
    "|(?<!la )(?<!esta )(?<!pasado )mañana|demain|amanhã|明日|明天",
    2: "day after tomorrow|übermorgen|pasado mañana|après-demain|depois de amanhã|明後日|后天|後天",
}
_OFFSETS = {-3: "大前天", 3: "大后天"} | _DAYS
_WEEKDAYS = (
    "monday|montag|lunes|lundi|segunda",
    "tuesday|dienstag|martes|mardi|terça",
    "wednesday|mittwoch|miércoles|mercredi|quarta",
    "thursday|donnerstag|jueves|jeudi|quinta",
    "friday|freitag|viernes|vendredi|sexta",
    "saturday|samstag|sonnabend|sábado|samedi",
    "sunday|sonntag|domingo|dimanche",
)
_MONTHS = (
    "january|jan|januar|jänner|enero|janvier|janeiro",
    "february|feb|februar|febrero|février|fevereiro",
    "march|mar|märz|marzo|mars|março",
    "april|apr|abril|avril",
    "may|mai|mayo|maio",
    "june|jun|juni|junio|juin|junho",
    "july|jul|juli|julio|juillet|julho",
    "august|aug|agosto|août",
    "september|sept|sep|septiembre|septembre|setembro",
    "october|oct|oktober|octubre|octobre|outubro",
    "november|nov|noviembre|novembre|novembro",
    "december|dec|dezember|diciembre|décembre|dezembro",
)
_NUMBERS = (
    "a|an|one|ein|eine|einem|einer|un|una|une|um|uma|一",
    "two|a couple of|zwei|dos|deux|dois|duas|二|两|兩",
    "three|drei|tres|trois|três|三",
    "four|vier|cuatro|quatre|quatro|四",
    "five|fünf|cinco|cinq|五",
    "six|sechs|seis|六",
    "seven|sieben|siete|sept|sete|七",
    "eight|acht|ocho|huit|oito|八",
    "nine|neun|nueve|neuf|nove|九",
    "ten|zehn|diez|dix|dez|十",
)
_UNITS = {
    "day": "days?|tag(?:en?)?|días?|jours?|dias?|日間?|天",
    "week": "weeks?|wochen?|semanas?|semaines?|週間|个?星期|周|週",
    "month": "months?|monat(?:en?)?|mes(?:es)?|mois|mês|か月|ヶ月|个月|個月",
    "year": "years?|jahr(?:en?)?|años?|ans?|anos?|年",
}


def _index(lines: tuple[str, ...]) -> dict[str, int]:
    return {word: at for at, line in enumerate(lines) for word in line.split("|")}


_WEEKDAY_OF, _MONTH_OF, _NUMBER_OF = map(_index, (_WEEKDAYS, _MONTHS, _NUMBERS))
_LONG = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_NUMBER = rf"\d{{1,3}}|{'|'.join(sorted(_NUMBER_OF, key=len, reverse=True))}"
_UNIT = "|".join(f"(?P<{name}>{words})" for name, words in _UNITS.items())
_DAY = r"(?P<d>3[01]|[12]\d|0?[1-9])"
_YEAR = r"(?P<y>(?:19|20)\d\d)"

_ISO = re.compile(rf"(?<![\w.-]){_YEAR}-(?P<m>\d\d)-(?P<d>\d\d)(?!\w|-\d)")
_DOTTED = re.compile(rf"(?<![\w.]){_DAY}\. ?(?P<m>1[0-2]|0?[1-9])\.(?: ?{_YEAR})?(?!\w)")
_EASTERN = re.compile(rf"(?:{_YEAR}年)?(?P<m>1[0-2]|0?[1-9])月{_DAY}[日号號]")
_DAY_FIRST = re.compile(
    rf"(?<![\w.]){_DAY}(?:st|nd|rd|th|er|[.º])?(?: of| de)? (?P<month>{_LONG})(?!\w)"
    rf"(?:,? (?:de |of )?{_YEAR})?"
)
_MONTH_FIRST = re.compile(
    rf"(?<!\w)(?P<month>{_LONG})\.? (?:the )?{_DAY}(?:st|nd|rd|th)?(?![\w:])(?:,? {_YEAR})?"
)
_MONTH_ALONE = re.compile(
    rf"(?<!\w)(?:in|im|en|em) (?P<month>{_LONG})(?!\w| \d)(?: (?:de )?{_YEAR})?"
)
_OFFSET = re.compile(
    "|".join(
        rf"(?P<{'ago' if days < 0 else 'in'}{abs(days)}>"
        + "|".join(w if w[-1] >= "⺀" else rf"(?<![\w-]){w}(?!\w)" for w in words.split("|"))
        + ")"
        for days, words in sorted(_OFFSETS.items(), key=lambda each: -abs(each[0]))
    )
)
_HIER = re.compile(r"(?<![\w-])hier(?!\w)")
_FRENCH = re.compile(r"(?<!\w)(?:je|j'|nous|mon|ma|mes|on|le|la|les|elle|il)(?!\w)|j'")
_AHEAD = re.compile(
    rf"(?<!\w)(?:in|en|dentro de|dans|em|daqui a) (?P<n>{_NUMBER}) (?:{_UNIT})(?:'? time)?(?!\w)"
)
_FROM_NOW = re.compile(rf"(?<!\w)(?P<n>{_NUMBER}) (?:{_UNIT}) from now(?!\w)")
_AGO = re.compile(rf"(?<!\w)(?P<n>{_NUMBER}) (?:{_UNIT}) (?:ago|atrás)(?!\w)")
_AGO_AFTER = re.compile(
    r"(?<!\w)(?:(?<!seit )vor|(?<!desde )hace|il y a|(?<!desde )há) "
    rf"(?P<n>{_NUMBER}) (?:{_UNIT})(?!\w)"
)
_EASTERN_COUNT = re.compile(rf"(?P<n>{_NUMBER}) ?(?:{_UNIT})(?P<way>后|後|以后|之后|前|以前|之前)")
_WEEKDAY = re.compile(
    r"(?<!\w)(?P<which>next|this(?: coming)?|coming|last|past|on|by|until|before|am|nächsten|"
    r"nächster|kommenden|diesen|letzten|bis|el próximo|el pasado|este|el|ce|na próxima|no próximo|"
    r"próxima|próximo|na|no|nesta|neste) (?:week'?s )?"
    rf"(?P<weekday>{'|'.join(_WEEKDAY_OF)})(?:-feira)?(?: (?P<after>que viene|que vem|próximo|"
    r"prochain|dernier|pasado|passad[ao]))?(?!\w)"
)
_FRENCH_DAY = re.compile(
    rf"(?<!\w)(?P<weekday>{_WEEKDAYS[0].split('|')[3]}|mardi|mercredi|jeudi|vendredi|samedi|dimanche)"
    r"(?: (?P<after>prochain|dernier))(?!\w)"
)
_EASTERN_DAY = re.compile(
    r"(?:(?P<which>下下?|这|這|本|上|来|今|先)个?(?:周|週|星期|礼拜)の?|(?<![每毎])(?:周|星期|礼拜))"
    r"(?P<weekday>[一二三四五六日天月火水木金土])(?:曜日?)?"
)
_STRETCH = re.compile(
    r"(?<!\w)(?P<which>next|this|last|nächste[ns]?|diese[ns]?|letzte[ns]?|kommende[ns]?) "
    r"(?P<unit>week(?:end)?|month|year|woche(?:nende)?|monat|jahr)(?!\w)"
    r"|(?<!\w)(?P<unit2>semana|mes|año|semaine|mois|week-end|an|mês|ano|fim de semana) "
    r"(?P<which2>que viene|que vem|prochaine?|dernière?|pasad[ao]|passad[ao]|próxim[ao])(?!\w)"
    r"|(?<!\w)(?P<which4>próxim[ao]) (?P<unit4>semana|mes|año|mês|ano)(?!\w)"
    r"|(?P<which3>下个?|上个?|这个?|来|先|今)(?P<unit3>周末|週末|周|週|星期|月)(?![一二三四五六日天末])"
)
_EASTERN_DAYS = {
    day: at
    for at, days in enumerate(("一月", "二火", "三水", "四木", "五金", "六土", "日天"))
    for day in days
}
_PAST = re.compile(
    r"(?<!\w)(?:was|were|did|had|(?<!'ve )(?<!have )(?<!has )got|"
    r"broke|bought|went|met|lost|won|began|left|gave|came|saw|took|"
    r"sold|quit|flew|ran|made|became|(?!\w?\w?\w?(?:eed|bed|red)\b)\w{2,}ed|"
    r"hatte|wurde|war|waren|fui|tuve|"
    r"(?:hab|habe|hat|haben|bin|ist|sind) .{0,80}\b(?:\w{0,9}ge|ver|be|ent|er|zer)\w{2,20}(?:t|en)"
    r"(?=\W*(?:$|und\b|,|\.))|"
    r"\w{2,}[éó]|\w{2,}(?:ei|ou)|ai \w+|avons \w+|j'ai \w+|est né\w*)(?!\w)|了|ました"
)
_PUT_OFF = re.compile(
    r"\b(?:moved to|postponed|rescheduled|planned|scheduled|booked|verschoben|geplant|aplazad|"
    r"reportée?|adiad|prevu|prévue?|previst)"
)
_NEXT = ("next", "nächst", "下", "来", "kommende", "que v", "proch", "próx")
_LAST = ("last", "past", "letzt", "上", "先", "derni", "pas", "el pas")


_BEGINS = re.compile(
    r"\d|the (?=day|\d)|next|last|this|on |in |at |am |im |vor |nächste|letzte|kommende|"
    r"diese|el |en |hace |dentro |il y a |dans |ce |na |no |em |há |daqui |próxim|la semana|"
    rf"(?:{_NUMBER}) |{'|'.join(_OFFSETS.values())}|hier|"
    rf"{'|'.join(_WEEKDAYS)}|{'|'.join(_MONTHS)}|[下上这這本来今先周星礼一二三四五六七八九十两]",
    re.IGNORECASE,
)


def may_begin(text: str) -> bool:
    """Whether ``text`` looks as if it began with a date; quick.

    >>> may_begin("Next Friday we fly"), may_begin("We fly next Friday")
    (True, False)
    """
    return bool(_BEGINS.match(text))


def named(text: str, day: date) -> Named | None:
    """The first date that ``text`` names, said on ``day``; ``None`` if there is none.

    Linear in the text. What is no day of the calendar is none.

    >>> named("We fly next Friday", date(2026, 12, 1))
    Named(date='2026-12-11', end=18, spelt=False, start=7)
    """
    small = text.lower().replace("’", "'")
    if len(small) != len(text):  # places must agree
        small = "".join(c if len(c.lower()) != 1 else c.lower() for c in text).replace("’", "'")
    ahead = bool(_PUT_OFF.search(small)) or not _PAST.search(small)
    best: tuple[int, Named] | None = None
    for start, found in _read(small, text, day, ahead):
        if best is None or start < best[0]:
            best = start, found
    return None if best is None else best[1]


def _read(small: str, text: str, day: date, ahead: bool) -> Iterator[tuple[int, Named]]:
    for reader in (_ISO, _EASTERN, _DOTTED, _DAY_FIRST, _MONTH_FIRST, _MONTH_ALONE):
        if match := reader.search(small):
            month = match.groupdict().get("month")
            if month in ("may", "march", "mar") and text[match.start("month")].islower():
                continue  # a verb, a word
            if found := _absolute(match, day, ahead):
                yield (
                    match.start(),
                    Named(found, match.end(), match["y"] is not None, match.start()),
                )
    for match, found in _relative(small, text, day, ahead):
        yield match.start(), Named(found, match.end(), False, match.start())


def _absolute(match: re.Match[str], day: date, ahead: bool) -> str | None:
    parts = match.groupdict()
    month = int(parts["m"]) if parts.get("m") else _MONTH_OF[parts["month"]] + 1
    number = int(parts["d"]) if parts.get("d") else None
    years = [int(parts["y"])] if parts["y"] else [day.year - 1, day.year, day.year + 1]
    days = [found for year in years if (found := _day(year, month, number or 1))]
    if not parts["y"]:
        here = day if number else day.replace(day=1)
        days = [d for d in days if d >= here] if ahead else [d for d in days if d <= day][::-1]
    if not days:
        return None
    return days[0].isoformat() if number else days[0].isoformat()[:7]


def _relative(small: str, text: str, day: date, ahead: bool) -> Iterator[tuple[re.Match[str], str]]:
    if match := _OFFSET.search(small):
        assert match.lastgroup is not None
        sign = -1 if match.lastgroup.startswith("ago") else 1
        # "Guten Morgen", "am Morgen": a capital amid a sentence is the German noun
        if not (match[0] == "morgen" and text[match.start()] == "M" and match.start()):
            yield match, _plus(day, sign * int(match.lastgroup[-1]))
    if (match := _HIER.search(small)) and _FRENCH.search(small):
        yield match, _plus(day, -1)
    for reader, sign in ((_AHEAD, 1), (_FROM_NOW, 1), (_AGO, -1), (_AGO_AFTER, -1)):
        if match := reader.search(small):
            yield match, _counted(match, sign, day)
    if match := _EASTERN_COUNT.search(small):
        yield match, _counted(match, -1 if match["way"].endswith("前") else 1, day)
    for reader in (_WEEKDAY, _FRENCH_DAY, _EASTERN_DAY):
        if match := reader.search(small):
            yield match, _weekday(match, day, ahead)
    if match := _STRETCH.search(small):
        parts = [part for part in match.groups() if part]
        which, unit = (parts[0], parts[1]) if not match["unit2"] else (parts[1], parts[0])
        yield match, _stretch(which, unit, day)


def _counted(match: re.Match[str], sign: int, day: date) -> str:
    count = int(match["n"]) if match["n"].isdecimal() else _NUMBER_OF[match["n"]] + 1
    if match["day"] or match["week"]:
        return _plus(day, sign * count * (7 if match["week"] else 1))
    months = day.year * 12 + day.month - 1 + sign * count * (12 if match["year"] else 1)
    year, month = divmod(months, 12)
    return f"{year:04}" if match["year"] else f"{year:04}-{month + 1:02}"


def _weekday(match: re.Match[str], day: date, ahead: bool) -> str:
    name, parts = match["weekday"], match.groupdict()
    at = _WEEKDAY_OF.get(name, _EASTERN_DAYS.get(name, 0))
    which, after = parts.get("which") or "", parts.get("after") or ""
    to_come = (at - day.weekday() - 1) % 7 + 1
    monday = -day.weekday()
    if which.startswith("下下"):
        return _plus(day, monday + 14 + at)
    if which.startswith(("next", "nächst", "下", "来")):
        return _plus(day, monday + 7 + at)
    if which in ("上", "先"):
        return _plus(day, monday - 7 + at)
    if which in ("这", "這", "本", "今"):
        return _plus(day, monday + at)
    back = f"{which} {after}".strip().startswith(_LAST) or after.startswith(_LAST)
    if back or (not ahead and not after.startswith(_NEXT) and not which.startswith(_NEXT)):
        return _plus(day, to_come - 7 if to_come != 7 else -7)
    return _plus(day, to_come)


def _stretch(which: str, unit: str, day: date) -> str:
    step = 1 if which.startswith(_NEXT) else -1 if which.startswith(_LAST) else 0
    if unit in ("week-end", "fim de semana") or unit.endswith(("end", "ende", "末")):
        return _plus(day, 5 - day.weekday() + 7 * step)
    if unit.startswith(("w", "sema", "周", "週", "星")):
        year, week, _ = date.fromisoformat(_plus(day, 7 * step)).isocalendar()
        return f"{year:04}-W{week:02}"
    if unit.startswith(("mo", "me", "mê", "月")):
        year, month = divmod(day.year * 12 + day.month - 1 + step, 12)
        return f"{year:04}-{month + 1:02}"
    return f"{day.year + step:04}"


def _plus(day: date, days: int) -> str:
    try:
        return (day + timedelta(days)).isoformat()
    except OverflowError:  # beyond the years 1 to 9999
        return day.isoformat()


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:  # 31 February
        return None
