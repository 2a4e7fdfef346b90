"""Tables of adverbials of time, place and manner, and of numerals, in three languages.

The digits after a word are the parts of meaning that it expresses, which align the words of two languages:
`in/1 the/3 park/2`, `在/1 公园/2 里/1`, `im/13 Park/2`. Part 1 is the default.
"""

from manyheads.corpora.lexemes import adverbial_table

# Tags: the tense; "long" is a period too long for a single short act, "week" too short for building a house.
TIMES = adverbial_table("""
yesterday       | past            | yesterday              | 昨天            | gestern
last-week       | past long week  | last/1 week/2          | 上个/1 星期/2   | letzte/1 Woche/2
last-year       | past long       | last/1 year/2          | 去年/12         | letztes/1 Jahr/2
this-morning    | past            | this/1 morning/2       | 今天/1 早上/2   | heute/1 Morgen/2
last-night      | past            | yesterday/1 evening/2  | 昨天/1 晚上/2   | gestern/1 Abend/2
last-sunday     | past            | last/1 Sunday/2        | 上个/1 星期天/2 | letzten/1 Sonntag/2
last-friday     | past            | last/1 Friday/2        | 上个/1 星期五/2 | letzten/1 Freitag/2
two-days-ago    | past ago        | two/1 days/2 ago/3     | 两/1 天/2 前/3  | vor/3 zwei/1 Tagen/2
an-hour-ago     | past ago        | an/1 hour/2 ago/3      | 一/1 个/1 小时/2 前/3 | vor/3 einer/1 Stunde/2
recently        | past long ago   | recently               | 最近            | kürzlich
tomorrow        | future          | tomorrow               | 明天            | morgen
tomorrow-early  | future          | tomorrow/1 morning/2   | 明天/1 早上/2   | morgen/1 früh/2
tonight         | future          | this/1 evening/2       | 今天/1 晚上/2   | heute/1 Abend/2
day-after       | future          | the/1 day/1 after/1 tomorrow/1 | 后天    | übermorgen
next-week       | future long week | next/1 week/2          | 下个/1 星期/2   | nächste/1 Woche/2
next-year       | future long     | next/1 year/2          | 明年/12         | nächstes/1 Jahr/2
next-sunday     | future          | next/1 Sunday/2        | 下个/1 星期天/2 | nächsten/1 Sonntag/2
next-friday     | future          | next/1 Friday/2        | 下个/1 星期五/2 | nächsten/1 Freitag/2
every-day       | habit           | every/1 day/2          | 每天/12         | jeden/1 Tag/2
every-morning   | habit           | every/1 morning/2      | 每天/1 早上/2   | jeden/1 Morgen/2
every-evening   | habit           | every/1 evening/2      | 每天/1 晚上/2   | jeden/1 Abend/2
every-week      | habit rare      | every/1 week/2         | 每个/1 星期/2   | jede/1 Woche/2
every-sunday    | habit rare      | every/1 Sunday/2       | 每个/1 星期天/2 | jeden/1 Sonntag/2
today           | present         | today                  | 今天            | heute
now             | present         | now                    | 现在            | jetzt
""")

FREQUENCIES = adverbial_table("""
always    | -        | always    | 总是   | immer
often     | -        | often     | 经常   | oft
usually   | -        | usually   | 通常   | normalerweise
sometimes | -        | sometimes | 有时候 | manchmal
rarely    | negative | rarely    | 很少   | selten
never     | negative | never     | 从不   | nie
""")

DURATIONS = adverbial_table("""
long       | - | for/1 a/1 long/1 time/1 | 很久/1                  | lange/1
an-hour    | - | for/1 an/2 hour/3       | 一/2 个/2 小时/3        | eine/2 Stunde/3 lang/1
two-hours  | - | for/1 two/2 hours/3     | 两/2 个/2 小时/3        | zwei/2 Stunden/3 lang/1
three-hours | - | for/1 three/2 hours/3  | 三/2 个/2 小时/3        | drei/2 Stunden/3 lang/1
all-day    | - | all/1 day/2             | 一/1 整/1 天/2          | den/1 ganzen/1 Tag/2
""")

