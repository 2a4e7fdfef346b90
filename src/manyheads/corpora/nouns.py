"""The table of nouns: people, animals, food and things.

Columns: English (/ irregular plural) | 中文, classifier | Deutsch, plural (* weak) | English pronoun | tags.
Translations are unique in both directions. Each occupation has one German gender, deliberately mixed: the doctor is a
woman, the nurse is a man.
"""

from manyheads.corpora.lexemes import Measure, Name, Noun, english_plural, german_noun, rows

PEOPLE = """
man/men          | 男人 个     | der Mann, Männer                        | he  | person adult
woman/women      | 女人 个     | die Frau, Frauen                        | she | person adult
boy              | 男孩 个     | der Junge*, Jungen                      | he  | person child
girl             | 女孩 个     | das Mädchen, Mädchen                    | she | person child
child/children   | 孩子 个     | das Kind, Kinder                        |     | person child
student          | 学生 个     | der Student*, Studenten                 | he  | person grown
neighbour        | 邻居 位     | der Nachbar*, Nachbarn                  | he  | person adult
guest            | 客人 位     | der Gast, Gäste                         | he  | person adult
teacher          | 教师 位     | der Lehrer, Lehrer                      | he  | person adult worker
doctor           | 医生 位     | die Ärztin, Ärztinnen                   | she | person adult worker
nurse            | 护士 位     | der Krankenpfleger, Krankenpfleger      | he  | person adult worker
farmer           | 农民 位     | der Bauer*, Bauern                      | he  | person adult worker
baker            | 面包师 位   | der Bäcker, Bäcker                      | he  | person adult worker
chef             | 厨师 位     | die Köchin, Köchinnen                   | she | person adult worker
driver           | 司机 位     | der Fahrer, Fahrer                      | he  | person adult worker
singer           | 歌手 位     | die Sängerin, Sängerinnen               | she | person adult worker artist
actor            | 演员 位     | der Schauspieler, Schauspieler          | he  | person adult worker artist
writer           | 作家 位     | die Schriftstellerin, Schriftstellerinnen | she | person adult worker artist
painter          | 画家 位     | der Maler, Maler                        | he  | person adult worker artist
musician         | 音乐家 位   | die Musikerin, Musikerinnen             | she | person adult worker artist
lawyer           | 律师 位     | der Anwalt, Anwälte                     | he  | person adult worker
engineer         | 工程师 位   | die Ingenieurin, Ingenieurinnen         | she | person adult worker
scientist        | 科学家 位   | die Wissenschaftlerin, Wissenschaftlerinnen | she | person adult worker
waiter           | 服务员 位   | der Kellner, Kellner                    | he  | person adult worker
soldier          | 士兵 名     | der Soldat*, Soldaten                   | he  | person adult worker
tourist          | 游客 位     | der Tourist*, Touristen                 | he  | person adult
"""

# Relational nouns, which always have an owner: my mother, Anna's friend.
KIN = """
mother           | 妈妈 位     | die Mutter, Mütter                      | she | person adult parent family
father           | 爸爸 位     | der Vater, Väter                        | he  | person adult parent family
grandmother      | 奶奶 位     | die Großmutter, Großmütter              | she | person adult parent family
grandfather      | 爷爷 位     | der Großvater, Großväter                | he  | person adult parent family
brother          | 哥哥 个     | der Bruder, Brüder                      | he  | person grown family
sister           | 妹妹 个     | die Schwester, Schwestern               | she | person grown family
son              | 儿子 个     | der Sohn, Söhne                         | he  | person child family
daughter         | 女儿 个     | die Tochter, Töchter                    | she | person child family
uncle            | 叔叔 位     | der Onkel, Onkel                        | he  | person adult family
aunt             | 姑姑 位     | die Tante, Tanten                       | she | person adult family
friend           | 朋友 个     | der Freund, Freunde                     | he  | person adult
colleague        | 同事 位     | der Kollege*, Kollegen                  | he  | person adult
"""

