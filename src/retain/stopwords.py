"""Function words: the words of a language that say how a sentence is built, not what about.

They are dropped from queries, and they tell the language of a text. Articles, pronouns,
prepositions, conjunctions, auxiliaries, question words and a few particles; no content words
and no numbers. Apostrophes are left out: "don't" is listed as "dont".
"""

from __future__ import annotations

import functools
import unicodedata

from .errors import InvalidValue

__all__ = ["LANGUAGES", "LOOKALIKES", "stop_words"]

_LISTS = {
    "en": (
        "a an the this that these those i me my mine myself we our you your yourself he him his "
        "himself she her herself it its itself they them their and or but if then than because "
        "as while until since so of at by for with about against between among into through "
        "during before after above below to from up down in out on off over under be am is are "
        "was were been have has had having do does did done will would shall should can could "
        "might must what which who whom whose when where why how there here all any both each "
        "either some such no not only same too just also dont doesnt didnt isnt arent wasnt "
        "werent hasnt havent wont wouldnt cant cannot couldnt shouldnt im many much more most "
        "other being yours hers theirs hadnt nor very something"
    ),
    "es": (
        "el la los las un una unos unas lo al del de a ante bajo con contra desde durante en "
        "entre hacia hasta para por según sin sobre tras y e o u ni pero sino aunque porque "
        "pues que si como cuando donde mientras yo tú él ella ello nosotros nosotras vosotros "
        "ellos ellas usted ustedes me te se nos os le les mi mis tu tus su sus mío mía nuestro "
        "nuestra nuestros nuestras este esta esto estos estas ese esa eso esos esas aquel "
        "aquella qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuántos cuántas quien "
        "cual cuyo cuya no sí ya muy más también tampoco es soy eres son somos era eran fue "
        "fueron ser sido siendo está estoy estás están estaba estar he ha has han había haber "
        "hay tambien mas"
    ),
    "fr": (
        "le la les l un une des du de d au aux à dans en sur sous par pour avec sans chez vers "
        "entre depuis pendant avant après contre et ou où mais donc or ni car que qu qui quoi "
        "dont quand comme si lorsque puisque parce je j tu il elle on nous vous ils elles me m "
        "te t se s lui leur leurs y mon ma mes ton ta tes son sa ses notre nos votre vos ce c "
        "cet cette ces cela ça ceci celui celle ceux celles quel quels quelles comment pourquoi "
        "combien ne n pas plus très aussi même est suis es sommes êtes sont était étaient étais "
        "été être sera serait ai as a avons avez ont avait avaient avoir eu c'est j'ai d'un "
        "d'une qu'il n'est s'est"
    ),
    "de": (
        "der die das den dem des ein eine einer eines einem einen keine keinen keiner und oder "
        "aber denn doch dass daß weil wenn ob als wie damit während in im ins an am ans auf aus "
        "bei bis durch für gegen mit nach ohne seit über um von vom vor zu zum zur ich du er "
        "sie es wir ihr mich dich sich mir dir ihm ihn ihnen uns euch mein meine meinen meiner "
        "meinem sein seine seinen ihre ihren ihrer unser unsere euer eure dieser diese dieses "
        "diesen diesem was wer wen wem wessen wo wann warum wieso woher wohin welcher welche "
        "welches welchen nicht nur auch noch schon sehr ist bin bist sind war waren wurde "
        "wurden wird werden habe hast hat haben hatte hatten kann können konnte muss müssen "
        "soll sollte welchem worüber worauf"
    ),
    "it": (
        "il lo la i gli le l un uno una di a da in con su per tra fra del dello della dei degli "
        "delle al allo alla ai agli alle dal dalla dai dalle nel nello nella nei negli nelle "
        "sul sulla sui sulle col e ed o oppure ma però anche né che chi cui se perché quando "
        "come dove mentre poiché io tu lui lei egli essa noi voi loro mi ti si ci vi ne me te "
        "mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri vostro vostra "
        "questo questa questi queste quello quella quelli quelle ciò cosa quale quali quanto "
        "quanta quanti quante non più molto è sono sei siamo siete era erano ero fu furono "
        "essere stato stata ha ho hai abbiamo avete hanno aveva avevano avere dell all nell "
        "sull dall c'è"
    ),
    "pt": (
        "o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas "
        "para com sem sob sobre entre até desde após ao à aos às num numa e ou mas nem porém "
        "porque que se quando como onde enquanto embora eu tu ele ela nós vós eles elas você "
        "vocês me te lhe lhes mim ti si comigo meu minha meus minhas teu tua seu sua seus suas "
        "nosso nossa nossos nossas este esta isto estes estas esse essa isso esses essas aquele "
        "aquela aquilo quem qual quais quanto quanta quantos quantas cujo cuja não já mais "
        "muito também só é sou és somos são era eram foi foram fui ser sido sendo está estou "
        "estão estava estar tem tenho têm tinha ter há havia"
    ),
    "nl": (
        "de het een en of maar want dus dat die dit deze als dan omdat hoewel terwijl toen in op "
        "aan van voor met bij naar uit over onder tussen door tegen tot na om te zonder sinds "
        "tijdens volgens ik jij je u hij zij ze wij we jullie hen hun mij me jou hem haar ons "
        "onze mijn jouw zijn uw zich wat wie waar wanneer waarom hoe welke welk er hier daar niet "
        "geen ook nog al wel zo heel is ben bent was waren wordt worden werd werden geworden "
        "heeft heb hebt hebben had hadden kan kunnen kon zal zullen zou zouden moet moeten mag "
        "wil t n"
    ),
    "sv": (
        "en ett den det de dem och eller men utan för att som om när då medan eftersom fast i på "
        "av till från med vid hos under över mellan genom mot efter före inom utom kring jag du "
        "han hon vi ni mig dig sig honom henne oss er min mitt mina din ditt dina sin sitt sina "
        "hans hennes vår vårt våra ert deras denna detta dessa vad vem vilken vilket vilka var "
        "vart varför hur inte ej ju också så än bara här där är vara varit blir blev bli har hade "
        "haft ha kan kunde ska skall skulle måste vill någon något några ingen inget inga"
    ),
    "da": (
        "en et den det de dem og eller men for at som om når da mens fordi hvis i på af til fra "
        "med ved hos under over mellem gennem mod efter før uden inden jeg du han hun vi mig dig "
        "sig ham hende os jer min mit mine din dit dine sin sit sine hans hendes vores jeres "
        "deres denne dette disse hvad hvem hvilken hvilket hvilke hvor hvorfor hvornår hvordan "
        "ikke ej jo også så end kun her der er være været var bliver blev blive har havde haft "
        "have kan kunne skal skulle må måtte vil ville nogen noget nogle ingen intet"
    ),
    "no": (
        "en ei et den det de dem og eller men for at som om når da mens fordi hvis i på av til "
        "fra med ved hos under over mellom gjennom mot etter før uten innen jeg du han hun vi dere "
        "meg deg seg ham henne oss min mitt mi mine din ditt di dine sin sitt si sine hans hennes "
        "vår vårt våre deres denne dette disse hva hvem hvilken hvilket hvilke hvor hvorfor "
        "hvordan ikke jo også så enn bare her der er være vært var blir ble bli har hadde hatt ha "
        "kan kunne skal skulle må måtte vil ville noen noe ingen intet eg ikkje ein eit frå "
        "kva kven korleis"
    ),
    "fi": (
        "ja tai sekä mutta vaan että jos kun kuin koska vaikka jotta joko eli sillä minä sinä hän "
        "me te he se ne minun sinun hänen meidän teidän heidän sen niiden minua sinua häntä "
        "minulla sinulla hänellä minulle sinulle hänelle tämä tuo nämä nuo tämän tässä tästä siinä "
        "siitä siihen sitä niitä mikä mitä missä mistä mihin milloin miksi miten kuka ketä kenen "
        "kumpi joka jota jonka jossa josta johon jotka joita on ole olen olet olemme olette ovat "
        "oli olin olivat ollut olla olisi ei en et emme ette eivät eikä älä myös vain vielä jo "
        "niin kanssa ilman ennen jälkeen yli alla välillä onko eikö"
    ),
    "hu": (
        "a az egy és vagy de hanem is ha hogy mert mint míg bár pedig tehát én te ő mi ti ők "
        "engem téged őt minket titeket őket nekem neked neki nekünk nektek nekik velem veled "
        "vele ez ezt ennek ezek azt annak azok ezen azon ki kit mit kinek minek hol hova honnan "
        "mikor miért hogyan milyen melyik mennyi hány aki ami amely akik amelyek ahol amikor "
        "nem ne sem se igen már még csak meg el be fel le van vannak volt voltak lesz lenne "
        "vagyok vagyunk nincs nincsenek itt ott alatt fölött között után előtt mellett nélkül "
        "szerint által felé óta saját"
    ),
    "ro": (
        "un o unui unei niște cel cea cei cele al a ai ale lui de la în din pe cu fără pentru "
        "prin spre către despre între după până sub peste și sau ori dar iar însă ci nici că să "
        "dacă deși când cum unde ca eu tu el ea noi voi ei ele mă te se ne vă îmi îți își îl îi "
        "le mi ți meu mea mei mele tău ta tăi tale său sa săi sale nostru noastră noștri acest "
        "această acești aceste acesta aceasta acel acea acei acele ce cine care cui cât câtă "
        "câți câte nu mai foarte doar e este sunt ești suntem era erau fost fi fie am are avem "
        "aveți au avea avut va vor"
    ),
    "tr": (
        "bir ve veya ya da de ama fakat ancak çünkü ki ile için gibi kadar göre eğer ise iken "
        "ben sen o biz siz onlar beni seni onu bizi sizi onları bana sana ona bize size onlara "
        "benim senin onun bizim sizin onların bende sende onda bu şu bunlar şunlar bunu şunu "
        "buna bunun kendi ne kim kimin kime nerede nereye nereden nasıl neden niçin niye hangi "
        "kaç mı mi mu mü mıdır midir değil var yok daha en çok her hem hiç olan olarak oldu "
        "olduğu idi imiş dir dır sonra önce üzere karşı rağmen burada orada"
    ),
    "pl": (
        "i a oraz albo lub ale lecz jednak że żeby aby bo ponieważ gdy kiedy jeśli jeżeli jak "
        "niż w we z ze na do od ode dla przez przed przy po pod nad o u za bez między wśród ja "
        "ty on ona ono my wy oni one mnie mi mną ciebie cię ci tobie jego go mu niego niemu nim "
        "jej ją niej nią nas nam nami was wam wami ich im nich mój moja moje mojego mojej twój "
        "twoja twoje nasz nasza wasz swój swoja swoje się siebie sobie ten ta to te tego tej "
        "tych tym tamten co kto kogo komu czego czemu czym gdzie dlaczego który która które "
        "których ile czy nie też także już tylko jest są jestem jesteś był była było były być "
        "będzie"
    ),
    "cs": (
        "a i nebo ale však že aby když protože jestli pokud jako než v ve z ze s se na do od "
        "ode k ke ku pro přes před při po pod nad o u za bez mezi podle já ty on ona ono my vy "
        "oni ony mě mi mne mnou tebe tě ti tobě jeho ho mu něho jemu ji jí její nás nám námi "
        "vás vám vámi jich jim jimi můj moje moji mého mé tvůj tvoje náš naše váš vaše svůj "
        "svoje si sebe sobě ten ta to té toho tomu tím tento tato toto co kdo koho komu čeho "
        "čím kde kam odkud kdy proč jak který která které kolik zda ne také už jen je jsou jsem "
        "jsi jsme jste byl byla bylo byli být bude není"
    ),
    "ca": (
        "el la els les un una uns unes lo al als del dels de d l a amb en per pel pels des "
        "sobre sota sense entre fins cap segons durant i o ni però sinó perquè que què si com "
        "quan on mentre doncs jo tu ell ella nosaltres vosaltres ells elles vostè em et es ens "
        "us li hi ho me te se meu meva meus meves teu teva seu seva seus seves nostre nostra "
        "vostre vostra aquest aquesta aquests aquestes aquell aquella això allò qui quin quina "
        "quins quines qual quant no sí ja més molt també és sóc ets són som era eren fou ser "
        "sigut està estic estan estava he ha han havia haver vaig va van"
    ),
    "id": (
        "yang dan atau tetapi tapi namun karena sebab jika kalau bila agar supaya bahwa maka "
        "meskipun sementara sedangkan di ke dari pada untuk dengan tanpa oleh dalam antara tentang "
        "terhadap sejak hingga sampai bagi seperti saya aku kamu anda dia ia beliau kami kita "
        "mereka kalian ini itu tersebut apa siapa mana dimana kapan mengapa kenapa bagaimana "
        "berapa apakah siapakah tidak bukan belum jangan tak sudah telah akan sedang masih pernah "
        "ada adalah ialah merupakan juga hanya saja pun lah kah sangat lebih para sang si sebuah "
        "seorang"
    ),
    "vi": (
        "và hoặc hay nhưng mà thì là vì nên nếu khi để rằng tuy dù do bởi của cho với từ đến "
        "tới ở tại trong ngoài trên dưới về theo bằng giữa qua tôi tao tớ mình bạn cậu anh chị "
        "nó họ chúng ta mày hắn này kia đó đây ấy nọ ai gì nào đâu sao bao mấy thế đã đang sẽ "
        "vừa rồi còn vẫn cũng chỉ đều không chưa chẳng đừng có được bị phải các những cái con "
        "rất quá lắm hơn nữa như à ạ nhé nhỉ"
    ),
    "ru": (
        "и а но или либо что чтобы если когда как потому так хотя пока чем то же ли бы в во на "
        "с со к о об от до из у за по под над при для без между через перед после я ты он она "
        "оно мы вы они меня мне мной тебя тебе тобой его ему им нем него нему ним её ей ней неё "
        "нас нам нами вас вам вами их ими них мой моя моё мои моего моей твой твоя наш наша "
        "наши ваш ваша ваши свой своя своё свои себя себе этот эта это эти этого этой тот та те "
        "того той кто кого кому кем чего чему какой какая какое какие который которая которое "
        "которые где куда откуда почему зачем сколько не ни нет да уже ещё только был была было "
        "были быть есть будет какого какую каким каком каких"
    ),
    "uk": (
        "і й та а але або чи що щоб якщо коли як бо тому хоча поки ніж то ж же б би в у на з зі "
        "із до від од за по під над при про для без між через перед після я ти він вона воно ми "
        "ви вони мене мені мною тебе тобі його йому ним нього нім її їй неї нею нас нам нами "
        "вас вам вами їх їм них мій моя моє мої мого моєї твій твоя твоє твої наш наша наше "
        "наші ваш ваша ваше ваші свій своя своє свої себе собі цей ця це ці цього цієї той те "
        "ті того тієї хто кого кому ким чого чому який яка яке які де куди звідки навіщо "
        "скільки не ні так вже ще лише був була було були бути є буде яку якого яким яких"
    ),
    "el": (
        "ο η το οι τα του της των τον την τους τις στο στη στον στην στους στις στα ένας ένα μια "
        "μία και κι ή αλλά όμως ούτε ότι πως αν όταν όπως γιατί επειδή ενώ που να θα ας σε με για "
        "από προς κατά μετά παρά χωρίς μέχρι πριν έως εγώ εσύ αυτός αυτή αυτό εμείς εσείς αυτοί "
        "αυτές αυτά με μου σου μας σας τη τι ποιος ποια ποιο ποιοι ποιες πού πώς πότε πόσο πόσα "
        "πόσοι εκείνος εκείνη εκείνο δεν δε μη μην όχι ναι είναι είμαι είσαι είμαστε είστε ήταν "
        "ήμουν έχω έχεις έχει έχουμε έχετε έχουν είχε είχα πολύ πιο"
    ),
    "ar": (
        "و ف ب ل من إلى الى على علي عن في مع حتى منذ عند لدى بين خلال بعد قبل حول دون بدون ضد "
        "نحو أو او أم ثم بل لكن ولكن لأن لان أن ان إن إذا اذا لو كي لكي كما حيث بينما أنا انا "
        "أنت انت نحن هو هي هم هن هما أنتم له لها لهم لي لك لنا به بها بهم فيه فيها منه منها عنه "
        "عنها عليه عليها إليه إليها هذا هذه هذان هؤلاء ذلك تلك أولئك هنا هناك الذي التي الذين "
        "ما ماذا متى أين اين كيف لماذا كم أي اي هل لا لم لن ليس ليست قد كان كانت كانوا يكون "
        "تكون كنت وهو وهي ومن وفي كل غير سوف يا بماذا أية مما"
    ),
    "he": (
        "של את על אל עם מן בין אצל בלי לפני אחרי מאז עד כמו נגד תוך או אבל אך אולם כי אם אשר "
        "כאשר לכן למרות אני אתה הוא היא אנחנו אנו אתם אתן הם הן אותי אותך אותו אותה אותנו אתכם "
        "אותם אותן לי לך לו לה לנו לכם להם להן שלי שלך שלו שלה שלנו שלכם שלהם שלהן בו בה בהם בי "
        "ממנו ממנה זה זו זאת אלה אלו ההוא ההיא מה מי איפה היכן מתי מדוע למה איך כיצד כמה איזה "
        "איזו האם לא אין יש כן גם רק עוד כבר מאוד היה הייתה היו הייתי להיות יהיה תהיה"
    ),
    "fa": (
        "و یا اما ولی که اگر چون زیرا تا هم نیز پس بلکه در به از با بر برای بی بدون تحت درباره "
        "میان بین روی زیر را من تو او ما شما آنها ایشان وی خود مرا ترا این آن اینها همین همان "
        "چنین چه کی چی کجا چرا چگونه چطور کدام چند آیا هر هیچ همه است هست هستم هستی هستیم هستند "
        "نیست نیستند بود بودم بودی بودند شد شده شود می نمی ام ای اند باشد باشند دارم دارد دارند "
        "داشت خواهد خواهند باید نه بله"
    ),
    "hi": (
        "और या लेकिन मगर परन्तु परंतु किन्तु किंतु कि क्योंकि अगर यदि तो जब तब जैसे ताकि इसलिए का "
        "की के को से में पर ने तक लिए द्वारा साथ बिना बाद पहले बीच मैं मुझे मुझको मेरा मेरी मेरे "
        "हम हमें हमारा हमारी हमारे तू तुम तुम्हें तुम्हारा तुम्हारी तुम्हारे आप आपका आपकी आपके वह वो "
        "वे उस उसे उसने उसका उसकी उसके उन उन्हें उन्होंने उनका उनकी उनके यह ये इस इसे इसका इसकी "
        "इसके इन इन्हें इनका इनकी इनके अपना अपनी अपने जो जिस जिसे जिसका जिसकी जिसके जिन क्या कौन "
        "किस किसे किसने किसका किसकी किसके किन कब कहाँ कहां क्यों कैसे कैसा कैसी कितना कितनी कितने "
        "कौनसा नहीं न मत ही भी है हैं हूँ हूं हो था थी थे रहा रही रहे गया गई गए होता होती होते "
        "कोई कुछ"
    ),
    # Characters and pairs of characters, for that is what a run of kana or Han is cut into.
    "ja": (
        "は が を に へ と で も の や か ね よ な です ます でし した まし ませ せん "
        "して てい いる いた ない から まで より など だっ った って ては では には とは との "
        "での への もの こと これ それ あれ この その あの どの ここ そこ どこ だれ いつ なに "
        "なぜ どう うし すか のか たか るか とか ので のに けど しか かし また そし"
    ),
    "zh": (
        "的 了 是 在 和 与 與 我 你 他 她 它 这 這 那 吗 嗎 呢 吧 也 都 就 不 "
        "之 及 于 於 被 把 从 從 对 對 什么 什麼 是什 么是 麼是 了什 有什 怎么 怎麼 "
        "怎样 怎樣 为什 為什 如何 多少 了多 有多 哪个 哪個 哪些 哪里 哪裡 哪儿 是哪 "
        "谁的 誰的 是谁 是誰 我们 我們 你们 你們 他们 他們 她们 它们 这个 這個 那个 "
        "那個 这些 這些 那些 这里 這裡 那里 那裡 因为 因為 所以 但是 如果 虽然 雖然 "
        "以及 或者 而且 还是 還是 就是 不是 没有 沒有 的是"
    ),
    "ko": (
        "은 는 이 가 을 를 의 에 와 과 도 만 로 나 너 왜 에서 에게 한테 까지 부터 으로 "
        "처럼 하고 라고 니다 습니 입니 합니 됩니 니까 인가 는지 나요 까요 어요 아요 해요 "
        "예요 에요 이다 하는 했다 했어 무엇 뭐야 누구 어디 언제 어떻 떻게 얼마 우리 저는 "
        "나는 제가 내가 너는 그는 이것 그것 저것 그리 리고 하지 지만 그러 러나 때문 있는 "
        "있다 있어 없는 없다"
    ),
}

