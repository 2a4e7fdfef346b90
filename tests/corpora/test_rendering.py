# A tree and its three texts are easier to compare when each is a line.
"""Rendering: hand-built trees of every phenomenon, with hand-written texts in three languages."""

import pytest

from manyheads.corpora import Relation, Sentence
from manyheads.corpora.lexicon import ADJECTIVE_BY_KEY, NOUN_BY_KEY, TRANSITIVE, VERB_BY_KEY
from manyheads.corpora.syntax_tree import Clause, Nominal, Tree
from manyheads.corpora.word_tables import ALL_NAMES, DURATIONS, FREQUENCIES, GOALS, MANNERS, PLACES, SPOTS, TIMES

NAMES = {name.key: name for name in ALL_NAMES}
ADVERBIALS = {
    "time": TIMES,
    "place": PLACES + SPOTS,
    "manner": MANNERS,
    "goal": GOALS,
    "frequency": FREQUENCIES,
    "duration": DURATIONS,
}


class Build:
    """Builds nodes with consecutive numbers, from the keys of words."""

    def __init__(self):
        self.last = 0

    def number(self):
        self.last += 1
        return self.last

    def noun(self, key, determiner="the", *, adjective="", **features):
        quality = ADJECTIVE_BY_KEY[adjective] if adjective else None
        return Nominal(self.number(), "noun", NOUN_BY_KEY[key], determiner=determiner, adjective=quality, **features)

    def name(self, key, **features):
        return Nominal(self.number(), "name", name=NAMES[key], **features)

    def pronoun(self, word):
        return Nominal(self.number(), "pronoun", pronoun=word)

    def ask(self, kind):
        return Nominal(self.number(), kind)

    def anaphor(self, antecedent, **features):
        return Nominal(self.number(), "anaphor", antecedent=antecedent, **features)

    def gap(self, head):
        return Nominal(self.number(), "gap", antecedent=head, plural=head.plural)

    def clause(self, verb="", subject=None, object=None, *, kind="verb", adjective="", **features):
        for slot, table in ADVERBIALS.items():
            if slot in features:
                features[slot] = next(entry for entry in table if entry.key == features[slot])
        lexeme = VERB_BY_KEY[verb] if verb else None
        quality = ADJECTIVE_BY_KEY[adjective] if adjective else None
        return Clause(self.number(), kind, lexeme, subject=subject, object=object, adjective=quality, **features)


def past_negation(b):
    subject = b.noun("teacher", plural=True, numeral=2, adjective="old-person")
    return Tree(b.clause("buy", subject, b.noun("book", adjective="red"), negated=True, time="yesterday"))


def kein(b):
    return Tree(b.clause("write", b.name("Anna"), b.noun("letter", "a", adjective="long"), negated=True))


def three_cases(b):
    mother = b.noun("mother", "own")
    mother.owner = b.pronoun("I")
    things = b.noun("flower", "", plural=True, numeral=3, adjective="white")
    return Tree(b.clause("give", b.noun("boy"), things, recipient=mother, time="this-morning", fronted=True))


def moved_object(b):
    return Tree(b.clause("send", b.noun("woman"), b.noun("letter"), recipient=b.pronoun("he")))


def dative_plural(b):
    receiver = b.noun("child", plural=True, adjective="polite")
    return Tree(b.clause("tell", b.name("Peter"), b.noun("story", "a"), recipient=receiver))


def weak_noun(b):
    return Tree(b.clause("see", b.noun("student"), b.noun("bear", adjective="big"), place="forest"))


def subject_relative(b):
    head = b.noun("man")
    head.relative = b.clause("read", b.gap(head), b.noun("newspaper", "a"), tense="progressive", gap="subject")
    return Tree(b.clause("know", b.name("Lisa"), head, tense="state"))


def object_relative(b):
    head = b.noun("book", adjective="interesting")
    head.relative = b.clause("buy", b.name("Anna"), b.gap(head), gap="object", time="yesterday")
    return Tree(b.clause("read", b.pronoun("they"), head, tense="modal", modal="want"))


def dative_relative(b):
    head = b.noun("nurse")
    head.relative = b.clause("help", b.pronoun("we"), b.gap(head), gap="object")
    return Tree(b.clause("sing", head, tense="future", time="tomorrow"))


def passive(b):
    return Tree(
        b.clause("break", b.noun("girl"), b.noun("vase", adjective="beautiful"), passive=True, time="yesterday")
    )


def passive_question(b):
    mine = b.noun("car", "own")
    mine.owner = b.pronoun("you")
    return Tree(b.clause("repair", None, mine, passive=True, question="whether"))


