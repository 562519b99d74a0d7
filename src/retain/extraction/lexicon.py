"""The words that ``naming.py`` knows: data, in English, for names in any script."""

from __future__ import annotations

from dataclasses import dataclass

from ..stopwords import stop_words

__all__: list[str] = []

OTHER = "other"
KEPT = frozenset({"person", "organization", "project", "animal"})
"""Types of which an object of a relationship is an entity too; a city is only an attribute."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words between a subject and an object, and the types of both.

    ``person``: 1 if "I" or several say it ("work at"), 3 if one does ("works at"), 0 if anybody.
    """

    words: tuple[str, ...]
    relation: str
    subject: str
    object: str
    person: int = 0


def _phrases(lines: str) -> tuple[Phrase, ...]:
    """A line: relation, type of the subject, type of the object: phrases, by commas.

    A phrase is as one says it of another; ``I/`` stands before one as one says it of oneself.
    """
    found = []
    for line in lines.strip().splitlines():
        head, said = line.split(":")
        relation, subject, object = (part.replace("-", "") for part in head.split())
        for each in said.split(","):
            mine, _, words = each.strip().rpartition("/")
            person = 1 if mine else 0 if words.split()[0] in _ANY else 3
            found.append(Phrase(tuple(words.split()), relation, subject, object, person))
    return tuple(found)


_ANY = "worked lived moved married met founded cofounded co-founded studied joined".split()

PHRASES = _phrases("""
works_at person organization: works at, works for, is employed at, is employed by, is working at, \
is working for, I/work at, I/work for, I/am employed at, I/am employed by, I/am working at, \
I/am working for, I/are working at, I/are working for
worked_at person organization: worked at, worked for
works_on person project: works on, is working on, I/work on, I/am working on, I/are working on
works_with person person: works with, I/work with
lives_in person place: lives in, is living in, moved to, has moved to, I/live in, I/am living in, \
I/have moved to, I/are living in
lived_in person place: lived in
based_in - place: is based in, is located in, I/am based in, I/are based in
comes_from person place: comes from, is from, I/come from, I/am from, I/are from
married_to person person: is married to, married, I/am married to
knows person person: knows, I/know
met person person: met, has met, I/have met
manages person -: manages, I/manage
leads person -: leads, I/lead
reports_to person person: reports to, I/report to
founded person organization: founded, co-founded, cofounded
owns - -: owns, I/own
joined person organization: joined
studies_at person organization: studies at, is studying at, I/study at, I/am studying at
studied_at person organization: studied at
plays_for person organization: plays for, I/play for
speaks person language: speaks, I/speak
uses - technology: uses, is using, I/use, I/am using, I/are using
""")

ATTRIBUTES = {
    "based_in": "city",
    "comes_from": "from",
    "founded": "founded",
    "husband": "husband",
    "is_a": "role",
    "lives_in": "city",
    "located_in": "in",
    "married_to": "married to",
    "plays_for": "team",
    "reports_to": "reports to",
    "speaks": "speaks",
    "studies_at": "school",
    "uses": "uses",
    "wife": "wife",
    "works_at": "company",
    "works_on": "project",
}

PLACED = {
    ("person", "at"): "works_at",
    ("person", "for"): "works_at",
    ("person", "in"): "lives_in",
    ("person", "from"): "comes_from",
    ("organization", "in"): "located_in",
    ("organization", "from"): "comes_from",
    ("place", "in"): "located_in",
    ("animal", "from"): "comes_from",
}

CONTRACTIONS = {
    "i'm": ("I", "am"),
    "i've": ("I", "have"),
    "he's": ("he", "is"),
    "she's": ("she", "is"),
    "it's": ("it", "is"),
    "that's": ("that", "is"),
    "who's": ("who", "is"),
    "we're": ("we", "are"),
    "they're": ("they", "are"),
}

TITLES = frozenset("dr mr mrs ms prof st jr sr mt".split())
JOINING = frozenset("de da do dos das del della di van von der den la le bin ibn al & of".split())
ADVERBS = frozenset("also still now currently actually presently already just really both".split())
AFTER_NOUN = frozenset("at in for from of who that which and or but with on to by as".split())

SUPPOSING = frozenset(
    "if whether suppose supposing imagine pretend wish would could might unless not never n't "
    "don't doesn't didn't isn't aren't wasn't won't nobody hypothetically".split()
)
DOUBTING = frozenset("think maybe perhaps probably guess believe likely apparently".split())