LANGUAGES = tuple(_LISTS)
"""The languages that have a list, by their ISO 639-1 codes."""

LOOKALIKES = frozenset(
    (
        "ada agar ai al ale alla als ama ami ante apa aus aux av az bao bare ben bent bin biz "
        "bo bude ca cap car care chi cho ci col com come comment con contra cu cum dai dan dans "
        "dar das dat deg dell dem den di die dig din dir door dos dove du durant ea ed eg ella "
        "elle em end era est ets eu ez fast fi fins fu go ha ham han hans har hat hay hem hen "
        "hi ho hoe hon hun hur ia io jag jen jest ji jim jo kan kde khi kia kim kit la lei li "
        "lui ma mag mai meg men mens mes met mia min mina mint mit mod molt mon mot na nam nas "
        "nei nella noe non nu num oli om one ono op os ott par pe pendant per plus pod pour pro "
        "pun quin sale sana sang sans sen sense ses si sig sin sit size ska son sous soy sub "
        "sue sur sus ta tai tale tao ten theo til till ton tot toto tue ty um uma un us va vain "
        "van var ve vers vi vid ville vous want war ya yang yo"
    ).split()
)
"""Function words of other languages that tell nothing, since English has them as words too."""


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """The function words of ``language``, case-folded and NFKC.

    Raises ``InvalidValue`` for a language without a list (see ``LANGUAGES``).

    >>> "the" in stop_words("en"), "computer" in stop_words("en")
    (True, False)
    """
    if language not in _LISTS:
        raise InvalidValue(
            f"there is no list of stop words for {language!r}; there is one for "
            + ", ".join(LANGUAGES)
        )
    return frozenset(unicodedata.normalize("NFKC", _LISTS[language].casefold()).split())