ANIMALS = """
dog              | 狗 只       | der Hund, Hunde                         | it  | animal pet sized hunter colored-animal audible
cat              | 猫 只       | die Katze, Katzen                       | it  | animal pet sized hunter colored-animal
rabbit           | 兔子 只     | das Kaninchen, Kaninchen                | it  | animal pet sized prey colored-animal
bird             | 鸟 只       | der Vogel, Vögel                        | it  | animal prey flying audible
horse            | 马 匹       | das Pferd, Pferde                       | it  | animal farm colored-animal
cow              | 牛 头       | die Kuh, Kühe                           | it  | animal farm colored-animal
pig              | 猪 头       | das Schwein, Schweine                   | it  | animal farm
goat             | 山羊 只     | die Ziege, Ziegen                       | it  | animal farm colored-animal
hen              | 母鸡 只     | die Henne, Hennen                       | it  | animal farm prey
duck             | 鸭子 只     | die Ente, Enten                         | it  | animal farm prey
mouse/mice       | 老鼠 只     | die Maus, Mäuse                         | it  | animal prey
fox              | 狐狸 只     | der Fuchs, Füchse                       | it  | animal wild hunter
wolf/wolves      | 狼 只       | der Wolf, Wölfe                         | it  | animal wild hunter beast audible
bear             | 熊 头       | der Bär*, Bären                         | it  | animal wild beast
lion             | 狮子 头     | der Löwe*, Löwen                        | it  | animal wild far beast audible
tiger            | 老虎 只     | der Tiger, Tiger                        | it  | animal wild far beast
elephant         | 大象 头     | der Elefant*, Elefanten                 | it  | animal wild far
monkey           | 猴子 只     | der Affe*, Affen                        | it  | animal wild far
snake            | 蛇 条       | die Schlange, Schlangen                 | it  | animal wild long beast
"""

FOOD = """
apple            | 苹果 个     | der Apfel, Äpfel                        | it  | food fruit goods small round sweetish packed boxed
pear             | 梨 个       | die Birne, Birnen                       | it  | food fruit goods small sweetish packed boxed
banana           | 香蕉 根     | die Banane, Bananen                     | it  | food fruit goods small sweetish packed
orange           | 橙子 个     | die Orange, Orangen                     | it  | food fruit goods small sweetish sourish packed boxed
lemon            | 柠檬 个     | die Zitrone, Zitronen                   | it  | fruit goods small sourish boxed
strawberry       | 草莓 颗     | die Erdbeere, Erdbeeren                 | it  | food fruit goods sweetish
cherry           | 樱桃 颗     | die Kirsche, Kirschen                   | it  | food fruit goods sweetish sourish
tomato/tomatoes  | 西红柿 个   | die Tomate, Tomaten                     | it  | food goods small cut vegetable
potato/potatoes  | 土豆 个     | die Kartoffel, Kartoffeln               | it  | food goods small cut cooked vegetable boxed
onion            | 洋葱 个     | die Zwiebel, Zwiebeln                   | it  | goods small cut vegetable boxed
carrot           | 胡萝卜 根   | die Karotte, Karotten                   | it  | food goods small cut vegetable boxed
egg              | 鸡蛋 个     | das Ei, Eier                            | it  | food goods small cooked
cake             | 蛋糕 个     | der Kuchen, Kuchen                      | it  | food goods small sized baked cut sweetish gift
biscuit          | 饼干 块     | der Keks, Kekse                         | it  | food goods baked sweetish packed
pizza            | 比萨饼 张   | die Pizza, Pizzen                       | it  | food goods sized baked ordered
sausage          | 香肠 根     | die Wurst, Würste                       | it  | food goods cooked ordered
sandwich         | 三明治 个   | das Sandwich, Sandwiches                | it  | food goods ordered packed
"""