def passive_negated_agent_relative(b):
    agent = b.noun("man")
    agent.relative = b.clause("put-hat", b.gap(agent), b.noun("hat", "a"), tense="worn", gap="subject")
    return Tree(b.clause("find", agent, b.noun("key", plural=True), passive=True, negated=True))


def who(b):
    return Tree(b.clause("open", b.ask("who"), b.noun("window"), question="subject"))


def whom(b):
    return Tree(b.clause("help", b.noun("doctor"), b.ask("who"), question="object", time="last-week"))


def with_whom(b):
    return Tree(b.clause("chat", b.name("Tom"), b.ask("who"), question="object", tense="progressive"))


def how_many(b):
    return Tree(
        b.clause("drink", b.name("Nina"), b.noun("coffee", "how-many", plural=True, measured=True), question="object")
    )


def where(b):
    return Tree(b.clause("find", b.pronoun("you"), b.noun("cat"), question="where"))


def whither(b):
    return Tree(b.clause("go", b.noun("tourist", plural=True), goal="park", question="where"))


def why_not(b):
    return Tree(b.clause("invite", b.name("Emma"), b.name("Paul"), question="why", negated=True))


def because(b):
    dog = b.noun("dog")
    return Tree(
        b.clause("bark", dog),
        "because",
        b.clause(kind="quality", subject=b.anaphor(dog), adjective="hungry", tense="past"),
    )


def girls_because(b):
    girls = b.noun("girl", plural=True)
    return Tree(
        b.clause("go-home", girls),
        "because",
        b.clause(kind="quality", subject=b.anaphor(girls, plural=True), adjective="tired", tense="past"),
    )


def that(b):
    girl = b.noun("girl")
    return Tree(
        b.clause("say", girl, tense="state"), "that", b.clause("sing", b.anaphor(girl), tense="modal", modal="can")
    )


def when(b):
    return Tree(
        b.clause("tidy", b.noun("son", "own", owner=b.name("Eva")), b.noun("room", "a"), tense="was-progressive"),
        "when",
        b.clause("arrive", b.pronoun("we"), tense="moment"),
    )


def if_it_rains(b):
    main = b.clause("go", b.name("Oscar"), goal="beach", tense="future", negated=True)
    return Tree(main, "if", b.clause("rain", tense="state", time="tomorrow"))


def but_it(b):
    watch = b.noun("watch", "this")
    main = b.clause("buy", b.noun("chef"), watch, tense="modal", modal="want")
    return Tree(
        main,
        "but",
        b.clause(kind="quality", subject=b.anaphor(watch), adjective="expensive", tense="state", degree="too"),
    )


def reflexive_owner(b):
    anna = b.name("Laura")
    return Tree(b.clause("wash", anna, b.noun("coat", "own", owner=b.anaphor(anna)), tense="progressive"))


def habit(b):
    return Tree(
        b.clause("play-it", b.name("Leo"), b.noun("piano", "instrument"), tense="habit", time="every-day", place="home")
    )


def never(b):
    return Tree(b.clause("eat", b.pronoun("she"), b.noun("meat", "bare"), tense="habit", frequency="never"))


def duration(b):
    return Tree(b.clause("sleep", b.noun("cat", adjective="fat"), duration="two-hours", place="kitchen"))


def existence(b):
    return Tree(
        b.clause(kind="existence", subject=b.noun("cup", "", plural=True, numeral=5), place="on-table", tense="state")
    )


def absence(b):
    return Tree(b.clause(kind="existence", subject=b.noun("ball", "a"), place="in-box", tense="state", negated=True))


def comparison(b):
    return Tree(
        b.clause(
            kind="comparison",
            subject=b.noun("house", "this"),
            object=b.noun("room"),
            adjective="beautiful",
            tense="state",
        )
    )


def color_question(b):
    return Tree(
        b.clause(
            kind="quality", subject=b.noun("shirt", plural=True), adjective="white", tense="state", question="whether"
        )
    )


def request(b):
    return Tree(b.clause("give", None, b.noun("umbrella"), recipient=b.pronoun("I"), tense="order"))


def couple(b):
    pair = b.name("Anna")
    pair.second = b.name("Peter")
    return Tree(b.clause("walk", pair, tense="future", manner="together", place="park", time="tonight"))


