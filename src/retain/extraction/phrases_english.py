"""How people say what is worth remembering: English. See ``phrases.py``."""

from __future__ import annotations

__all__ = ["EN"]

EN = r"""
let VERY: (?:(?:really|absolutely|also|just|still|totally|truly|generally|usually|actually|always|
  personally|particularly|especially|secretly|strongly|simply|definitely|much|very|do|currently|
  now|mostly|mainly) )*
let THIS: (?!(?:it|its|this|that|these|those|how|what|when|where|your|you|him|her|them|to (?:know|
  see|think|ask|point|get a|have a)|the (?!(?:sea|mountains|outdoors|ocean|beach|rain|cold|heat|
  smell|taste|sound|colou?r|theat|opera|piano|forest|winter|summer|autumn|countryside|window|
  aisle|morning|night|city|beatles))|all of|both|either|neither|option|version|each|every one|one|
  some of)\b)
let KIN: (?:(?:older|younger|elder|little|big|twin|step|half|eldest|oldest|youngest|late|ex|best|
  new|two|three|four) ?-?)*(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|mother|
  mum|mom|father|dad|parents|sisters?|brothers?|sons?|daughters?|kids?|child|children|twins|
  grand(?:mother|father|ma|pa|parents|son|daughter|kids)|aunt|uncle|cousins?|niece|nephew|
  (?:mother|father|sister|brother)-in-law|family|(?<=best )friend|flatmate|
  roommate|boss|manager|team lead|mentor|doctor|therapist|landlord|landlady|dogs?|
  cats?|puppy|kittens?|rabbits?|horse|parrot|hamster|budgie|tortoise|pets?)
let OWN: (?:(?:full|first|last|middle|real|maiden|home|work|personal|new|old|current|phone|mobile|
  postal|shipping|billing|employee|customer|student|native|monthly|yearly|annual|blood|shoe|dress|
  skin|main|long-term) )*(?:name|nickname|surname|pronouns|birthday|birthdate|age|anniversary|
  address|number|phone|email|e-mail|time ?zone|job|profession|occupation|employer|company|
  hometown|nationality|language|mother tongue|username|handle|type|size|weight|height|budget|
  salary|income|goal|hobby|hobbies|diet|allergies|religion|star sign|degree|thesis|major|school|
  university|car|bike|house|flat|apartment|garden)
let SET: (?:(?:next|first|final|last|new|job|driving|dentist|doctor'?s?|visa|thesis|tax|
  project) )*(?:deadline|flight|train|appointment|interview|exam|exams|wedding|surgery|operation|
  holiday|vacation|trip|move|shift|presentation|due date|lease|contract|visa|passport|defen[cs]e|
  graduation|concert|marathon|race|party|meeting|check-?up|birthday)
let SAYS: (?:says?|said|tells?|told|thinks?|thought|asks?|asked|claims?|believes?|wants? me|
  keeps?|recommend(?:s|ed)|suggest(?:s|ed)|sent|is asking|is saying)
let HELD: (?:\S+ ){0,4}?(?:sons?|daughters?|kids?|child|children|brothers?|sisters?|siblings|
  twins?|dogs?|cats?|puppy|puppies|kittens?|rabbits?|horses?|parrots?|hamsters?|goldfish|
  guinea pigs|chickens|wife|husband|partner|boyfriend|girlfriend|degree|phd|ph\.d|master's|
  diabetes|asthma|allerg(?:y|ies)|adhd|autism|migraines?|epilepsy|arthritis|eczema|celiac|coeliac|
  dyslexia|anxiety|insomnia|tinnitus|intolerance|high blood pressure|hypertension|mortgage|
  tattoos?|nut allergy|garden|allotment|vineyard|greenhouse|(?:electric )?car|motorbike|
  motorcycle|sailboat|piano|grandchildren|grandkids|stepson|stepdaughter)\b(?! in (?:the|this|
  my) (?:picture|photo|image|drawing))
let AM: (?:from (?!now|here|what|where|the (?:look|sound))|based in|originally from|married|
  divorced|single\b|widowed|engaged|pregnant|vegan|vegetarian|pescatarian|allergic|diabetic|
  asthmatic|autistic|dyslexic|colou?r-?blind|deaf|blind|left-handed|lefthanded|right-handed|
  lactose|gluten|intolerant|retired|self-employed|unemployed|bilingual|trilingual|celiac|coeliac|
  epileptic|hard of hearing|jewish|muslim|hindu|buddhist|catholic|christian|atheist|afraid of|
  scared of|terrified of|responsible for|in charge of|in my (?:\w+ties|first|second|third|final|
  last)|(?:american|british|english|irish|scottish|welsh|german|french|spanish|italian|portuguese|
  brazilian|mexican|japanese|chinese|korean|indian|canadian|australian|dutch|swedish|norwegian|
  danish|finnish|polish|russian|ukrainian|turkish|greek|swiss|austrian|belgian|nigerian|kenyan|
  egyptian|vietnamese|thai|filipino|indonesian|argentinian|colombian|chilean|hungarian|czech|
  romanian))\b
let LIFE: (?:adopted|bought|sold|quit|moved|married|graduated|retired|joined|started|began|
  finished|passed|failed|signed|booked|won|lost|broke|sprained|met|visited|went to|flew|
  celebrated|had (?!a (?:look|problem|question|discussion|chat|dream)|this|to )|became|resigned|
  enrolled|hired|gave birth|left|saw|attended|donated|completed|climbed|ran (?:a|the|my)|planted|
  inherited|turned|came back|returned|arrived|cancelled|registered|applied|launched|published|
  signed up|picked up|took up|stopped|proposed)
let NOT: (?!(?:bit|little|lot|few|tad|mess|wreck|fool|genius|idiot|couple|while|member|big|huge|
  fan|great|total|complete|native|real|good|bad|better|lost|hurry|loop|customer|user|position|
  test|string|function|list|human|person|loss|situation)\b)
filler: (?:oh|ok|okay|so|well|hi|hey|hello|hi there|yes|yeah|no(?=[,;.:!])|also|and|but|anyway|
  anyways|actually|btw|by the way|fyi|for context|for the record|for your information|quick note|
  just so you know|as i said|like i said|i said|i meant|sorry|correction|honestly|to be honest|
  tbh|personally|in case it helps|for what it's worth|unfortunately|i should mention that|
  i should mention|you should know that|thing is|update|good news|great news|bad news|
  please know that|background|about me|as for me|p\.?s\.?|fun fact|guess what|good morning|
  good evening|thanks|thank you|cool|great|because|since|as|the truth is|
  i think i told you that)[,:;.!–—-]*[ ]
request: (?:(?:please|pls|hey|also|and|so|ok|okay|can you|could you|would you|will you|
  i want you to|i need you to|i'd like you to|you should|you need to|just|always|make sure (?:to|
  you)|be sure to|try to|oh|one more thing|btw|by the way|important),? )*(?:(?:remember|note|
  note down|make a note|make note|take a note|take note|keep in mind|keep a note|bear in mind|
  don't forget|do not forget|never forget|don't you forget|save|store|memori[sz]e|write down|
  jot down|record|log|remember this|save this|store this|note this|note to self|please note|
  reminder|keep (?:this|it) in mind|add (?:this )?to (?:your )?memory|
  put (?:this )?in (?:your )?memory|commit (?:this )?to memory|
  keep (?:this )?on file)(?:,? please)?(?: for (?:me|later|next time|the future|
  future reference))?(?: that (?!(?:scene|time|day|film|movie|song|one|episode|moment|night|thing|
  guy)\b)| this: ?| the following: ?|: ?| ?[-–—] |, (?=i|my|we|our))|remember (?=(?:my|i|i'm|we|
  we're|our)\b)|(?:remember|don't forget|do not forget) (?=to .*\b(?:me|my|i|us|our)\b)|
  (?:remember|don't forget) (?:to )?(?=my\b)|(?:don't forget|do not forget|keep in mind|
  bear in mind),? (?=(?:my|i|i'm|we|our)\b)|(?:for future reference|for the record|
  for your information|just so you know|fyi|for next time),? (?:that )?(?=\S+ \S+ \S+)|
  remind me (?:to |that )(?!how\b|what\b|why\b))|(?:please |can you |could you )?(?:remember|note|
  keep in mind) (?:this|the following)(?=[.:!]|$)
nothing: (?:if|unless|what if|imagine|suppose|supposing|say|let's say|assume|assuming|pretend|
  whether|maybe|perhaps|i wish|i'd (?!rather|prefer|always)|i would (?!rather|always)|i could|
  i might|i may|i think so|i don't know|i don't remember|i can't remember|i forgot|i guess|
  i wonder|i was wondering|do|does|did|is|are|was|were|can|could|would|will|should|what|why|how|
  who|whom|whose|where|when|which|oh great|yeah right|sure,|great, i just|as (?:a|an)|once upon|
  (?:please )?(?:do not|don't) (?:remember|save|store|note)|forget)\b
play: (?:(?:please|can you|could you|now|ok|okay|so|hey|hi|let's),? )*(?:pretend|imagine|suppose|
  supposing|my (?:\w+ )?(?:character|protagonist)|let's say|say that|assume|role-?play|act as|
  act like|you are (?:a|an|the)|you're (?:a|
  an|the)|your name is|translate|summari[sz]e|proofread|rewrite|rephrase|paraphrase|(?:fix|
  correct|check|improve|polish|edit) (?:the|this|my)|shorten this|here(?:'s| is) (?:the|a|an|my|
  some) (?:text|story|essay|email|draft|letter|paragraph|passage|article|quote|excerpt|lyrics|
  dialogue|script|log|transcript|sentence|conversation|bio|review|poem|code|example)|(?:write|
  continue|finish|complete|analy[sz]e|explain) (?:[^.?!]{0,80}):|what does [^.?!]{0,60} mean|
  in (?:this|the) (?:story|scene|scenario|game)|user story|as a (?:user|customer))
task: (?:(?:please|now|then|also|can you|could you|i want you to|i need you to|hey|ok|
  and),? )*(?:write|create|make|implement|fix|build|generate|translate|explain|show|give|code|
  refactor|summari[sz]e|design|draft|compose|convert|add|plan|list|find|calculate|compute|rewrite|
  debug|optimi[sz]e|review|test|run|i need an?|i want you to|help me)\b
split: (?:,|;|—|–)? (?:and|but|so|anyway|anyways|because|since|while|although|though|plus|
  also) (?=(?:i(?! (?:are|both)\b)|i'm|i've|
  i'll|i'd|my|we|we're|we've|our)\b)|(?:,|;| —| –| -)(?: now| also| and now)? (?=(?:i|i'm|i've|
  i'll|i'd|my|we|we're|we've|our)\b(?! mean| think| guess| know))
cut: (?:,|;| —| –| -)? ?(?:\b(?:so|and|but|then)\b )?(?:\bplease\b|\bcan you\b|\bcould you\b|
  \bwould you\b|\bwill you\b)|, (?:so )?(?:what|which|how|why|where|who|is it|is there|are there|
  any|should|do you|does|what's|give|suggest|skip|help|avoid|keep|tell|don't|recommend)\b|
  ,? in case (?:you|the)\b|,? just so you know|, don't (?:lose|forget) it|,? (?:btw|by the way|
  if that (?:helps|matters)|fyi|for context|ok\?|okay\?)| [–—-] (?=[^–—]{1,80}[?]$)|, (?:ideas|
  suggestions|thoughts|tips|advice)\b
mine: \b(?:i|i'm|i've|my|mine|me|we|we're|our|us)\b
fact: i(?:'m| am) (?:(?-i:[A-Z][a-z]+), an? |(?!(?:only|about|like)\b)\w+, \d\d\b)|
  my name(?:'s| is) (?!(?:not|in|already|wrong|missing|(?:mis)?spel\w+)\b)|
  i(?:'m| am) called |i go by (?!the\b)|
  call me (?!back|later|
  maybe|when|crazy|a )|people call me[ ]
fact: my <OWN>(?:'s| is| are| was| has| changed| starts| ends)\b(?! (?:not working|broken|slow|
  too|so|wrong|returning|null|empty|being|a string|invalid|dead|at \d+|
  (?:mis)?spel\w+|in the|already|failing|down|stuck|driving me))
dated: (?:my|our) <SET>\b|(?:my|our) (?:\w+ ){1,2}(?:is|are) (?:due|scheduled|planned)\b|
  (?:meeting|lunch|dinner|appointment|interview|drinks|coffee) with (?:the|
  my|our|
  (?-i:[A-Z]))
preference: my (?:all-time |absolute |personal |least )?favou?rites?\b(?! (?:part|bit|one|of|
  answer|version|suggestion)\b)|my preferred[ ]
preference: i(?:'m| am) (?:severely |very |deathly |highly |also )?(?:allergic to|intolerant|
  lactose|gluten)
preference: i(?:'m| am) (?:not |also )?<VERY>(?:an? )?(?:big |huge |great |massive |
  avid )?(?:fan of|fond of|into (?!the (?:problem|issue))|obsessed with|crazy about|keen on|
  passionate about|partial to|picky about)\b
preference: i(?:'m| am) (?:more of |not )?an? (?:morning|night|cat|dog|early|tea|coffee|people)\b
fact: (?:i(?:'m| am)|we(?:'re| are)) (?:also |now |currently |actually |originally |severely |
  newly |happily |not |recently |\d+ weeks |half )?<AM>
fact: i(?:'m| am) (?:also |currently |now |actually |just )?(?:an? |
  the )(?:\w+[- ]){0,3}?<NOT>(?:nurse|teacher|doctor|engineer|developer|programmer|designer|
  student|lawyer|pharmacist|writer|author|journalist|chef|cook|baker|carpenter|plumber|
  electrician|mechanic|pilot|driver|farmer|gardener|artist|painter|musician|singer|pianist|
  guitarist|violinist|photographer|architect|accountant|scientist|researcher|professor|lecturer|
  librarian|manager|director|founder|ceo|cto|consultant|analyst|freelancer|translator|interpreter|
  therapist|psychologist|psychiatrist|dentist|vet|veterinarian|surgeon|physio\w*|paramedic|
  midwife|police \w+|officer|firefighter|soldier|sailor|fisherman|barista|bartender|waiter|
  waitress|cashier|salesperson|realtor|banker|trader|economist|historian|philosopher|biologist|
  chemist|physicist|geologist|mathematician|statistician|linguist|astronomer|teenager|mother|
  father|mom|mum|dad|single parent|parent|widower?|vegan|vegetarian|pescatarian|twin|only child|
  stay-at-home \w+|grad\w*|postdoc|undergrad\w*|intern|apprentice|retiree|veteran|refugee|
  immigrant|diabetic|smoker|non-smoker|runner|swimmer|cyclist|climber|beekeeper|tailor|
  hairdresser|barber|secretary|assistant|administrator|technician|welder|builder|mason|roofer|
  locksmith|optician|radiographer|social worker|shepherd|winemaker|brewer|potter|jeweller|judge|
  notary|novelist|poet|editor|illustrator|animator|actor|actress|dancer|producer|coach|trainer|
  referee|lifeguard|conductor|composer|luthier|caretaker|janitor|cleaner|courier|postman|\w+ist|
  \w+ologist)\b
fact: i(?:'m| am) \d{1,3}(?: years? old\b|(?=$|,| and\b| now\b))
fact: i(?:'m| am) (?-i:[A-Z][a-zà-ÿ]+)(?=$|, (?:nice|pleased|and|an?|the)\b| and i\b| from\b)
fact: i(?:'m| am) now (?:at|with|in) |i(?:'m| am) \d'\d|i weigh[ ]
fact: i (?:only|mostly) (?:eat|drink|wear|buy|read|watch|travel|work) |i (?:wake up|get up|
  go to bed|go to sleep) (?:at|around|before|after) |i take .{2,30} (?:once|twice|every|daily|
  three times|for my)\b|i (?:studied|worked) (?:\w+ )?(?:at|as|in)[ ]
fact: i turn(?:ed)? \d{1,3}\b
fact: (?:i(?:'m| am|'ve been| have been)|we(?:'re| are)) (?:also |currently |now |still |
  slowly )?(?:learning|studying (?!this|the)|majoring|taking (?:an? )?(?:\w+ )?(?:lessons|class|
  classes|course|medication)|working (?:at|for|as|in (?!progress|(?:an?|the) (?:new )?(?:branch|
  file|notebook|folder|repo|terminal|loop))|part|full|night|remotely|from home)|doing (?:my|
  a) (?:phd|master|degree|apprenticeship|internship)|writing (?:my|a) (?:phd|thesis|dissertation|
  novel|book|memoir)|raising|living (?:in|with|alone|near|on)|training (?:for|to)|renovating|
  building a (?:house|boat|cabin)|expecting|dating|seeing a therapist|saving (?:up )?for|
  recovering|trying to (?:lose weight|quit|conceive|learn)|on (?:a )?(?:\w+ )?(?:diet|medication|
  sabbatical|parental leave|maternity leave|paternity leave|insulin))\b
fact: (?:i|we) (?:both |also |currently |now |still |actually |only )?(?:live(?! (?:in (?:fear|
  hope|denial|peace|the moment)|view|share|
  reload|by|for)\b)|work (?:at|as|for|in|from|with(?! (?:the|this|that|these)\b)|part|full|
  nights?\b|days\b|shifts|weekends|
  remotely|on (?:mondays|
  weekends))|teach (?!you)|volunteer|own (?!up)|commute|collect|come from|grew up|
  was born(?! ready)|were born|graduated|majored|served in|suffer from|speak (?!of|to|with|for)|
  play (?:the |in |for )?(?!around|with)|drive an? |ride (?:an?|my) |run (?:an? |my own )(?!(?:test|
  script|query|command|program|loop|job|server|bigger|few)\b)|study (?!the|this)|
  take (?:\w+ ){0,3}(?:pills?|tablets?|medication|insulin|medicine|mg)|wear (?:glasses|contact|
  hearing|size|a hearing)|keep (?:bees|chickens|goats|sheep|kosher|halal)|fast |pray |foster|
  breed|sing in|coach|moderate|lead a|manage a (?!state)|practi[cs]e)\b
fact: i (?:only |always |mostly |mainly |usually |currently |also |
  now )?use (?:an? )?(?=(?-i:[A-Z]))
fact: (?:i've|i have) (?:always |been (?!(?:trying|looking|thinking|wondering|reading|getting|
  having|told|using|struggling|working on|debugging|searching|stuck|here|there|asked)\b)|lived|
  worked|never (?:learned|learnt|been to|eaten|driven|owned|liked|tried|had (?!this|that|such))|
  got (?:an? |two |three |four |\d+ ))(?!(?:\w+ )?(?:told|problem|issue|question|error|bug)\b)
fact: (?:i|we) (?:also |only |currently |now |still )?(?:have|'ve got|got) (?:an? |one |two |
  three |four |five |six |\d+ |no |type |severe |mild |chronic )?<HELD>
fact: (?:i|we) only have (?!(?:one|\d+|an?|two|few|a few) (?:\w+ )?(?:questions?|minutes?|hours?|
  problem|issue|column|row|file|error|option)|access to this)
fact: (?:i|we) (?:usually|normally|generally|typically) (?!(?:get (?:an?|this|the) |see |call|run|
  try|do (?:this|that|it)|write|put)\b)
fact: i always (?:wake|sleep|get up|go (?!wrong)|have (?:breakfast|lunch|dinner|coffee|tea)|eat|
  drink|travel|sit|book|fly|wear|cook|read|run|walk|order|take the)\b
fact: (?:i|we) never (?:eat|drink|drive|fly|work|sleep|wear|learned|learnt|watch|cook|travel|
  check|answer|smoke)\b
preference: (?:i|we) (?:don't|do not|can't|cannot|no longer|won't|mustn't|shouldn't) (?:really |
  even )?(?:eat|drink|smoke|celebrate|tolerate|digest)\b(?! (?:this|that|it)\b)
fact: (?:i|we) (?:don't|do not|can't|cannot|no longer) (?:really |even )?(?:drive|swim|
  speak (?!to|with)|own|wear|work on|work (?:at|for|in) |live|have (?:an? |any )?(?:car|kids|
  children|oven|pets|siblings|tv|dishwasher|smartphone|licen[cs]e|driving|garden|wife|husband))\b
preference: (?:i|we) <VERY>(?:love|enjoy|adore|prefer|hate|dislike|loathe|detest|despise|
  can't stand|cannot stand|can't bear|don't mind|favou?r)\b <THIS>
preference: (?:i|we) <VERY>like <THIS>(?!(?:to (?:know|see|ask|have|get|order|book|buy|make|try)|
  a|an|the)\b)
preference: (?:i|we) <VERY>(?:don't|do not|never|no longer) (?:really |particularly |much )?(?:like|
  enjoy|love|care for|trust)\b <THIS>
preference: i'd rather (?:have |not |you )?.*(?: than | when |instead of )|i'd rather you (?:keep|
  kept|use|used|
  answer\w*|call\w*|explain\w*|write|wrote|didn't|don't|not) (?!(?:it|this|that|the)\b)
preference: i(?:'d| would) (?:always )?prefer .*\b(?:from now on|always|in general|in future|
  whenever)\b
instruction: (?:(?:please|pls|plz) )?(?:don't|do not|stop|never) (?:us(?:e|ing)|call(?:ing)? me|
  answer(?:ing)?|add(?:ing)?|giv(?:e|ing)|start(?:ing)?|end(?:ing)?|writ(?:e|ing))\b.*\b(?:ever|
  anymore|any more|again|
  in your (?:answers|replies|responses|messages)|when you (?:answer|reply|talk|write))\b
instruction: (?:(?:please|pls|plz) )?(?:always|never|don't ever) (?:answer|reply|respond|use|write|
  call|
  address|give|format|include|send|keep|explain|start|end|show|speak|suggest|recommend|schedule|
  book|convert|assume|refer)\b
instruction: from now on,? .*|(?:please )?(?:call|address|answer|reply|write|speak|use|keep|give|
  respond|explain|talk)\b.*\bfrom now on
event: (?:i|we) (?:just |recently |finally |have |'ve |'ve just |officially )*(?:moved (?:to|into|
  in with|back|out)|got (?:married|engaged|divorced|promoted|hired|fired|laid off|
  a (?:new )?(?:job|puppy|dog|cat|kitten)|accepted)|quit (?:my job|smoking|drinking)|
  stopped (?:smoking|drinking)|retired|adopted|graduated|broke (?:my|up)|became (?:a (?:father|
  mother|parent|grand\w+|citizen|vegetarian|vegan))|had (?:a baby|surgery|twins|our (?:first|
  second))|gave birth|lost my (?:job|father|mother|dad|mum|mom|dog|cat)|bought (?:a|an|our|
  my) (?:first |new )?(?:house|flat|car|apartment|home)|started (?:a new job|a new role|(?:my|
  a) (?:phd|business|company)|(?:at|working (?:at|for)) )|joined (?:a|the) )\b
fact: (?:i (?:was|got|have been|'ve been)|i've been) (?:just |recently )?(?:diagnosed|promoted|
  laid off|hired|born(?! ready)|raised|adopted|accepted)\b
fact: (?:i|we) (?:just |recently )started (?:a |an |my )(?:new )?(?:job|role|course|business|
  company|phd|degree|position)\b
event: we(?:'re| are) (?:expecting|having a (?:baby|boy|girl)|getting (?:married|divorced)|
  pregnant|moving (?:to|in))\b|i(?:'m| am) (?:getting (?:married|divorced)|moving (?:to|in)|
  expecting)\b
dated: (?:i|we) (?:just |recently |finally |also )*<LIFE>\b
dated: (?:(?:i(?:'m| am)|we(?:'re| are)) (?:also )?(?:going|flying|leaving|travel\w+|visiting|
  meeting|seeing|starting|moving|hosting|having|getting|giving|planning (?:an?|my|our|to)|
  organi[sz]ing|presenting|taking|running|attending|driving|returning|coming|throwing|celebrating|
  on (?:holiday|vacation|leave)|off|away|out of|booked|training|playing|submitting|defending|
  turning|interviewing)|(?:i|we)(?:'ll| will) (?:be|fly|go|visit|meet|start|move|have|travel|
  leave|turn|get|see|take|return)|(?:i|we) (?:have|'ve got|have got|got|need to|must|have to|
  leave|fly|start|move|am due|travel|plan to|turn|arrive) )
fact: (?:my|our) <KIN> and i (?:are|both)\b
kin: (?:my|our) <KIN>(?:,? (?:(?-i:[A-Z])[\w'-]+,? ?){1,3}| (?!<SAYS>\b|(?:and|or|to|will|would|
  could|
  might|may|probably)\b)\w{2,12}(?= )|'s (?:name|birthday|\w+)|, who|
  ,)? ?(?!<SAYS>\b)(?:'s|is|are|was|has|have|had|loves?|hates?|likes?|works?|lives?|speaks?|
  plays?|studies|goes to|starts?|turns?|can't|doesn't|died|passed|prefers?|moved|owns?|teaches|
  weighs|needs|suffers|eats|only|comes|arrives|'s name)\b(?! (?:wrong|right|asking|saying|telling|
  so|such|too|barking|calling|crying|sleeping|asleep|yelling|screaming|hungry|tired|here|late|
  acting|mad|annoyed|angry|being|on the|always (?:saying|telling)))
fact: (?:my|our) (?!app|function|class|variable|file|script|method|table|column|branch|module|
  folder|button|component)(?:\w+ ){1,3}(?:is|are) (?:called|named)[ ]
correction: (?:(?:it's|it is|that's) (?!line|column|row|step|page|option|the (?:first|second|
  third|last|other))|(?:my|the) \w+(?: \w+)? is )[^?]*, not[ ]
"""
