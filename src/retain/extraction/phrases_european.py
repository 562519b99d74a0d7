"""How people say what is worth remembering: German to Portuguese. See ``phrases.py``."""

from __future__ import annotations

__all__ = ["DE", "ES", "FR", "PT"]

DE = r"""
filler: (?:hallo|hi|hey|moin|servus|also|und|aber|ja|nein|ok|okay|übrigens|eigentlich|ach|ach ja|
  guten (?:tag|morgen|abend)|danke|zur info|nur zur info|tja|naja|weil|denn|ehrlich gesagt|leider|
  korrektur|entschuldigung|sorry)[,:;.!–—-]*[ ]
request: (?:(?:bitte|kannst du(?: dir)?|könntest du(?: dir)?|du sollst|hey|und|also|
  ok),? )*(?:(?:merk(?:e)?|notier(?:e)?) (?:dir|es dir|dir bitte|bitte|für später)(?: bitte)?|
  (?:merken|notieren) sie sich(?: bitte)?|vergiss (?:bitte )?nicht|denk(?:e)? (?:bitte )?daran|
  behalte (?:bitte )?(?:im kopf|in erinnerung)|notiz|zur erinnerung|notiere|notier|speichere|
  merke|erinnere dich (?:bitte )?(?:daran)?)(?:, (?:bitte )?dass |: ?|,? dass )|(?:kannst|
  könntest) du dir (?:bitte )?merken, dass |erinnere mich (?:bitte )?(?:daran, |an (?=.*\d|
  .*(?:morgen|übermorgen)))
nothing: (?:wenn|falls|ob|was|wie|wer|wo|wann|warum|welche\w*|kannst|könntest|soll|sollte|ist|
  sind|hast|hat|gibt|weißt|ich wei(?:ß|ss) nicht|ich glaube|ich denke|ich würde|ich hätte|
  ich wäre|ich könnte|ich möchte|ich will|ich brauche|ich frage|ich hab(?:e)? (?:eine )?frage|
  ich habe vergessen|ich verstehe|angenommen|stell dir vor|vielleicht|schreib|vergiss)\b
play: (?:(?:bitte|kannst du|jetzt),? )*(?:stell dir vor|angenommen|nehmen wir an|tu so|
  mein (?:charakter|protagonist)|
  spiel(?:e)? (?:einen|eine|den|die)|du bist (?:ein|eine|der|die)|übersetz\w*|
  fass\w* .{0,40}zusammen|korrigier\w*|formulier\w*|verbesser\w*)\b
task: (?:(?:bitte|jetzt|dann|kannst du),? )*(?:schreib|erstell|mach|gib|zeig|erklär|übersetz|
  baue?|implementier|hilf|nenn|berechne)\w*\b
split: ,? (?:und|aber|denn|sowie) (?=(?:ich(?! (?:wohnen|leben|arbeiten|sind|haben)\b)|mein|meine|
  meinen|wir|unser|unsere)\b)|[,;] (?=(?:ich|
  mein|meine|wir|unser|unsere)\b)
cut: ,? (?:also )?(?:bitte|kannst du|könntest du)\b|, (?:was|welche\w*|wie|wo|warum|gibt es|
  hast du|kann ich|soll ich)\b
mine: \b(?:ich|mein\w*|mir|mich|wir|uns|unser\w*)\b
fact: ich hei(?:ß|ss)e |mein (?:voller |richtiger )?(?:vor|nach|spitz)?name ist |nenn mich[ ]
fact: ich (?:wohne|lebe|arbeite(?! an| gerade an)|studiere|unterrichte|spreche (?!von|über|mit)|
  spiele (?!mit dem gedanken)|besitze|fahre einen?|komme (?:ursprünglich )?aus|stamme aus|leide|
  lerne (?:gerade|seit|derzeit|\w+isch)|pendle|singe|züchte|sammle|trage eine brille|
  nehme (?:täglich|jeden))\b
fact: (?:wir|ich und meine? \w+|meine? \w+ und ich) (?:wohnen|leben|arbeiten|sind (?:verheiratet|
  umgezogen)|
  haben (?:einen?|zwei|drei|vier|\d+) (?:\w+ )?(?:kinder?|söhne?|töchter|tochter|hunde?|katzen?|
  kater|kaninchen|pferde?))\b
preference: ich bin (?:\w+ )?(?:gegen .{1,60} )?(?:allergisch|vegetarier\w*|veganer\w*|vegan|
  laktoseintolerant|glutenintolerant)\b
fact: ich bin (?:\d{1,3} (?:jahre|und\b|$)|\d{1,3}$|verheiratet|geschieden|ledig|schwanger|
  rentner\w*|in rente|farbenblind|diabetiker\w*|linkshänder\w*|selbst?ständig|arbeitslos|
  aus \w+ (?!(?:dem|der) )|in \w+ (?:geboren|aufgewachsen)|
  (?:ein(?:e)? )?(?:von beruf )?(?!programm)\w{2,}(?:lehrer|ärztin|arzt|pfleger|schwester|
  ingenieur|entwickler|verkäufer|fahrer|techniker|musiker|künstler|designer|berater|leiter|helfer|
  student|anwalt|therapeut|meister|bäcker|koch|köchin|tischler|schreiner|maurer|maler|gärtner|
  bauer|bäuerin)(?:in)?\b|(?:lehrer|arzt|ärztin|ingenieur|entwickler|student|anwalt|rechtsanwalt|
  koch|köchin|bäcker|tischler|gärtner|maler|musiker|pilot|polizist|hebamme|physiker|biologe|
  chemiker|apotheker|journalist|pfleger|programmierer|schüler|informatiker|architekt|designer|
  autor|schriftsteller|mutter|vater|oma|opa|alleinerziehend)(?:in)?\b)
preference: ich (?:mag|liebe|hasse|bevorzuge|verabscheue|vertrage|esse|trinke|rauche|schaue|höre|
  lese|reise|wandere|koche|backe) (?!(?:es|das|dies\w*|dich|sie|ihn|jetzt|gerade|
  gleich)\b)(?=.*\b(?:kein\w*|nicht|nie|gern\w*|lieber|am liebsten|nur|immer|sehr)\b)|ich (?:mag|
  liebe|hasse|bevorzuge|verabscheue) (?!(?:es|das|dies\w*|dich|sie|ihn|deine?\w*|nicht mehr)\b)|
  ich kann .{1,60} nicht (?:leiden|ausstehen|ab)
preference: mein\w* (?:absolut\w* )?lieblings\w+[ ]
fact: mein\w* (?:geburtstag|telefonnummer|handynummer|nummer|adresse|e-?mail\w*|beruf|job|hobby|
  hobbys|hobbies|muttersprache|schuhgröße|blutgruppe|chef\w*|arbeitgeber|zeitzone|kundennummer|
  personalnummer|alter|heimatstadt|auto) (?:ist|sind|lautet|heißt|heissen|hat|liegt)\b
kin: (?:mein\w*|unser\w*) (?:\w+e[nr]? )?(?:frau|mann|ehemann|ehefrau|partner\w*|freundin|freund|
  mutter|mama|vater|papa|eltern|schwester\w*|bruder|brüder|geschwister|sohn|söhne|tochter|töchter|
  kind|kinder|oma|opa|gro(?:ß|ss)(?:mutter|vater|eltern)|tante|onkel|cousin\w*|neffe|nichte|
  enkel\w*|hund|hündin|katze|kater|kaninchen|pferd|hamster|wellensittich|chef\w*) (?:(?!(?:sagt|
  sagte|meint|meinte|fragt|findet|denkt|glaubt|hat gesagt|
  hat gemeint)\b)\w+ ){0,2}?(?:ist|sind|hei(?:ß|ss)t|hei(?:ß|ss)en|hat|haben|wohnt|lebt|arbeitet|
  mag|liebt|hasst|spricht|spielt|studiert|heiratet|wird|kommt|isst|darf)\b
fact: ich (?:habe|hab) (?:einen?|zwei|drei|vier|\d+|keine?n?) (?:\w+ ){0,2}?(?:kinder|kind|sohn|
  söhne|tochter|töchter|bruder|brüder|schwester\w*|geschwister|hund\w*|katzen?|kater|kaninchen|
  pferd\w*|\w*allergie|\w*unverträglichkeit|garten|auto|führerschein)\b|ich habe (?:diabetes|
  asthma|adhs|migräne|zöliakie|heuschnupfen|bluthochdruck|am \d.* geburtstag)
fact: ich (?:wurde|bin) .{0,60}\b(?:geboren|aufgewachsen|diagnostiziert|befördert|adoptiert|
  umgezogen|ausgezogen|eingezogen)
event: (?:ich|wir) (?:habe|haben|bin|sind) .{0,80}\b(?:geheiratet|adoptiert|gekündigt|bekommen|
  aufgehört|umgezogen|verlobt|gekauft|begonnen|angefangen|gebrochen|abgeschlossen|bestanden|
  verloren|geworden)$
dated: (?:ich|wir) (?:habe|hab|haben|bin|sind|fliege|fliegen|fahre|fahren|reise|reisen|ziehe|
  ziehen|heirate|heiraten|treffe|treffen|besuche|besuchen|muss|müssen|werde|werden|gehe|gehen|
  bekomme|bekommen|fange|beginne|starte|feiere|feiern) (?!(?:dich|mir das|das)\b)
dated: (?:habe|hab|haben|bin|sind|fliege|fliegen|fahre|fahren|ziehe|ziehen|heirate|heiraten|
  treffe|treffen|besuche|besuchen|muss|müssen|werde|werden|gehe|gehen|bekomme|beginne|starte|
  feiere|feiern) (?:ich|wir)\b
dated: (?:mein|meine|unser|unsere) (?:\w+ )?(?:flug|termin|prüfung|klausur|hochzeit|umzug|urlaub|
  abgabe|frist|operation|reise|bewerbungsgespräch|vorstellungsgespräch|geburtstag|zug|konzert|
  vertrag)\b
instruction: (?:bitte )?(?:antworte|schreib|nenn|duze|sieze|benutze|verwende|erkläre?|
  sprich)\w* .*\b(?:immer|ab jetzt|ab sofort|künftig|in zukunft|stets|nie|niemals)\b|(?:ab jetzt|
  ab sofort|von nun an|in zukunft)[ ]
correction: (?:es ist|das ist|es hei(?:ß|ss)t|mein\w* \w+ ist) .*, nicht[ ]
"""