EXPECTED = {
    past_negation: (
        "The two old teachers did not buy the red book yesterday.",
        "那两位老教师昨天没有买那本红色的书。",
        "Die zwei alten Lehrer haben das rote Buch gestern nicht gekauft.",
    ),
    kein: ("Anna did not write a long letter.", "安娜没有写很长的信。", "Anna hat keinen langen Brief geschrieben."),
    three_cases: (
        "This morning the boy gave my mother three white flowers.",
        "今天早上那个男孩给了我的妈妈三朵白色的花。",
        "Heute Morgen hat der Junge meiner Mutter drei weiße Blumen gegeben.",
    ),
    moved_object: (
        "The woman sent the letter to him.",
        "那个女人把那封信寄给了他。",
        "Die Frau hat ihm den Brief geschickt.",
    ),
    dative_plural: (
        "Peter told the polite children a story.",
        "彼得给那些有礼貌的孩子讲了一个故事。",
        "Peter hat den höflichen Kindern eine Geschichte erzählt.",
    ),
    weak_noun: (
        "The student saw the big bear in the forest.",
        "那个学生在森林里看见了那头大熊。",
        "Der Student hat den großen Bären im Wald gesehen.",
    ),
    subject_relative: (
        "Lisa knows the man who is reading a newspaper.",
        "丽莎认识那个正在读一份报纸的男人。",
        "Lisa kennt den Mann, der eine Zeitung liest.",
    ),
    object_relative: (
        "They want to read the interesting book that Anna bought yesterday.",
        "他们想读安娜昨天买的那本有趣的书。",
        "Sie wollen das interessante Buch lesen, das Anna gestern gekauft hat.",
    ),
    dative_relative: (
        "The nurse whom we helped will sing tomorrow.",
        "我们帮助的那位护士明天会唱歌。",
        "Der Krankenpfleger, dem wir geholfen haben, wird morgen singen.",
    ),
    passive: (
        "The beautiful vase was broken by the girl yesterday.",
        "那个漂亮的花瓶昨天被那个女孩打破了。",
        "Die schöne Vase wurde gestern vom Mädchen zerbrochen.",
    ),
    passive_question: ("Was your car repaired?", "你的汽车被修好了吗？", "Wurde dein Auto repariert?"),
    passive_negated_agent_relative: (
        "The keys were not found by the man who is wearing a hat.",
        "那些钥匙没有被那个戴着一顶帽子的男人找到。",
        "Die Schlüssel wurden nicht von dem Mann gefunden, der einen Hut trägt.",
    ),
    who: ("Who opened the window?", "谁打开了那扇窗户？", "Wer hat das Fenster geöffnet?"),
    whom: (
        "Who did the doctor help last week?",
        "那位医生上个星期帮助了谁？",
        "Wem hat die Ärztin letzte Woche geholfen?",
    ),
    with_whom: ("Who is Tom talking with?", "汤姆正在和谁聊天？", "Mit wem spricht Tom gerade?"),
    how_many: (
        "How many cups of coffee did Nina drink?",
        "妮娜喝了几杯咖啡？",
        "Wie viele Tassen Kaffee hat Nina getrunken?",
    ),
    where: ("Where did you find the cat?", "你是在哪里找到那只猫的？", "Wo hast du die Katze gefunden?"),
    whither: ("Where did the tourists go?", "那些游客去了哪里？", "Wohin sind die Touristen gegangen?"),
    why_not: ("Why did Emma not invite Paul?", "艾玛为什么没有邀请保罗？", "Warum hat Emma Paul nicht eingeladen?"),
    because: (
        "The dog barked because it was hungry.",
        "那只狗叫了，因为它很饿。",
        "Der Hund hat gebellt, weil er hungrig war.",
    ),
    girls_because: (
        "The girls went home because they were tired.",
        "那些女孩回家了，因为她们很累。",
        "Die Mädchen sind nach Hause gegangen, weil sie müde waren.",
    ),
    that: ("The girl says that she can sing.", "那个女孩说她会唱歌。", "Das Mädchen sagt, dass sie singen kann."),
    when: (
        "When we arrived, Eva's son was tidying a room.",
        "我们到的时候，伊娃的儿子正在整理一个房间。",
        "Als wir ankamen, räumte Evas Sohn gerade ein Zimmer auf.",
    ),
    if_it_rains: (
        "If it rains tomorrow, Oscar will not go to the beach.",
        "如果明天下雨，奥斯卡就不会去海滩。",
        "Wenn es morgen regnet, wird Oscar nicht an den Strand gehen.",
    ),
    but_it: (
        "The chef wants to buy this watch, but it is too expensive.",
        "那位厨师想买这块手表，但是它太贵了。",
        "Die Köchin will diese Armbanduhr kaufen, aber sie ist zu teuer.",
    ),
    reflexive_owner: ("Laura is washing her coat.", "劳拉正在洗她的大衣。", "Laura wäscht gerade ihren Mantel."),
    habit: (
        "Leo plays the piano at home every day.",
        "里奥每天都在家里弹钢琴。",
        "Leo spielt jeden Tag zu Hause Klavier.",
    ),
    never: ("She never eats meat.", "她从不吃肉。", "Sie isst nie Fleisch."),
    duration: (
        "The fat cat slept in the kitchen for two hours.",
        "那只胖猫在厨房里睡了两个小时。",
        "Die dicke Katze hat zwei Stunden lang in der Küche geschlafen.",
    ),
    existence: ("There are five cups on the table.", "桌子上有五个杯子。", "Auf dem Tisch stehen fünf Tassen."),
    absence: ("There is no ball in the box.", "箱子里没有球。", "In der Kiste liegt kein Ball."),
    comparison: (
        "This house is more beautiful than the room.",
        "这栋房子比那个房间漂亮。",
        "Dieses Haus ist schöner als das Zimmer.",
    ),
    color_question: ("Are the shirts white?", "那些衬衫是白色的吗？", "Sind die Hemden weiß?"),
    request: ("Please give the umbrella to me.", "请把那把雨伞给我。", "Bitte gib mir den Regenschirm."),
    couple: (
        "Anna and Peter will take a walk together in the park this evening.",
        "安娜和彼得今天晚上会在公园里一起散步。",
        "Anna und Peter werden heute Abend zusammen im Park spazieren gehen.",
    ),
}