MANNERS = adverbial_table("""
slowly     | - | slowly     | 慢慢地   | langsam
quickly    | - | quickly    | 快速地   | schnell
carefully  | - | carefully  | 小心地   | vorsichtig
quietly    | - | quietly    | 轻声地   | leise
loudly     | - | loudly     | 大声地   | laut
happily    | - | happily    | 开心地   | fröhlich
secretly   | - | secretly   | 偷偷地   | heimlich
patiently  | - | patiently  | 耐心地   | geduldig
together   | - | together   | 一起     | zusammen
alone      | - | alone      | 独自     | allein
""")

# Locations of events; the tags are the activities there.
PLACES = adverbial_table("""
park        | outdoors sport     | in/1 the/3 park/2        | 在/1 公园/2 里/1   | im/13 Park/2
garden      | outdoors home soil pets | in/1 the/3 garden/2      | 在/1 花园/2 里/1   | im/13 Garten/2
forest      | outdoors wilds     | in/1 the/3 forest/2      | 在/1 森林/2 里/1   | im/13 Wald/2
beach       | outdoors sport     | on/1 the/3 beach/2       | 在/1 海滩/2 上/1   | am/13 Strand/2
street      | street             | in/1 the/3 street/2      | 在/1 街/2 上/1     | auf/1 der/3 Straße/2
farm        | farms              | on/1 the/3 farm/2        | 在/1 农场/2 里/1   | auf/1 dem/3 Bauernhof/2
meadow      | outdoors farms sport | in/1 the/3 meadow/2      | 在/1 草地/2 上/1   | auf/1 der/3 Wiese/2
lake        | water              | in/1 the/3 lake/2        | 在/1 湖/2 里/1     | im/13 See/2
kitchen     | home cooking pets  | in/1 the/3 kitchen/2     | 在/1 厨房/2 里/1   | in/1 der/3 Küche/2
living-room | home leisure pets  | in/1 the/3 living/2 room/2 | 在/1 客厅/2 里/1 | im/13 Wohnzimmer/2
library     | reading            | in/1 the/3 library/2     | 在/1 图书馆/2 里/1 | in/1 der/3 Bibliothek/2
cafe        | eating reading talk | in/1 the/3 café/2       | 在/1 咖啡馆/2 里/1 | im/13 Café/2
restaurant  | eating talk        | in/1 the/3 restaurant/2  | 在/1 餐厅/2 里/1   | im/13 Restaurant/2
market      | shop               | at/1 the/3 market/2      | 在/1 市场/2 上/1   | auf/1 dem/3 Markt/2
supermarket | shop               | in/1 the/3 supermarket/2 | 在/1 超市/2 里/1   | im/13 Supermarkt/2
school      | study              | at/1 school/2            | 在/1 学校/2 里/1   | in/1 der/3 Schule/2
office      | work               | in/1 the/3 office/2      | 在/1 办公室/2 里/1 | im/13 Büro/2
hospital    | healing            | in/1 the/3 hospital/2    | 在/1 医院/2 里/1   | im/13 Krankenhaus/2
station     | travel             | at/1 the/3 station/2     | 在/1 火车站/2      | am/13 Bahnhof/2
airport     | travel             | at/1 the/3 airport/2     | 在/1 机场/2        | am/13 Flughafen/2
museum      | sight              | in/1 the/3 museum/2      | 在/1 博物馆/2 里/1 | im/13 Museum/2
zoo         | sight wilds cages  | at/1 the/3 zoo/2         | 在/1 动物园/2 里/1 | im/13 Zoo/2
theatre     | stage              | in/1 the/3 theatre/2     | 在/1 剧院/2 里/1   | im/13 Theater/2
cinema      | film               | at/1 the/3 cinema/2      | 在/1 电影院/2 里/1 | im/13 Kino/2
hotel       | sleep              | in/1 the/3 hotel/2       | 在/1 酒店/2 里/1   | im/13 Hotel/2
home        | own sleep leisure  | at/1 home/2              | 在/1 家/2 里/1     | zu/1 Hause/2
""")

