"""The table of adjectives; each row lists the tags of the nouns that the adjective fits.

Columns: key | English, comparative | 中文 before a noun, 中文 as predicate | Deutsch, comparative (stem if irregular)
| nouns' tags | value. The value is + (positive), - (negative) or 0 (neutral), for contrasts with "but". "state" is a
temporary state of body or mind, which may be a reason. "~" in the comparative column: not compared.
"""

from manyheads.corpora.lexemes import Adjective, rows

TABLE = """
# Passing states
tired       | tired ~                     | 疲惫的 累         | müde müder          | person pet             | state -
hungry      | hungry ~                    | 饥饿的 饿         | hungrig ~           | person animal          | state -
thirsty     | thirsty ~                   | 口渴的 渴         | durstig ~           | person animal          | state -
happy       | happy happier               | 快乐的 高兴       | glücklich glücklicher | person               | state +
sad         | sad sadder                  | 伤心的 伤心       | traurig trauriger   | person                 | state -
angry       | angry ~                     | 愤怒的 生气       | wütend ~            | person                 | state -
nervous     | nervous ~                   | 紧张的 紧张       | nervös ~            | person                 | state -
busy        | busy ~                      | 忙碌的 忙         | beschäftigt ~       | adult                  | state -
# People
young       | young younger               | 年轻的 年轻       | jung jünger         | adult                  | 0
old-person  | old ~                       | 老 老             | alt ~               | adult animal           | 0
tall        | tall taller                 | 高个子 高         | groß größer         | person                 | 0
friendly    | friendly friendlier         | 友好的 友好       | freundlich freundlicher | person             | +
clever      | clever cleverer             | 聪明的 聪明       | klug klüger         | person pet             | +
lazy        | lazy lazier                 | 懒惰的 懒         | faul fauler         | person pet             | -
diligent    | diligent more_diligent      | 勤奋的 勤奋       | fleißig fleißiger   | person                 | +
polite      | polite more_polite          | 有礼貌的 有礼貌   | höflich höflicher   | person                 | +
brave       | brave braver                | 勇敢的 勇敢       | mutig mutiger       | person pet             | +
strong      | strong stronger             | 强壮的 强壮       | stark stärker       | adult horse bear lion tiger elephant | +
rich        | rich richer                 | 富有的 富有       | reich reicher       | adult                  | +
poor        | poor poorer                 | 贫穷的 贫穷       | arm ärmer           | adult                  | -
shy         | shy shyer                   | 害羞的 害羞       | schüchtern schüchterner | person             | -
strict      | strict stricter             | 严格的 严格       | streng strenger     | parent teacher         | -
patient     | patient more_patient        | 有耐心的 有耐心   | geduldig geduldiger | person                 | +
honest      | honest more_honest          | 诚实的 诚实       | ehrlich ehrlicher   | person                 | +
curious     | curious more_curious        | 好奇的 好奇       | neugierig neugieriger | person pet           | 0
serious     | serious more_serious        | 严肃的 严肃       | ernst ernster       | adult                  | -
famous      | famous more_famous          | 著名的 出名       | berühmt berühmter   | artist                 | +
experienced | experienced more_experienced | 有经验的 有经验  | erfahren erfahrener | worker                 | +
# Animals
fat         | fat fatter                  | 胖 胖             | dick dicker         | pet pig                | -
thin-animal | thin thinner                | 瘦 瘦             | dünn dünner         | pet                    | 0
dangerous   | dangerous more_dangerous    | 危险的 危险       | gefährlich gefährlicher | beast              | -
cute        | cute cuter                  | 可爱的 可爱       | niedlich niedlicher | pet doll               | +
# Things
big         | big bigger                  | 大 大             | groß größer         | sized animal           | 0
small       | small smaller               | 小 小             | klein kleiner       | sized animal           | -
new         | new newer                   | 新 新             | neu neuer           | made                   | +
old-thing   | old older                   | 旧 旧             | alt älter           | made                   | -
long        | long longer                 | 很长的 长         | lang länger         | longish snake          | 0
short       | short shorter               | 很短的 短         | kurz kürzer         | longish                | 0
heavy       | heavy heavier               | 沉重的 重         | schwer schwerer     | heavy                  | -
light       | light lighter               | 很轻的 轻         | leicht leichter     | carried bag            | +
thick       | thick thicker               | 厚厚的 厚         | dick dicker         | thick                  | 0
expensive   | expensive more_expensive    | 昂贵的 贵         | teuer=teur teurer   | priced                 | -
cheap       | cheap cheaper               | 便宜的 便宜       | billig billiger     | priced                 | +
beautiful   | beautiful more_beautiful    | 漂亮的 漂亮       | schön schöner       | pretty                 | +
comfortable | comfortable more_comfortable | 舒适的 舒适      | bequem bequemer     | comfortable            | +
clean       | clean cleaner               | 干净的 干净       | sauber sauberer     | dish room clothes      | +
dirty       | dirty dirtier               | 脏 脏             | schmutzig schmutziger | dish clothes car pet | -
warm        | warm warmer                 | 暖和的 暖和       | warm wärmer         | clothing               | +
soft        | soft softer                 | 柔软的 柔软       | weich weicher       | clothing               | +
sharp       | sharp sharper               | 锋利的 锋利       | scharf schärfer     | sharp                  | 0
empty       | empty ~                     | 空 是空的         | leer ~              | hollow                 | 0
bright      | bright brighter             | 明亮的 明亮       | hell heller         | room                   | +
# Tales and questions
good        | good better                 | 好 好             | gut besser          | tale                   | +
interesting | interesting more_interesting | 有趣的 有意思    | interessant interessanter | tale             | +
boring      | boring more_boring          | 无聊的 无聊       | langweilig langweiliger | tale               | -
funny       | funny funnier               | 好笑的 好笑       | lustig lustiger     | tale                   | +
difficult   | difficult more_difficult    | 很难的 难         | schwierig schwieriger | asked                | -
simple      | simple simpler              | 简单的 简单       | einfach einfacher   | asked                  | +
important   | important more_important    | 重要的 重要       | wichtig wichtiger   | asked letter           | 0
# Food
hot         | hot hotter                  | 热 热             | heiß heißer         | hotdrink soup          | 0
cold        | cold colder                 | 冰 凉             | kalt kälter         | milk water juice lemonade                  | 0
sweet       | sweet sweeter               | 很甜的 甜         | süß süßer           | sweetish               | +
sour        | sour more_sour              | 很酸的 酸         | sauer=saur saurer   | sourish                | -
fresh       | fresh ~                     | 新鲜的 新鲜       | frisch ~            | fruit vegetable fresh egg | +
ripe        | ripe ~                      | 成熟的 熟         | reif ~              | fruit                  | +
delicious   | delicious ~                 | 好吃的 好吃       | lecker ~            | baked soup sausage sweetish cheese | +
# Colors
red         | red ~                       | 红色的 是红色的   | rot ~               | colored flower apple   | 0
blue        | blue ~                      | 蓝色的 是蓝色的   | blau ~              | colored flower         | 0
green       | green ~                     | 绿色的 是绿色的   | grün ~              | colored apple          | 0
yellow      | yellow ~                    | 黄色的 是黄色的   | gelb ~              | colored flower         | 0
white       | white ~                     | 白色的 是白色的   | weiß ~              | colored flower colored-animal | 0
black       | black ~                     | 黑色的 是黑色的   | schwarz ~           | colored colored-animal | 0
brown       | brown ~                     | 棕色的 是棕色的   | braun ~             | colored colored-animal | 0
grey        | grey ~                      | 灰色的 是灰色的   | grau ~              | colored colored-animal | 0
"""


def adjective_table(table: str) -> tuple[Adjective, ...]:
    """Parse rows with the columns above."""
    adjectives = []
    for key, en, zh, de, tags, value in rows(table):
        english, more = en.split()
        attribute, predicate = zh.split()
        german, de_more = de.split()
        form, _, stem = german.partition("=")
        stem = stem or (form[:-1] if form.endswith("e") else form)
        adjectives.append(
            Adjective(
                key,
                english,
                "" if more == "~" else more.replace("_", " "),
                attribute,
                predicate,
                form,
                stem,
                "" if de_more == "~" else de_more,
                frozenset(tags.split()),
                value,
            )
        )
    return tuple(adjectives)


ALL_ADJECTIVES = adjective_table(TABLE)