ES = r"""
filler: (?:hola|buenas|buenos días|buenas tardes|pues|bueno|y|pero|sí|no(?=[,;.:])|ok|vale|
  por cierto|además|también|en realidad|la verdad|la verdad es que|gracias|para que lo sepas|como|
  porque|perdón|oye|mira|corrección|ah|a propósito)[,:;.!¡–—-]*[ ]
request: ¡?(?:(?:por favor|puedes|podrías|quiero que|necesito que|oye|y),? )*(?:recuerda(?:me)?|
  recuerde|recordar|recuerdes|acuérdate|ten en cuenta|tener en cuenta|tenga en cuenta|anota|anote|
  apunta|no olvides|no te olvides|no lo olvides|guarda|memoriza|toma nota|
  nota)(?:,? por favor,?)? ?(?:(?:de )?que |: ?|(?=mi\b))
nothing: (?:¿|si |qué|cómo|cuál|cuándo|dónde|quién|por qué|puedes|podrías|no sé|no me acuerdo|
  no recuerdo|creo que|me gustaría|quisiera|quiero que|quiero (?:una?|saber|ver)|necesito|olvidé|
  se me olvidó|me pregunto|imagina|supón|ojalá|tal vez|quizás?)
play: (?:(?:por favor|ahora|puedes),? )*(?:imagina|supón|supongamos|finge|mi (?:personaje|
  protagonista)|haz de cuenta|
  actúa como|eres un|traduce|resume|corrige|reescribe|mejora)\b
task: (?:(?:por favor|ahora|puedes),? )*(?:escribe|crea|haz|dame|explica|muéstrame|genera|traduce|
  ayúdame|calcula|diseña)\b
split: ,? (?:y|pero|porque|además|e) (?=(?:yo(?! \w+mos\b)|me (?:llamo|gusta|encanta|mudé)|mi|mis|
  vivo|trabajo|
  tengo|soy|prefiero|odio|no me|no como|nuestr[oa]|hablo|estudio|nací)\b)|[,;] (?=(?:yo|
  me (?:llamo|gusta|encanta)|mi|mis|vivo|trabajo|tengo|soy|prefiero|odio|no me gusta)\b)
cut: [,.]? ¿|,? (?:así que )?(?:por favor|puedes|podrías)\b|, (?:qué|cómo|cuál|dónde|dame|
  recomiéndame)\b
mine: \b(?:yo|me|mi|mis|mí|nuestr\w*|nos|tengo|soy|vivo|trabajo|prefiero)\b
fact: (?:yo )?me llamo |mi nombre (?:completo )?es |llámame[ ]
fact: (?:yo )?(?:vivo(?! con la duda)|trabajo(?! en (?:est|un ))|estudio|nací|crecí|hablo (?!de|
  con)|toco (?:el|la|en)|soy de|enseño|conduzco un|colecciono|padezco|sufro de|tomo (?:pastillas|
  insulina|medicación)|llevo (?:gafas|lentes|\w+ años)|doy clases)\b|(?:nosotros |
  mi \w+ y yo )?(?:vivimos|
  trabajamos|estamos casados|esperamos (?:un|nuestro) )
preference: (?:yo )?soy (?:\w+ )?(?:alérgic[oa]|intolerante|celíac[oa]|vegetarian[oa]|vegan[oa]|
  fan de)\b|tengo (?:una )?(?:alergia|intolerancia)
fact: (?:yo )?(?:soy|estoy) (?:un |una )?(?:\w+ )?(?:médic[oa]|enfermer[oa]|profesora?|maestr[oa]|
  ingenier[oa]|abogad[oa]|estudiante|cociner[oa]|panader[oa]|carpinter[oa]|programadora?|
  desarrolladora?|diseñadora?|arquitect[oa]|periodista|escritora?|traductora?|music[oa]|músic[oa]|
  pintora?|artista|fotógraf[oa]|bomber[oa]|policía|piloto|camarer[oa]|veterinari[oa]|
  farmacéutic[oa]|psicólog[oa]|contadora?|contable|electricista|mecánic[oa]|agricultora?|
  jubilad[oa]|viud[oa]|casad[oa]|divorciad[oa]|solter[oa]|embarazada|diabétic[oa]|asmátic[oa]|
  daltónic[oa]|zurd[oa]|autónom[oa]|madre|padre|abuel[oa]|bibliotecari[oa]|dentista|jardiner[oa]|
  investigadora?|\w+ista)\b
fact: (?:yo )?(?:tengo|tenemos) (?:(?:un|una|dos|tres|cuatro|\d+|no) (?:\w+ )?(?:hij[oa]s?|
  herman[oa]s?|perr[oa]s?|gat[oa]s?|conejos?|caballos?|niet[oa]s?|niñ[oa]s?)|\d{1,3} años|
  diabetes|asma|migrañas?|hipertensión|celiaquía|tdah)\b|tengo (?:\w+ )?(?:\w+ )?años
preference: (?:a mí )?(?:no )?(?:me (?:gustan?|encantan?|fascinan?|chiflan?|apasionan?|
  disgustan?)|soporto|aguanto) (?:mucho |muchísimo |más |nada )?(?!(?:mucho )?(?:est[eao]s?|
  es[eao]s?|tu|tus|como|cómo|la (?:idea|versión|respuesta)|el (?:título|texto))\b)(?!$)|
  (?:yo )?(?:prefiero|odio|detesto|adoro|amo) (?!(?:est[eao]|es[eao]|la (?:primera|segunda)|
  el (?:primero|segundo)|que escribas)\b)
preference: (?:yo )?no (?:como|bebo|tomo|fumo|puedo (?:comer|beber|tomar)|soporto|aguanto) (?!est|
  es[eao])|(?:yo )?(?:como|bebo) solo[ ]
preference: mis? (?:\w+ )?(?:favorit[oa]s?|preferid[oa]s?) |mis? \w+ (?:favorit[oa]s?|
  preferid[oa]s?) (?:es|son)
fact: mis? (?:\w+ )?(?:cumpleaños|número|teléfono|dirección|correo|trabajo|profesión|ciudad|
  lengua|jef[ea]|edad|apellido|talla|zona horaria)(?: de \w+| natal| materna)? (?:es|son|se llama|
  está)\b
kin: (?:mi|mis|nuestr[oa]s?) (?:\w+ )?(?:espos[oa]|marido|mujer|novi[oa]|pareja|madre|mamá|padre|
  papá|padres|herman[oa]s?|hij[oa]s?|abuel[oa]s?|tí[oa]s?|prim[oa]s?|sobrin[oa]s?|niet[oa]s?|
  suegr[oa]|perr[oa]s?|gat[oa]s?|conejo|caballo|jef[ea]|mejor amig[oa])(?:,? (?:mayor|
  menor|(?-i:[A-ZÁÉÍÓÚÑ])\w+),?){0,2} (?:se llaman?|es|son|está|tiene|tienen|vive|viven|trabaja|
  odia|ama|estudia|habla|no (?:come|puede)|cumple|nació|murió|se casa)\b
event: (?:yo )?(?:me mudé|nos mudamos|me casé|nos casamos|me divorcié|me jubilé|me gradué|
  adopt(?:é|amos)|dejé de fumar|perdí mi (?:trabajo|empleo)|me rompí|me diagnosticaron|
  me ascendieron|renuncié|empecé (?:un nuevo|a trabajar|en)|compr(?:é|amos) (?:una casa|un piso|
  un coche))\b
dated: (?:yo |nosotros )?(?:tengo|tenemos|voy|vamos|viajo|viajamos|vuelo|volamos|me mudo|
  nos mudamos|me caso|nos casamos|empiezo|empecé|compr[ée]|fui|fuimos|visit[oé]|conocí|terminé|
  vendí|perdí|gané|adopté|salgo|salimos|llego|me operan|nació|cumplo|debo|tuve|me compré|
  celebr\w+|es mi|es el cumpleaños)\b
dated: (?:me )?\w{3,}[éí] (?:el|la|mi|un|una|al|en)\b
dated: (?:mi|nuestr[oa]) (?:vuelo|cita|entrevista|examen|boda|viaje|mudanza|operación|reunión|
  plazo|tren|vacaciones|concierto)\b
instruction: (?:por favor,? )?(?:siempre|nunca) (?:responde|contesta|escribe|usa|háblame|
  trátame)\b|(?:responde|contéstame|respóndeme|háblame|usa|escríbeme) (?:siempre|
  .*a partir de ahora)|(?:a partir de ahora|de ahora en adelante),?[ ]
correction: (?:es|se llama|mi \w+ es) .*, no[ ]
"""