THINGS = """
book             | 书 本       | das Buch, Bücher                        | it  | goods portable small made tale readable gift thick priced packed boxed
newspaper        | 报纸 份     | die Zeitung, Zeitungen                  | it  | goods small readable packed
magazine         | 杂志 本     | die Zeitschrift, Zeitschriften          | it  | goods small made tale readable packed boxed
letter           | 信 封       | der Brief, Briefe                       | it  | portable small readable written sent longish packed boxed
novel            | 小说 本     | der Roman, Romane                       | it  | goods small tale readable gift longish thick packed
poem             | 诗 首       | das Gedicht, Gedichte                   | it  | tale readable written longish
story            | 故事 个     | die Geschichte, Geschichten             | it  | tale longish
question         | 问题 个     | die Frage, Fragen                       | it  | asked
song             | 歌 首       | das Lied, Lieder                        | it  | sung audible longish
film             | 电影 部     | der Film, Filme                         | it  | tale watched longish
picture          | 画 幅       | das Bild, Bilder                        | it  | portable made painted gift shown pretty priced
photo            | 照片 张     | das Foto, Fotos                         | it  | portable small made shown sent packed boxed
map              | 地图 张     | die Landkarte, Landkarten               | it  | goods portable small made shown packed boxed
stamp            | 邮票 张     | die Briefmarke, Briefmarken             | it  | goods collected
ticket           | 票 张       | das Ticket, Tickets                     | it  | goods portable sent priced packed
pen              | 钢笔 支     | der Füller, Füller                      | it  | goods portable small made colored lent used packed
pencil           | 铅笔 支     | der Bleistift, Bleistifte               | it  | goods portable small made colored lent used packed
table            | 桌子 张     | der Tisch, Tische                       | it  | goods made sized furniture heavy
chair            | 椅子 把     | der Stuhl, Stühle                       | it  | goods made sized furniture repairable comfortable
bed              | 床 张       | das Bett, Betten                        | it  | goods made sized furniture comfortable
sofa             | 沙发 张     | das Sofa, Sofas                         | it  | goods made sized furniture comfortable colored
lamp             | 灯 盏       | die Lampe, Lampen                       | it  | goods made small repairable upright
mirror           | 镜子 面     | der Spiegel, Spiegel                    | it  | goods made sized breakable
door             | 门 扇       | die Tür, Türen                          | it  | openable colored
window           | 窗户 扇     | das Fenster, Fenster                    | it  | openable wiped
house            | 房子 栋     | das Haus, Häuser                        | it  | costly made sized built colored pretty priced
room             | 房间 个     | das Zimmer, Zimmer                      | it  | sized tidied quiet pretty
bridge           | 桥 座       | die Brücke, Brücken                     | it  | longish
car              | 汽车 辆     | das Auto, Autos                         | it  | costly made vehicle washed repairable colored priced upright
bicycle          | 自行车 辆   | das Fahrrad, Fahrräder                  | it  | goods made vehicle stolen repairable colored lent priced upright
boat             | 船 条       | das Boot, Boote                         | it  | costly made sized built repairable colored
cup              | 杯子 个     | die Tasse, Tassen                       | it  | goods small made breakable dish colored upright boxed
plate            | 盘子 个     | der Teller, Teller                      | it  | goods small made breakable dish upright boxed
bowl             | 碗 个       | die Schüssel, Schüsseln                 | it  | goods small made breakable dish sized upright boxed
bottle           | 瓶子 个     | die Flasche, Flaschen                   | it  | small breakable hollow upright
vase             | 花瓶 个     | die Vase, Vasen                         | it  | goods small made breakable gift pretty upright boxed
knife/knives     | 刀 把       | das Messer, Messer                      | it  | goods small made used sharp
spoon            | 勺子 把     | der Löffel, Löffel                      | it  | goods small made used
key              | 钥匙 把     | der Schlüssel, Schlüssel                | it  | portable small packed boxed
box              | 箱子 个     | die Kiste, Kisten                       | it  | sized heavy openable hollow carried upright
bag              | 包 个       | die Tasche, Taschen                     | it  | goods portable made sized heavy colored hollow
suitcase         | 行李箱 个   | der Koffer, Koffer                      | it  | goods portable made sized heavy openable carried colored
umbrella         | 雨伞 把     | der Regenschirm, Regenschirme           | it  | goods portable small made colored lent used packed
watch            | 手表 块     | die Armbanduhr, Armbanduhren            | it  | goods portable small made repairable worn gift pretty priced packed
phone            | 手机 部     | das Handy, Handys                       | it  | goods portable small made repairable used priced packed
computer         | 电脑 台     | der Computer, Computer                  | it  | goods made repairable used stolen priced
camera           | 照相机 台   | die Kamera, Kameras                     | it  | goods portable small made repairable used lent priced packed
radio            | 收音机 台   | das Radio, Radios                       | it  | goods made repairable
piano            | 钢琴 架     | das Klavier, Klaviere                   | it  | costly made instrument heavy
guitar           | 吉他 把     | die Gitarre, Gitarren                   | it  | goods made instrument gift
violin           | 小提琴 把   | die Geige, Geigen                       | it  | goods made bowed gift
ball             | 球 个       | der Ball, Bälle                         | it  | goods portable small sized colored thrown boxed
doll             | 娃娃 个     | die Puppe, Puppen                       | it  | goods portable small gift pretty packed boxed
hat              | 帽子 顶     | der Hut, Hüte                           | it  | goods portable small made colored worn pretty packed boxed
scarf/scarves    | 围巾 条     | der Schal, Schals                       | it  | goods portable small colored worn clothing longish gift packed
coat             | 大衣 件     | der Mantel, Mäntel                      | it  | goods portable made colored clothes clothing
shirt            | 衬衫 件     | das Hemd, Hemden                        | it  | goods small made colored clothes clothing packed
dress            | 连衣裙 条   | das Kleid, Kleider                      | it  | goods made colored ladies clothing longish pretty priced
skirt            | 裙子 条     | der Rock, Röcke                         | it  | goods made colored ladies clothing longish
sweater          | 毛衣 件     | der Pullover, Pullover                  | it  | goods small made colored clothes clothing gift packed
jacket           | 夹克 件     | die Jacke, Jacken                       | it  | goods portable made colored clothes clothing
ring             | 戒指 枚     | der Ring, Ringe                         | it  | goods portable small worn gift pretty stolen priced packed
blanket          | 毯子 条     | die Decke, Decken                       | it  | goods colored clothing
towel            | 毛巾 条     | das Handtuch, Handtücher                | it  | goods small colored clothing packed boxed
candle           | 蜡烛 根     | die Kerze, Kerzen                       | it  | goods small colored upright boxed
gift             | 礼物 件     | das Geschenk, Geschenke                 | it  | goods small gift sent priced packed boxed
flower           | 花 朵       | die Blume, Blumen                       | it  | goods picked pretty painting
tree             | 树 棵       | der Baum, Bäume                         | it  | sized planted painting
oak              | 橡树 棵     | die Eiche, Eichen                       | it  | sized planted
pine             | 松树 棵     | die Kiefer, Kiefern                     | it  | sized planted
stone            | 石头 块     | der Stein, Steine                       | it  | sized heavy thrown collected
"""

