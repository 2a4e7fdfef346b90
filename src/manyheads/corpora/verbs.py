"""The table of verbs and their selectional restrictions.

Columns: key | English (: particle) | 中文 (a duration replaces the part after '¦') | Deutsch | subject > object |
tenses | places | manners | 中文 after 被 ("-": no passive).

Tenses, letter by letter: P past, G progressive, H habit (bare plural or mass objects), h habit (definite objects),
F future, M modals, C can (能), K can as a skill (会), S present state, D past needs a duration in Chinese,
I imperative, N may follow "when", y may take weeks or years, Y always takes weeks or years, W is worn (穿着).
German: infinitive (prefix¦), er-form, preterite, participle, s for sein, + preposition:case of the object.
"""

from manyheads.corpora.lexemes import Verb, verb_table

TRANSITIVE = verb_table("""
buy      | buy bought bought   | 买    | kaufen kauft kaufte gekauft               | person > goods costly fruit baked | PGHFMIy | shop | - | 买走
read     | read read read      | 读    | lesen liest las gelesen                   | person > readable | PGHFMI | reading outdoors | slowly | -
write    | write wrote written | 写    | schreiben schreibt schrieb geschrieben    | person > written  | PGHFMy | reading | slowly | -
eat      | eat ate eaten       | 吃    | essen isst aß gegessen                    | person > food     | PGHFMI | eating home | slowly quickly secretly | 吃掉
devour   | eat ate eaten       | 吃    | fressen frisst fraß gefressen             | dog cat > meat sausage bread | PGH | soil | quickly secretly | 吃掉
munch    | eat ate eaten       | 吃    | fressen frisst fraß gefressen             | rabbit > carrot apple | PGH | soil | quickly secretly | 吃掉
drink    | drink drank drunk   | 喝    | trinken trinkt trank getrunken            | person > drink    | PGHFMI | eating home | slowly | 喝掉
cook     | cook                | 煮    | kochen kocht kochte gekocht               | person > cooked soup rice | PGHFMI | cooking | - | -
bake     | bake                | 烤    | backen backt backte gebacken              | person > cake pizza | PGHFMI | cooking | - | -
cut      | cut cut cut +cutting | 切   | schneiden schneidet schnitt geschnitten   | person > cut      | PGFMI | cooking | carefully slowly | -
wash     | wash                | 洗    | waschen wäscht wusch gewaschen            | person > washed clothes pet | PGhFMI | - | - | -
wipe     | clean               | 擦    | putzen putzt putzte geputzt               | person > wiped    | PGFMI | - | - | 擦干净
tidy     | tidy                | 整理  | auf¦räumen räumt räumte aufgeräumt        | person > tidied   | PGhFMI | - | quickly | 整理好
open     | open                | 打开  | öffnen öffnet öffnete geöffnet            | person > openable | PFMIN | - | carefully slowly secretly | 打开
close    | close               | 关上  | schließen schließt schloss geschlossen    | person > door window | PFMI | - | carefully | 关上
break    | break broke broken  | 打破  | zerbrechen zerbricht zerbrach zerbrochen  | person pet > breakable | P | - | - | 打破
repair   | repair              | 修理  | reparieren repariert reparierte repariert | person > repairable   | PGHFMCI | - | carefully quickly | 修好
look-for | look:for            | 寻找  | suchen sucht suchte gesucht               | person > portable pet | GM | - | - | -
find     | find found found    | 找到  | finden findet fand gefunden               | person > portable pet | PMCN | street outdoors | - | 找到
lose     | lose lost lost      | 弄丢  | verlieren verliert verlor verloren        | person > portable | P | street travel | - | -
steal    | steal stole stolen  | 偷走  | stehlen stiehlt stahl gestohlen           | adult > portable stolen | P | - | - | 偷走
bring    | bring brought brought | 带来 | mit¦bringen bringt brachte mitgebracht   | person > gift flower cake | PFI | - | - | -
carry    | carry               | 搬    | tragen trägt trug getragen                | adult > carried furniture | GFMC | - | slowly carefully | -
put-on   | wear wore worn      | 穿    | tragen trägt trug getragen                | person > clothes  | W | - | - | -
put-dress | wear wore worn     | 穿    | tragen trägt trug getragen                | lady > ladies     | W | - | - | -
put-hat  | wear wore worn      | 戴    | tragen trägt trug getragen                | person > worn     | W | - | - | -
see      | see saw seen        | 看见  | sehen sieht sah gesehen                   | person > person animal vehicle | PCN | outdoors street travel | - | 看见
hear     | hear heard heard    | 听见  | hören hört hörte gehört                   | person > audible  | PC | outdoors | - | -
observe  | watch               | 观察  | beobachten beobachtet beobachtete beobachtet | person > wild bird | PGFM | wilds | secretly | -
watch    | watch               | 看    | schauen schaut schaute geschaut           | person > watched  | PGHFM | film | - | -
visit    | visit               | 看望  | besuchen besucht besuchte besucht         | person > adult kin | PFMhy | - | - | -
meet     | meet met met        | 遇见  | treffen trifft traf getroffen             | person > person   | P | street travel shop outdoors | - | -
help     | help                | 帮助  | helfen hilft half geholfen +:dat          | person > person   | PFMhCI | - | patiently | -
thank    | thank               | 感谢  | danken dankt dankte gedankt +:dat         | person > adult kin | PMI | - | - | -
answer   | answer              | 回答  | beantworten beantwortet beantwortete beantwortet | person > asked | PFMCI | - | quickly slowly patiently | -
invite   | invite              | 邀请  | ein¦laden lädt lud eingeladen             | person > person   | PFMI | - | - | 邀请
call     | call                | 给_打¦电话 | an¦rufen ruft rief angerufen         | person > adult kin | PGFMhIN | - | - | -
chat     | talk:with           | 和_聊¦天   | sprechen spricht sprach gesprochen +mit:dat | person > adult kin | PGFMh | talk street outdoors | quietly | -
wait-for | wait:for            | 等    | warten wartet wartete gewartet +auf:acc   | person > person   | GFMD | travel street | patiently | -
ask      | ask                 | 问    | fragen fragt fragte gefragt               | person > worker kin | PFM | - | - | -
praise   | praise              | 表扬  | loben lobt lobte gelobt                   | parent worker > child student kin dog | P | - | - | 表扬
criticise | criticise          | 批评  | kritisieren kritisiert kritisierte kritisiert | adult > worker student grown | P | - | - | 批评
kiss     | kiss                | 亲吻  | küssen küsst küsste geküsst               | parent > family      | P | - | - | -
hug      | hug +hugging        | 拥抱  | umarmen umarmt umarmte umarmt             | person > family friend | P | - | happily | -
wake     | wake woke woken     | 叫醒  | wecken weckt weckte geweckt               | person > child kin guest | PFMhI | - | - | 叫醒
feed     | feed fed fed        | 喂    | füttern füttert fütterte gefüttert        | person > pet farm | PGhFMI | - | - | -
catch    | catch caught caught | 抓住  | fangen fängt fing gefangen                | hunter > prey     | PN | outdoors | - | 抓住
bite     | bite bit bitten     | 咬    | beißen beißt biss gebissen                | dog snake > person pet | P | outdoors | - | 咬伤
chase    | chase               | 追赶  | jagen jagt jagte gejagt                   | hunter > prey     | G | outdoors | - | -
rescue   | rescue              | 救    | retten rettet rettete gerettet            | adult > child pet student | P | - | - | 救
push     | push                | 推    | schieben schiebt schob geschoben          | person > bicycle car | PG | street | slowly | -
paint    | paint               | 画    | malen malt malte gemalt                   | person > painting horse bird cat dog | PGHFM | outdoors | happily | -
sing-it  | sing sang sung      | 唱    | singen singt sang gesungen                | person > sung     | PGFM | stage outdoors | loudly quietly happily | -
play-it  | play                | 弹    | spielen spielt spielte gespielt           | person > instrument | GHFMK | leisure | - | -
play-bow | play                | 拉    | spielen spielt spielte gespielt           | person > violin   | GHFMK | leisure | - | -
play-kick | play               | 踢    | spielen spielt spielte gespielt           | person > football | GHFMK | sport | - | -
play-bat | play                | 打    | spielen spielt spielte gespielt           | person > batted   | GHFMK | sport | - | -
play-chess | play              | 下    | spielen spielt spielte gespielt           | person > chess    | GHFMK | leisure talk | - | -
build    | build built built   | 建造  | bauen baut baute gebaut                   | engineer farmer neighbour man woman father uncle grandfather > built | PGFMY | - | - | -
build-bridge | build built built | 建造 | bauen baut baute gebaut                  | engineer > bridge | PGFMY | - | - | -
plant    | plant               | 种    | pflanzen pflanzt pflanzte gepflanzt       | person > planted  | PGFMIy | soil | - | -
pick     | pick                | 摘    | pflücken pflückt pflückte gepflückt       | person > fruit picked | PGFMI | soil | - | 摘下来
order    | order               | 点    | bestellen bestellt bestellte bestellt     | person > ordered hotdrink juice lemonade cake | PFM | eating | - | -
hide     | hide hid hidden     | 把_藏起来 | verstecken versteckt versteckte versteckt | person > portable gift | PFM | - | secretly quickly | 藏起来
throw    | throw threw thrown  | 扔    | werfen wirft warf geworfen                | child > thrown    | PG | - | - | -
use      | use                 | 使用  | benutzen benutzt benutzte benutzt         | person > used     | PGhMI | - | - | -
collect  | collect             | 收集  | sammeln sammelt sammelte gesammelt        | person > collected | HGM | - | - | -
""")