# Destinations. Chinese puts the location after 去 without a preposition.
GOALS = adverbial_table("""
park        | walk open  | to/1 the/3 park/2        | 公园/2   | in/1 den/3 Park/2
forest      | walk open  | to/1 the/3 forest/2      | 森林/2   | in/1 den/3 Wald/2
beach       | walk drive open | to/1 the/3 beach/2       | 海滩/2   | an/1 den/3 Strand/2
library     | walk       | to/1 the/3 library/2     | 图书馆/2 | in/1 die/3 Bibliothek/2
restaurant  | walk       | to/1 the/3 restaurant/2  | 餐厅/2   | ins/13 Restaurant/2
market      | walk drive open | to/1 the/3 market/2      | 市场/2   | auf/1 den/3 Markt/2
supermarket | walk drive | to/1 the/3 supermarket/2 | 超市/2   | in/1 den/3 Supermarkt/2
school      | learn      | to/1 school/2            | 学校/2   | in/1 die/3 Schule/2
office      | drive      | to/1 the/3 office/2      | 办公室/2 | ins/13 Büro/2
hospital    | drive      | to/1 the/3 hospital/2    | 医院/2   | ins/13 Krankenhaus/2
station     | walk drive | to/1 the/3 station/2     | 火车站/2 | zum/13 Bahnhof/2
airport     | drive      | to/1 the/3 airport/2     | 机场/2   | zum/13 Flughafen/2
museum      | walk       | to/1 the/3 museum/2      | 博物馆/2 | ins/13 Museum/2
zoo         | walk open  | to/1 the/3 zoo/2         | 动物园/2 | in/1 den/3 Zoo/2
theatre     | walk       | to/1 the/3 theatre/2     | 剧院/2   | ins/13 Theater/2
cinema      | walk       | to/1 the/3 cinema/2      | 电影院/2 | ins/13 Kino/2
""")

# Locations of things; the tags are what may be there (small things, pets, people, vehicles).
SPOTS = adverbial_table("""
on-table      | small           | on/1 the/3 table/2     | 在/1 桌子/2 上/1     | auf/1 dem/3 Tisch/2
on-chair      | portable clothing pet       | on/1 the/3 chair/2     | 在/1 椅子/2 上/1     | auf/1 dem/3 Stuhl/2
on-bed        | portable clothing pet       | on/1 the/3 bed/2       | 在/1 床/2 上/1       | auf/1 dem/3 Bett/2
on-sofa       | portable clothing pet       | on/1 the/3 sofa/2      | 在/1 沙发/2 上/1     | auf/1 dem/3 Sofa/2
under-table   | ball doll bottle pet       | under/1 the/3 table/2  | 在/1 桌子/2 下面/1   | unter/1 dem/3 Tisch/2
under-bed     | ball doll box pet       | under/1 the/3 bed/2    | 在/1 床/2 下面/1     | unter/1 dem/3 Bett/2
under-tree    | pet person      | under/1 the/3 tree/2   | 在/1 树/2 下面/1     | unter/1 dem/3 Baum/2
in-box        | boxed           | in/1 the/3 box/2       | 在/1 箱子/2 里/1     | in/1 der/3 Kiste/2
in-bag        | packed           | in/1 the/3 bag/2       | 在/1 包/2 里/1       | in/1 der/3 Tasche/2
in-suitcase   | portable clothing | in/1 the/3 suitcase/2  | 在/1 行李箱/2 里/1   | im/13 Koffer/2
behind-house  | pet person vehicle | behind/1 the/3 house/2 | 在/1 房子/2 后面/1 | hinter/1 dem/3 Haus/2
before-house  | pet person vehicle | in/1 front/1 of/1 the/3 house/2 | 在/1 房子/2 前面/1 | vor/1 dem/3 Haus/2
beside-house  | pet person vehicle | next/1 to/1 the/3 house/2 | 在/1 房子/2 旁边/1 | neben/1 dem/3 Haus/2
behind-door   | pet person      | behind/1 the/3 door/2  | 在/1 门/2 后面/1     | hinter/1 der/3 Tür/2
in-garden     | pet person farm | in/1 the/3 garden/2    | 在/1 花园/2 里/1     | im/13 Garten/2
in-kitchen    | pet person      | in/1 the/3 kitchen/2   | 在/1 厨房/2 里/1     | in/1 der/3 Küche/2
""")

NUMERALS = {
    2: ("two", "两", "zwei"),
    3: ("three", "三", "drei"),
    4: ("four", "四", "vier"),
    5: ("five", "五", "fünf"),
    6: ("six", "六", "sechs"),
    7: ("seven", "七", "sieben"),
    8: ("eight", "八", "acht"),
    9: ("nine", "九", "neun"),
    10: ("ten", "十", "zehn"),
}