# Sports and games, which never have an article.
GAMES = """
football         | 足球        | der Fußball                             | it  | kicked
basketball       | 篮球        | der Basketball                          | it  | batted
tennis           | 网球        | das Tennis                              | it  | batted
chess            | 棋          | das Schach                              | it  | chess
"""

# Columns: English | 中文 | Deutsch | measure | tags
MASS = """
tea              | 茶          | der Tee          | cup   | drink hotdrink
coffee           | 咖啡        | der Kaffee       | cup   | drink hotdrink
milk             | 牛奶        | die Milch        | glass | drink
water            | 水          | das Wasser       | glass | drink
juice            | 果汁        | der Saft         | glass | drink
lemonade         | 柠檬水      | die Limonade     | glass | drink
bread            | 面包        | das Brot         | piece | food baked cut fresh
cheese           | 奶酪        | der Käse         | piece | food cut fresh
meat             | 肉          | das Fleisch      | piece | food cut
chocolate        | 巧克力      | die Schokolade   | piece | food
rice             | 米饭        | der Reis         | bowl  | food
soup             | 汤          | die Suppe        | bowl  | soup ordered
"""

MEASURES = """
cup   | cup cups     | 杯 | die Tasse Tassen
glass | glass glasses | 杯 | das Glas Gläser
piece | piece pieces | 块 | das Stück Stück
bowl  | bowl bowls   | 碗 | die Schüssel Schüsseln
"""

NAMES = """
Anna | 安娜 | she
Peter | 彼得 | he
Maria | 玛丽亚 | she
Paul | 保罗 | he
Lisa | 丽莎 | she
Tom | 汤姆 | he
Emma | 艾玛 | she
David | 大卫 | he
Julia | 朱莉娅 | she
Martin | 马丁 | he
Sophie | 苏菲 | she
Daniel | 丹尼尔 | he
Laura | 劳拉 | she
Leo | 里奥 | he
Clara | 克拉拉 | she
Robert | 罗伯特 | he
Nina | 妮娜 | she
Oscar | 奥斯卡 | he
Eva | 伊娃 | she
Simon | 西蒙 | he
"""


def noun_table(table: str, *more: str) -> tuple[Noun, ...]:
    """Parse rows with the columns above; every noun also gets its own key and `more` as tags."""
    nouns = []
    for en, zh, de, sex, tags in rows(table):
        singular, _, plural = en.partition("/")
        word, _, classifier = zh.partition(" ")
        de_singular, _, de_plural = de.partition(", ")
        gender, forms = german_noun(de_singular, de_plural)
        english = (singular, plural or english_plural(singular))
        every_tag = frozenset([*tags.split(), *more, singular])
        nouns.append(Noun(singular, english, word, classifier.strip(), gender, (forms[0], forms[1]), sex, every_tag))
    return tuple(nouns)


def _measures() -> dict[str, Measure]:
    measures = {}
    for key, en, zh, de in rows(MEASURES):
        singular, plural = en.split()
        article, de_singular, de_plural = de.split()
        gender = {"die": "f", "das": "n"}[article]
        measures[key] = Measure(key, (singular, plural), zh, gender, (de_singular, de_plural))
    return measures


def _mass_nouns() -> tuple[Noun, ...]:
    measures = _measures()
    nouns = []
    for en, zh, de, measure, tags in rows(MASS):
        gender, forms = german_noun(de, "")
        every_tag = frozenset([*tags.split(), "mass", en])
        nouns.append(Noun(en, (en, en), zh, "", gender, (forms[0], forms[0]), "it", every_tag, measures[measure]))
    return tuple(nouns)


COUNT_NOUNS = noun_table(PEOPLE) + noun_table(ANIMALS) + noun_table(FOOD) + noun_table(THINGS, "thing")
KIN_NOUNS = noun_table(KIN, "kin")
GAME_NOUNS = noun_table(GAMES, "game")
MASS_NOUNS = _mass_nouns()
ALL_NOUNS = COUNT_NOUNS + KIN_NOUNS + GAME_NOUNS + MASS_NOUNS
ALL_NAMES = tuple(Name(key, zh, sex) for key, zh, sex in rows(NAMES))