INTRANSITIVE = verb_table("""
sleep    | sleep slept slept   | 睡¦觉 | schlafen schläft schlief geschlafen       | person animal | GMD | sleep own | - | -
laugh    | laugh               | 笑    | lachen lacht lachte gelacht               | person | PG | - | loudly happily quietly | -
cry      | cry                 | 哭    | weinen weint weinte geweint               | person | PG | - | loudly quietly | -
sing     | sing sang sung      | 唱¦歌 | singen singt sang gesungen                | person | PGHFMK | outdoors stage home | loudly quietly happily together | -
dance    | dance               | 跳¦舞 | tanzen tanzt tanzte getanzt               | person | PGHFMK | stage outdoors | happily together | -
swim     | swim swam swum +swimming | 游¦泳 | schwimmen schwimmt schwamm geschwommen s | person | PGHFMK | water | together alone | -
run      | run ran run +running | 跑¦步 | laufen läuft lief gelaufen s             | person | PGHFM | outdoors | alone together | -
walk     | take took taken:a_walk       | 散¦步 | spazieren¦gehen geht ging spazieren_gegangen s | person | GHFM | outdoors | together alone | -
work     | work                | 工作  | arbeiten arbeitet arbeitete gearbeitet    | adult  | GHFMD | work home | - | -
study    | study               | 学习  | lernen lernt lernte gelernt               | person | GHFMD | reading own | together alone | -
cook-food | cook               | 做¦饭 | kochen kocht kochte gekocht               | person | PGHFMK | - | together | -
play     | play                | 玩    | spielen spielt spielte gespielt           | child pet | GD | outdoors home | happily | -
wait     | wait                | 等¦待 | warten wartet wartete gewartet            | person | GMD | travel street | patiently | -
shout    | shout               | 喊叫  | schreien schreit schrie geschrien         | person | PG | street outdoors | loudly | -
bark     | bark                | 叫    | bellen bellt bellte gebellt               | dog    | PG | outdoors | loudly | -
fall     | fall fell fallen:down | 摔倒  | hin¦fallen fällt fiel hingefallen s       | person | P | street outdoors | - | -
arrive   | arrive              | 到    | an¦kommen kommt kam angekommen s          | person | PFN | - | - | -
return   | return              | 回来  | zurück¦kommen kommt kam zurückgekommen s  | person | PFMN | - | alone together | -
wake-up  | wake woke woken:up  | 醒来  | auf¦wachen wacht wachte aufgewacht s      | person | N | - | - | -
get-up   | get got got +getting:up | 起床 | auf¦stehen steht stand aufgestanden s  | person | M | - | slowly | -
go-home  | go went gone:home   | 回家  | nach_Hause¦gehen geht ging nach_Hause_gegangen s | person | PFMN | - | alone together | -
disappear | disappear          | 消失  | verschwinden verschwindet verschwand verschwunden s | wild | P | wilds | - | -
travel   | travel +travelling  | 去旅行 | reisen reist reiste gereist s             | adult  | HFMy | - | alone together | -
dream    | dream               | 做¦梦 | träumen träumt träumte geträumt           | person | G | - | - | -
fly      | fly flew flown:away | 飞走  | weg¦fliegen fliegt flog weggeflogen s     | flying | P | - | quickly | -
""")

