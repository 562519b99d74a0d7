"""What people write to an assistant: turns over nouns, ways to ask, pleasantries.

The corpus has few of them otherwise, and the table is mostly asked about such turns.
"""

from __future__ import annotations

__all__ = ["PHRASES", "QUESTIONS", "TURNS"]

TURNS = {
    "food": """
I made {x} with {y} for dinner, and my sister loved it.
Did I tell you what we ate? {X}, and then {y}!
I'm allergic to {x}, so I had {y} instead.
Can you give me a recipe for {x}? I have some {y} left.
? What did I cook with {x}?
? Do you remember what I said about {x}?
? What food did we have, was it {x}?
""",
    "artifact": """
I just bought a new {x} yesterday, it was on sale.
My {x} broke last week, so I'm using a {y} for now.
We keep the {x} next to the {y}.
Hey! I finally fixed the {x}. How is your {y}?
? When did I buy the {x}?
? What happened to my {x}?
? Where do we keep the {x}?
""",
    "location": """
I went to {x} with my friends last summer, and then we visited {y}.
I'm planning a trip to {x} next month. Any tips?
We moved from {x} to {y} when I was ten.
? When did I go to {x}?
? Who did I travel to {x} with?
? What are my plans for {x}?
""",
    "person": """
I met a {x} at the party who used to be a {y}.
My cousin works as a {x} now, she loves it.
I've been thinking about becoming a {x}.
I talked to the {x} about my problem and she was really helpful.
? Who is the {x} that I met?
? What did the {x} say?
? Which job did she have, {x}?
""",
    "act": """
I started {x} a few months ago and it's going well.
Lately I've been into {x}, it helps me relax after work.
My new hobby is {x}. Before that it was {y}.
? When did I start {x}?
? What hobbies do I have, like {x}?
""",
    "animal": """
We adopted a {x} from the shelter, it's so cute!
I saw a {x} and a {y} on my walk this morning.
My {x} is three years old now.
? What pets do I have? A {x}?
? How old is my {x}?
? Where did I see the {x}?
""",
    "event": """
We had a great time at the {x} on Saturday.
I'm so nervous about the {x} next Friday.
After the {x} there was a {y}.
? When was the {x}?
? How was the {x}?
""",
    "plant": """
I planted some {x} in the garden next to the {y}.
The {x} is finally blooming!
? What did I plant, {x}?
""",
    "cognition": """
I'm taking a class on {x} this semester.
I've been reading a lot about {x} and {y}.
Could you explain {x} to me in simple terms?
? Which class am I taking, {x}?
? What did you tell me about {x}?
""",
    "feeling": """
I felt so much {x} when I heard the news.
It was a mix of {x} and {y}, to be honest.
? How did I feel, was it {x}?
""",
    "group": """
I joined the local {x} two years ago.
Our {x} met with the {y} yesterday.
? Which {x} did I join?
""",
    "substance": """
We need more {x} for the project.
I spilled {x} all over the {y}.
? What did we need {x} for?
""",
}
"""By kind of noun (WordNet's files of nouns): turns with a noun or two, and after ? questions."""

PHRASES = """
Hey!
Hi there!
Hello, how are you?
Hey, good to see you!
How have you been?
What's up?
Wow, that's amazing!
Wow!
That's great!
That sounds great!
Sounds awesome!
Cool!
Awesome!
Thanks!
Thank you so much!
Thanks a lot, I appreciate it.
No problem!
You're welcome!
Sure!
Of course!
Absolutely!
I see.
Really?
Oh no, I'm sorry to hear that.
I'm so glad to hear that!
Congrats!
Good luck!
Yeah, totally!
Yes, definitely.
I know, right?
Haha, true.
By the way,
I was wondering,
Can you help me with something?
Could you tell me more?
What do you think?
I think so too.
Let me know!
Take care!
See you soon!
Have a great day!
That's a great question!
I'd be happy to help!
Here are some tips:
I hope this helps!
Do you have any suggestions?
Any recommendations?
It means a lot to me.
I really enjoyed it.
It was so much fun.
I can't wait!
Keep up the good work!
You're doing great.
I've been thinking about it lately.
Just wanted to let you know.
Guess what?
Well,
Anyway,
Lately
recently
today
yesterday
last week
this morning
on Saturday
a few days ago
tomorrow
What a great photo!
Looks so nice!
I love it!
Me too!
Tell me about it.
How did it go?
What happened?
Please
thanks in advance
Let me think.
Okay
Got it.
""".strip().splitlines()
"""Pleasantries and fillers: they tell nothing of what a turn is about."""

QUESTIONS = """
When did
What did
Who
Where did
How did
Why
What is
Which
How many
What kind of
Do you remember
Can you remind me
What was the
I was thinking about our conversation
you told me
I mentioned
Did I ever mention
How long ago
What are the
""".strip().splitlines()
"""Ways to begin a question."""