FR = r"""
filler: (?:bonjour|salut|bonsoir|coucou|et|mais|oui|non|ok|au fait|d'ailleurs|en fait|alors|bon|
  ben|merci|pour info|pour information|parce que|comme|car|désolée?|correction|ah|sinon|
  franchement)[,:;.!–—-]*[ ]
request: (?:(?:s'il te plaît|s'il te plait|s'il vous plaît|stp|svp|peux-tu|pourrais-tu|tu peux|
  je veux que tu|et),? )*(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous|te souvenir|
  retiens|retenez|retenir|retiennes|note|notez|noter|n'oublie pas|n'oubliez pas|garde en (?:tête|
  mémoire)|gardez en (?:tête|mémoire)|mémorise|enregistre|à noter|à retenir|
  rappelle-moi)(?: bien)?(?:,? (?:s'il te plaît|stp|svp),?)? ?(?:que |qu'|: ?|de (?=.*\b(?:moi|me|
  mon|ma|mes)\b)|(?=mon\b|ma\b))
nothing: (?:si |s'il|quel|quelle|comment|pourquoi|qui|que|quoi|où|quand|est-ce|peux-tu|
  pourrais-tu|as-tu|je ne sais pas|je ne me souviens|j'ai oublié|je voudrais|j'aimerais|je veux|
  j'ai besoin|je me demande|je crois que|je pense que|imagine|suppose|peut-être|j'ai une question)
play: (?:(?:s'il te plaît|maintenant|peux-tu),? )*(?:imagine|suppose|supposons|fais semblant|
  mon personnage|
  fais comme si|joue le rôle|tu es une?|traduis|résume|corrige|reformule|réécris|améliore)\b
task: (?:(?:s'il te plaît|maintenant|peux-tu),? )*(?:écris|crée|fais|donne|explique|montre|génère|
  traduis|aide-moi|calcule|rédige|propose)\b
split: ,? (?:et|mais|car|donc|parce que) (?=(?:je|j'|mon|ma|mes|nous|notre|nos)\b)|[,;] (?=(?:je |
  j'|mon|ma|mes|nous|notre)\b)
cut: ,? (?:donc )?(?:s'il te plaît|peux-tu|pourrais-tu)\b|, (?:quel|quelle|quels|quelles|comment|
  que|qu'est-ce|est-ce|tu as|donne|propose|où)\b
mine: \b(?:je|moi|mon|ma|mes|me|nous|notre|nos)\b|j'
fact: (?:moi, )?je m'appelle |mon (?:nom|prénom) (?:complet )?(?:est|c'est) |
  appelle-moi (?!(?:demain|plus tard|quand))
fact: (?:j'habite|je vis|je travaille(?! sur)|j'étudie|je parle (?!de|à)|je joue (?:du|de la|
  de l'|au|aux)|j'enseigne|je viens (?:de (?!(?:voir|faire|lire|finir|trouver|te|le|la))\b|du|
  des)|je suis né|je suis née|j'ai grandi|je conduis une?|je collectionne|je souffre|
  je porte des lunettes|je prends (?:des|un) (?:médicaments?|traitement)|j'apprends)\b|
  (?:m(?:a|on) \w+ et moi,? )?(?:nous |on )?(?:habitons|vivons|sommes mariés|attendons (?:un|
  notre))\b
preference: je suis (?:\w+ )?(?:allergique|intolérante?|végétarien(?:ne)?|végane?|vegan|
  c[œo]eliaque|fan de)\b|j'ai une (?:allergie|intolérance)
fact: je suis (?:une? |actuellement |aussi )?(?:\w+ )?(?:infirmi(?:er|ère)|médecin|professeure?|
  prof|enseignante?|ingénieure?|avocate?|étudiante?|cuisini(?:er|ère)|boulang(?:er|ère)|
  menuisi(?:er|ère)|développeu(?:r|se)|programmeu(?:r|se)|designer|architecte|journaliste|
  écrivaine?|traductrice|traducteur|musicien(?:ne)?|peintre|artiste|photographe|pompi(?:er|ère)|
  policier|policière|pilote|serveu(?:r|se)|vétérinaire|pharmacien(?:ne)?|psychologue|comptable|
  électricien(?:ne)?|mécanicien(?:ne)?|agricult(?:eur|rice)|retraitée?|veu(?:f|ve)|mariée?|
  divorcée?|célibataire|enceinte|diabétique|asthmatique|daltonien(?:ne)?|gauch(?:er|ère)|
  indépendante?|mère|père|bibliothécaire|dentiste|jardini(?:er|ère)|chercheu(?:r|se)|sage-femme|
  institut(?:eur|rice)|\w+iste)\b|j'ai \d{1,3} ans\b|j'ai (?:trente|quarante|vingt|cinquante|
  soixante)[\w-]* ans
fact: (?:j'ai|nous avons|je n'ai pas de|je n'ai pas d') ?(?:une? |deux |trois |quatre |
  \d+ )?(?:\w+ )?(?:enfants?|fils|filles?|frères?|s[œo]e?urs?|chiens?|chats?|lapins?|cheval|
  chevaux|diabète|asthme|migraines?|petits-enfants)\b|j'ai (?:du diabète|de l'asthme|le diabète)
preference: j(?:'|e (?:n')?)(?:aime|adore|déteste|préfère|apprécie|
  hais)(?: pas| plus| bien| beaucoup| vraiment| surtout| trop)* (?!(?:bien )?(?:ça|cette|cet|ce|
  ces|ta|ton|tes|la (?:première|deuxième|réponse|version)|le (?:premier|titre))\b)|
  je ne (?:supporte|digère) pas[ ]
preference: je ne (?:mange|bois|fume|peux pas manger|peux pas boire|consomme)\b(?! (?:pas )?(?:ça|
  cela))|je ne peux pas (?:manger|boire)
preference: m(?:on|a|es) (?:\w+ ){1,2}(?:préférée?s?|favorite?s?)\b
fact: m(?:on|a|es) (?:anniversaire|numéro|téléphone|adresse|mail|e-mail|métier|profession|ville|
  langue|chef|cheffe|patron(?:ne)?|âge|taille|pointure|fuseau horaire|
  employeur)(?: de \w+| natale| maternelle)? (?:est|c'est|sont|s'appelle|tombe)\b
kin: (?:mon|ma|mes|notre|nos) (?:\w+ )?(?:femme|mari|épou(?:x|se)|copain|copine|compagnon|
  compagne|conjointe?|mère|maman|père|papa|parents|s[œo]e?urs?|frères?|fils|filles?|enfants?|
  grand-mère|grand-père|grands-parents|tante|oncle|cousine?s?|neveu|nièce|belle-mère|beau-père|
  chiens?|chienne|chats?|chatte|lapin|cheval|patron(?:ne)?|
  meilleure? amie?)(?:,? (?:aînée?|cadette?|(?-i:[A-ZÀÉÈ])[\w-]+),?){0,2} (?:s'appelle|
  s'appellent|est|sont|a (?!dit)|ont|habite|vit|travaille|aime|adore|déteste|étudie|parle|
  ne (?:mange|peut)|fête|se marie)\b
event: (?:j'ai (?:déménagé|adopté|démissionné|arrêté de fumer|perdu mon (?:travail|emploi)|
  été (?:promue?|licenciée?|diagnostiquée?)|pris ma retraite|commencé (?:un nouveau|une nouvelle|
  à travailler)|obtenu mon)|nous avons (?:déménagé|adopté|acheté une maison)|
  nous nous sommes mariés|je me suis (?:mariée?|cassée?|fiancée?|séparée?)|on m'a diagnostiqué)\b
dated: (?:j'ai|je (?:suis|vais|pars|commence|déménage|me marie|prends|rentre|voyage|dois|passe|
  fête|rencontre|me suis)|j'(?:arrive|emménage|aurai|irai)|nous (?:avons|allons|partons|sommes|
  déménageons|nous marions|fêtons)|on (?:part|va|déménage|se marie))\b
dated: (?:mon|ma|notre|mes) (?:vol|rendez-vous|entretien|examen|mariage|voyage|déménagement|
  opération|réunion|échéance|train|concert|vacances|soutenance)\b
instruction: (?:réponds|écris|parle|utilise|appelle|explique|tutoie|vouvoie)\S* .*\b(?:toujours|
  désormais|dorénavant|à partir de maintenant)\b|(?:désormais|dorénavant|
  à partir de maintenant),?[ ]
correction: (?:c'est|il s'appelle|elle s'appelle|mon \w+ est|ma \w+ est) .*, pas[ ]
"""