# Ditransitive verbs. In Chinese 'V给' puts the recipient after the verb, '给_V' before it.
GIVING = verb_table("""
give     | give gave given     | 给    | geben gibt gab gegeben                    | person > gift lent readable toy fruit flower | PFMI | - | - | -
send     | send sent sent      | 寄给  | schicken schickt schickte geschickt       | person > sent | PFMI | - | - | -
sell     | sell sold sold      | 卖给  | verkaufen verkauft verkaufte verkauft     | adult > costly lent made | PFM | - | - | -
lend     | lend lent lent      | 借给  | leihen leiht lieh geliehen                | person > lent book | PFMI | - | - | -
show     | show showed shown   | 给_看 | zeigen zeigt zeigte gezeigt               | person > shown watch | PFMI | - | - | -
tell     | tell told told      | 给_讲 | erzählen erzählt erzählte erzählt         | person > story | PGFMI | - | patiently | -
buy-for  | buy bought bought   | 给_买 | kaufen kauft kaufte gekauft               | person > gift ticket sandwich | PFM | shop | - | -
bake-for | bake                | 给_烤 | backen backt backte gebacken              | person > cake pizza | PFM | - | - | -
write-to | write wrote written | 给_写 | schreiben schreibt schrieb geschrieben    | person > letter | PGFM | - | - | -
""")

