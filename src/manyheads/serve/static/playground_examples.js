// Texts to try, by task and language; a server may give a bundle's own.
/** @import { Bundle, TaskName } from "./playground_types.js" */

/** @type {Record<TaskName, Record<string, readonly string[]>>} */
const EXAMPLES = {
  seq2seq: {
    en: ["The teacher did not buy the red book.", "Two cats are sleeping in the garden.", "Who is reading the book?"],
    zh: ["那位教师没有买那本红色的书。", "两只猫正在花园里睡觉。", "谁正在读那本书？"],
    de: ["Der Lehrer hat das rote Buch nicht gekauft.", "Zwei Katzen schlafen im Garten.", "Wer liest das Buch?"],
    fr: ["Le professeur n’a pas acheté le livre rouge.", "Deux chats dorment dans le jardin.", "Qui lit le livre ?"],
  },
  classify: {
    en: ["The food was delicious, but the service was far too slow.", "What a wonderful film! I would watch it again."],
    zh: ["这家餐厅的菜很好吃，但是服务太慢了。", "这部电影真好看，我还想再看一遍。"],
    de: ["Das Essen war köstlich, aber die Bedienung viel zu langsam.", "Was für ein wunderbarer Film!"],
    fr: ["Le repas était délicieux, mais le service bien trop lent.", "Quel film magnifique !"],
  },
  tag: {
    en: ["Anna Weber met Daniel in Paris on Monday.", "Tom Baker works for Siemens in Berlin."],
    zh: ["王小明星期一在北京见到了李娜。", "张伟在上海的华为公司工作。"],
    de: ["Anna Weber traf Daniel am Montag in Paris.", "Tom Baker arbeitet für Siemens in Berlin."],
    fr: ["Anna Weber a rencontré Daniel à Paris lundi.", "Tom Baker travaille pour Siemens à Berlin."],
  },
  language: {
    en: ["This morning Nina lost her phone at the", "Last Sunday Anna lost her key in the park."],
    zh: ["上个星期天安娜在公园里", "今天早上，老邻居"],
    de: ["Letzten Sonntag hat Anna ihren Schlüssel", "Heute Morgen hat Nina"],
    fr: ["Dimanche dernier, Anna a perdu sa clé", "Ce matin, Nina"],
  },
  masked: {
    en: ["Two cats are [MASK] in the garden.", "The teacher bought a [MASK] [MASK]."],
    zh: ["两只猫正在[MASK]里睡觉。", "老师买了一本[MASK]色的[MASK]。"],
    de: ["Zwei Katzen [MASK] im Garten.", "Der Lehrer hat ein [MASK] Buch gekauft."],
    fr: ["Deux chats [MASK] dans le jardin.", "Le professeur a acheté un [MASK] rouge."],
  },
};

/** Examples in the language that the bundle reads, or in two if it is not known. @param {Bundle} bundle @returns {readonly string[]} */
export function examplesOf({ task, languages, examples }) {
  if (examples?.length) return examples;
  const table = EXAMPLES[task];
  const read = !languages.length ? ["en", "zh"] : task === "seq2seq" ? languages.slice(0, 1) : languages;
  const known = read.map((code) => code.toLowerCase().split(/[-_]/)[0]).filter((code) => code in table);
  return known.flatMap((code) => (known.length > 1 ? table[code].slice(0, 1) : table[code]));
}