# Words that may begin with a capital letter and name nobody: at the beginning of a sentence, or
# always.
NO_NAMES = stop_words("en") | frozenset(
    """
    i you he she it we they me him her us them mine yours his hers ours theirs myself yourself
    this that these those here there someone somebody everyone everybody anyone anybody nobody
    something everything anything nothing none one other others people folks guys who whoever
    please thanks thank hello hi hey dear ok okay yes no sure well so also then now today tomorrow
    yesterday tonight monday tuesday wednesday thursday friday saturday sunday january february
    march april may june july august september october november december remember note fyi btw
    maybe perhaps actually currently recently sometimes usually always never often apparently
    clearly obviously honestly basically meanwhile however therefore sorry wow oh ah great good
    nice let tell ask say said write call make give take get go come see look think know believe
    user assistant system tool human developer sir madam mr mrs ms miss mom mum dad boss
    every each some any many most few several another such both either neither all whole half
    work home life love time money food music coffee tea dinner lunch breakfast school management
    marketing sales support engineering nothing earlier later once since until while when where
    why what which how because although though but and or not if
    """.split()
)
NO_PLACES = frozenset(
    """
    ai ml it hr pr qa ux ui python java javascript typescript rust go kotlin swift ruby php c c++
    c# sql react vue angular django flask linux kubernetes docker aws azure excel english german
    french spanish portuguese italian japanese chinese russian january february march april may
    june july august september october november december monday tuesday wednesday thursday friday
    saturday sunday q1 q2 q3 q4 spring summer autumn winter
    """.split()
)

PEOPLE = frozenset(
    """
    engineer developer programmer designer manager director doctor physician surgeon nurse dentist
    vet veterinarian pharmacist therapist psychologist psychiatrist teacher professor lecturer tutor
    student researcher scientist physicist chemist biologist mathematician economist historian
    philosopher linguist lawyer solicitor attorney barrister judge notary accountant auditor banker
    broker trader analyst consultant advisor adviser architect planner builder carpenter plumber
    electrician mechanic welder painter sculptor artist illustrator photographer filmmaker actor
    actress singer musician pianist violinist cellist guitarist drummer composer conductor dancer
    writer author poet novelist journalist reporter editor translator interpreter librarian chef
    cook baker barista waiter waitress bartender farmer gardener florist butcher fisherman sailor
    captain pilot driver courier soldier officer policeman policewoman firefighter detective
    paramedic midwife caretaker cleaner hairdresser barber tailor jeweller salesman saleswoman
    salesperson cashier secretary assistant receptionist recruiter founder cofounder co-founder
    entrepreneur investor ceo cto cfo coo vp president chairman chairwoman minister mayor senator
    politician diplomat ambassador activist priest pastor rabbi imam monk nun coach trainer
    footballer athlete swimmer runner cyclist goalkeeper referee intern apprentice freelancer
    contractor administrator sysadmin tester maintainer writer blogger streamer comedian magician
    geologist astronomer astronaut optician radiologist cardiologist neurologist pediatrician
    """.split()
)
KIN = frozenset(
    """
    colleague coworker co-worker teammate friend boyfriend girlfriend partner wife husband spouse
    fiance fiancé fiancee fiancée mother father mum mom dad parent sister brother sibling son
    daughter child kid baby twin aunt uncle cousin niece nephew grandmother grandfather grandma
    grandpa grandson granddaughter stepmother stepfather stepson stepdaughter stepbrother stepsister
    mother-in-law father-in-law sister-in-law brother-in-law son-in-law daughter-in-law flatmate
    roommate housemate neighbour neighbor boss supervisor mentor mentee client customer landlord
    landlady classmate lead
    """.split()
)
ANIMALS = frozenset(
    "dog puppy cat kitten rabbit hamster parrot budgie horse pony tortoise turtle goldfish".split()
)
THINGS = {
    word: kind
    for kind, words in {
        "organization": "company startup firm bank agency university college school hospital "
        "charity nonprofit foundation studio publisher airline restaurant manufacturer retailer "
        "organisation organization institute club supplier",
        "place": "city town village country capital state province island river mountain suburb "
        "neighbourhood neighborhood region",
        "technology": "library framework database language",
        "project": "project app product service game website",
    }.items()
    for word in words.split()
}