@pytest.mark.parametrize("build", EXPECTED, ids=lambda build: build.__name__)
def test_tree_is_rendered_in_three_languages(build):
    sentence = Sentence(build(Build()))
    assert tuple(sentence.text(language) for language in ("en", "zh", "de")) == EXPECTED[build]


def aligned(sentence, source, target):
    ours, theirs = sentence.rendering(source).words, sentence.rendering(target).words
    return {(ours[i], theirs[j]) for i, j in sentence.alignment(source, target)}


def test_alignment_of_a_negation():
    pairs = aligned(Sentence(past_negation(Build())), "en", "zh")
    assert {("did", "没有"), ("not", "没有"), ("buy", "买"), ("two", "两"), ("two", "位"), ("red", "红色")} <= pairs
    assert not any(theirs in ("的", "。") for _, theirs in pairs)


def test_alignment_of_a_separable_verb_and_of_kein():
    assert {("tidying", "räumte"), ("tidying", "auf"), ("was", "gerade"), ("arrived", "ankamen")} <= aligned(
        Sentence(when(Build())), "en", "de"
    )
    assert {("not", "keinen"), ("a", "keinen")} <= aligned(Sentence(kein(Build())), "en", "de")


def relations(sentence, language):
    rendering = sentence.rendering(language)
    return {(r.kind, rendering.words[r.word], rendering.words[r.head]) for r in rendering.relations}


def test_relations_of_a_relative_clause():
    sentence = Sentence(object_relative(Build()))
    assert relations(sentence, "en") == {
        ("subject", "They", "read"),
        ("object", "book", "read"),
        ("modifier", "interesting", "book"),
        ("subject", "Anna", "bought"),
        ("object", "that", "bought"),
        ("antecedent", "that", "book"),
    }
    assert ("antecedent", "das", "Buch") in relations(sentence, "de")
    # Chinese has no relative pronoun.
    assert relations(sentence, "zh") == {
        ("subject", "他们", "读"),
        ("object", "书", "读"),
        ("modifier", "有趣", "书"),
        ("subject", "安娜", "买"),
    }


def test_relations_of_a_passive_a_gift_and_a_pronoun():
    assert ("subject", "花瓶", "打破") in relations(Sentence(passive(Build())), "zh")
    gift = relations(Sentence(three_cases(Build())), "de")
    assert {("indirect-object", "Mutter", "gegeben"), ("object", "Blumen", "gegeben")} <= gift
    assert ("antecedent", "er", "Hund") in relations(Sentence(because(Build())), "de")
    sentence = Sentence(reflexive_owner(Build()))
    assert Relation("antecedent", 3, 0) in sentence.rendering("en").relations


def test_standard_of_comparison_is_not_an_object():
    assert relations(Sentence(comparison(Build())), "en") == {("subject", "house", "beautiful")}


def test_translations_are_unique():
    for language in ("en", "zh", "de"):
        nouns = [noun.zh if language == "zh" else getattr(noun, language)[0] for noun in NOUN_BY_KEY.values()]
        assert len(set(nouns)) == len(nouns)
    chinese = {}
    for verb in TRANSITIVE:
        word = verb.zh.preposition + verb.zh.word + verb.zh.tail
        assert chinese.setdefault(word, verb.en.base) == verb.en.base