STATES = verb_table("""
like     | like                | 喜欢  | mögen mag mochte gemocht                  | person > person animal tale fruit drink flower | S | - | - | -
love     | love                | 爱    | lieben liebt liebte geliebt               | person > family pet | S | - | - | -
hate     | hate                | 讨厌  | hassen hasst hasste gehasst               | person > onion mouse snake meat | S | - | - | -
know     | know knew known     | 认识  | kennen kennt kannte gekannt               | person > worker neighbour guest tourist kin student | S | - | - | -
need     | need                | 需要  | brauchen braucht brauchte gebraucht       | person > used lent clothes key ticket lamp chair | S | - | - | -
have     | have had had        | 有    | haben hat hatte gehabt                    | person > pet kinless furniture vehicle costly instrument made | S | - | - | -
understand | understand understood understood | 理解 | verstehen versteht verstand verstanden | person > asked poem story | S | - | - | -
belong-to | belong:to          | 属于  | gehören gehört gehörte gehört +:dat       | portable vehicle lent house cat dog horse > person kin | S | - | - | -
""")

THINKING = verb_table("""
say      | say said said       | 说    | sagen sagt sagte gesagt                   | person | S | - | - | -
think    | think thought thought | 觉得 | denken denkt dachte gedacht              | person | S | - | - | -
know-that | know knew known    | 知道  | wissen weiß wusste gewusst                | person | S | - | - | -
believe  | believe             | 认为  | glauben glaubt glaubte geglaubt           | person | S | - | - | -
hope     | hope                | 希望  | hoffen hofft hoffte gehofft               | person | S | - | - | -
""")

MOTION = verb_table("""
go       | go went gone        | 去    | gehen geht ging gegangen s                | person > walk | PHFMI | - | alone together | -
drive    | drive drove driven  | 开车去 | fahren fährt fuhr gefahren s             | adult > drive | PHFM | - | alone together | -
""")

WEATHER = verb_table("""
rain     | rain                | 下雨 | regnen regnet regnete geregnet            | weather | PGF | - | - | -
snow     | snow                | 下雪 | schneien schneit schneite geschneit       | weather | PGF | - | - | -
""")

ALL_VERBS: tuple[Verb, ...] = TRANSITIVE + INTRANSITIVE + GIVING + STATES + THINKING + MOTION + WEATHER

# Verbs whose object is indefinite under negation (did not buy a book); with other verbs it is definite.
NEW_WHEN_NEGATED = frozenset(
    {"buy", "read", "write", "eat", "drink", "order", "bring", "paint", "bake", "cook", "watch", "plant", "hear", "use"}
)
# Verbs for things that people hope to do.
HOPED_FOR = frozenset(
    {
        "visit",
        "watch",
        "sing",
        "dance",
        "swim",
        "travel",
        "return",
        "arrive",
        "help",
        "invite",
    }
)
# Verbs whose object has no owner yet.
OWNERLESS = frozenset(
    {
        "buy",
        "order",
        "bake",
        "cook",
        "bring",
        "plant",
        "pick",
        "catch",
        "buy-for",
        "bake-for",
        "build",
        "write",
        "write-to",
        "understand",
        "watch",
        "answer",
        "throw",
    }
)

# The acts that a person's state explains: adjective → (verb, whether it was done).
REASONS = {
    "tired": (
        ("sleep", True),
        ("go-home", True),
        ("work", False),
        ("dance", False),
        ("run", False),
        ("cook-food", False),
        ("go", False),
        ("get-up", False),
        ("swim", False),
        ("tidy", False),
    ),
    "hungry": (("eat", True), ("cook-food", True), ("buy-baked", True), ("order-ordered", True), ("bark", True)),
    "thirsty": (("drink", True), ("buy-drink", True)),
    "happy": (("laugh", True), ("sing", True), ("dance", True), ("hug", True)),
    "sad": (("cry", True), ("laugh", False), ("sing", False), ("dance", False), ("go-home", True)),
    "angry": (
        ("shout", True),
        ("go-home", True),
        ("criticise", True),
        ("thank", False),
        ("invite", False),
        ("laugh", False),
    ),
    "nervous": (("laugh", False), ("dance", False), ("sing", False), ("answer", False)),
    "busy": (
        ("go", False),
        ("visit", False),
        ("call", False),
        ("help", False),
        ("go-home", False),
        ("cook-food", False),
    ),
}