PT = r"""
filler: (?:olá|oi|bom dia|boa tarde|boa noite|e|mas|sim|não,|ok|aliás|a propósito|na verdade|
  então|bem|obrigad[oa]|também|porque|como|desculpe?|correção|ah|só para saber|para constar|
  infelizmente)[,:;.!–—-]*[ ]
request: (?:(?:por favor|pode|você pode|poderia|quero que|e),? )*(?:lembre-se|lembra-te|lembre|
  lembra|se lembrar|lembrar|lembra-se|anote|anota|anotar|guarde|guarda|memorize|
  não (?:se )?esqueça|não te esqueças|tenha em mente|tem em mente|nota|tome nota|registre|
  me lembre|lembre-me)(?:,? por favor,?)? ?(?:(?:de )?que |: ?|(?=(?:meu|minha)\b))
nothing: (?:se |qual|como|por que|quem|o que|onde|quando|você|pode|poderia|não sei|não lembro|
  não me lembro|acho que|gostaria|eu gostaria|quero que|quero (?:uma?|saber|ver)|preciso|esqueci|
  imagine|suponha|talvez|será)\b
play: (?:(?:por favor|agora|pode),? )*(?:imagine|imagina|suponha|supõe|finja|finge|meu personagem|
  aja como|
  você é (?:um|uma)|traduza|traduz|resuma|resume|corrija|corrige|reescreva|melhore)\b
task: (?:(?:por favor|agora|pode),? )*(?:escreva|crie|faça|me dê|explique|mostre|gere|traduza|
  ajude|calcule)\b
split: ,? (?:e|mas|porque|pois) (?=(?:eu(?! \w+mos\b)|meu|minha|moro|trabalho|tenho|sou|prefiro|
  odeio|
  não gosto|gosto|nosso|nossa|nasci)\b(?! como\b))|[,;] (?=(?:eu|meu|minha|moro|trabalho|tenho|
  sou|prefiro|odeio|não gosto|gosto)\b)
cut: ,? (?:então )?(?:por favor|você pode|pode me|poderia)\b|, (?:o que|qual|quais|como|onde|
  me (?:dê|recomende|sugira)|alguma)\b
mine: \b(?:eu|me|meu|minha|meus|minhas|nosso|nossa|nos|tenho|sou|moro|prefiro)\b
fact: (?:eu )?me chamo |(?:eu )?chamo-me |(?:o )?meu nome (?:completo )?é |pode me chamar de[ ]
fact: (?:eu )?(?:moro|vivo|trabalho(?! com (?:ess|est))|estudo|nasci|cresci|falo (?!de|com|sobre)|
  toco|sou de|sou do|sou da|ensino|dirijo um|coleciono|sofro de|uso óculos|tomo (?:remédios?|
  insulina|medicação)|dou aulas?)\b|(?:nós |(?:o |a )?(?:meu|minha) \w+ e eu )?(?:moramos|vivemos|
  trabalhamos|estamos esperando)\b
preference: (?:eu )?sou (?:\w+ )?(?:alérgic[oa]|intolerante|celíac[oa]|vegetarian[oa]|vegan[oa]|
  fã de)\b|tenho (?:alergia|intolerância)
fact: (?:eu )?sou (?:um |uma )?(?:\w+ )?(?:médic[oa]|enfermeir[oa]|professora?|engenheir[oa]|
  advogad[oa]|estudante|cozinheir[oa]|padeir[oa]|carpinteir[oa]|programadora?|desenvolvedora?|
  designer|arquitet[oa]|jornalista|escritora?|tradutora?|músic[oa]|pintora?|artista|fotógraf[oa]|
  bombeir[oa]|policial|piloto|garçom|garçonete|veterinári[oa]|farmacêutic[oa]|psicólog[oa]|
  contadora?|eletricista|mecânic[oa]|agricultora?|aposentad[oa]|viúv[oa]|casad[oa]|divorciad[oa]|
  solteir[oa]|diabétic[oa]|asmátic[oa]|daltônic[oa]|canhot[oa]|autônom[oa]|mãe|pai|av[óô]|
  bibliotecári[oa]|dentista|jardineir[oa]|pesquisadora?|\w+ista)\b|estou grávida
fact: (?:eu )?(?:tenho|temos|não tenho) (?:(?:um|uma|dois|duas|três|quatro|
  \d+) )?(?:\w+ )?(?:filh[oa]s?|irm(?:ão|ã|ãos|ãs)|cachorr[oa]s?|cão|cães|gat[oa]s?|coelhos?|
  cavalos?|net[oa]s?|\d{1,3} anos|diabetes|asma|enxaqueca|hipertensão|tdah)\b|
  tenho (?:\w+ )?(?:e )?\w+ anos\b
preference: (?:eu )?(?:não )?(?:gosto (?:muito |mais )?(?:de|do|da|dos|das)|amo|adoro|odeio|
  detesto|prefiro|curto|suporto) (?!(?:ess[eao]|est[eao]|iss?o|isto|dess[ea]|sua|seu|
  a (?:primeira|segunda|ideia)|o (?:primeiro|segundo|título))\b)
preference: (?:eu )?não (?:como|bebo|tomo|fumo|posso (?:comer|beber|tomar)|suporto|
  aguento) (?!isso|ess)
preference: (?:o |a |os |as )?(?:meu|minha|meus|minhas) \w+ (?:favorit[oa]s?|preferid[oa]s?) |
  (?:meu|minha) (?:\w+ )?favorit
fact: (?:o |a )?(?:meu|minha) (?:aniversário|número|telefone|endereço|e-?mail|trabalho|profissão|
  cidade|língua|chefe|idade|sobrenome|fuso horário)(?: de \w+| natal| materna)? (?:é|são|se chama|
  fica)\b
kin: (?:o |a |os |as )?(?:meu|minha|meus|minhas|nosso|nossa|nossos|nossas) (?:\w+ )?(?:espos[oa]|
  marido|mulher|namorad[oa]|companheir[oa]|mãe|pai|pais|irm(?:ão|ã|ãos|ãs)|filh[oa]s?|av[óô]s?|
  ti[oa]s?|prim[oa]s?|sobrinh[oa]s?|net[oa]s?|sogr[oa]|cachorr[oa]s?|cão|gat[oa]s?|coelho|cavalo|
  chefe|melhor amig[oa])(?:,? (?:mais velh[oa]|mais nov[oa]|
  (?-i:[A-ZÁÉÍÓÚÃÕÂÊÔÇ])\w+),?){0,2} (?:se chamam?|é|são|está|tem|têm|mora|moram|trabalha|odeia|
  ama|estuda|fala|não (?:come|pode)|faz|nasceu|morreu|vai casar)\b
event: (?:eu )?(?:me mudei|nos mudamos|me casei|nos casamos|me divorciei|me aposentei|me formei|
  adot(?:ei|amos)|parei de fumar|perdi meu emprego|quebrei (?:o|a)|fui (?:diagnosticad[oa]|
  promovid[oa]|demitid[oa])|pedi demissão|comecei (?:um novo|a trabalhar|em)|compr(?:ei|
  amos) (?:uma casa|um apartamento|um carro))\b
dated: (?:eu |nós )?(?:tenho|temos|vou|vamos|viajo|viajamos|me mudo|nos mudamos|me caso|comecei|
  começo|comprei|fui|fomos|visitei|conheci|terminei|vendi|perdi|ganhei|adotei|saio|saímos|chego|
  faço|fiz|preciso|devo|tive|celebr\w+|é meu|parto|volto|entrego)\b
dated: (?:me )?\w{3,}ei (?:o|a|meu|minha|um|uma|no|na)\b
dated: (?:o |a )?(?:meu|minha|nosso|nossa) (?:voo|consulta|entrevista|exame|prova|casamento|
  viagem|mudança|cirurgia|reunião|prazo|trem|férias|show|formatura)\b
instruction: (?:por favor,? )?(?:sempre|nunca) (?:responda|escreva|use|me chame)\b|(?:responda|
  me responda|use|escreva|fale) (?:sempre|.*(?:a partir de agora|de agora em diante))|
  (?:a partir de agora|de agora em diante),?[ ]
correction: (?:é|se chama|(?:o )?meu \w+ é|(?:a )?minha \w+ é) .*, (?:e )?não[ ]
"""
