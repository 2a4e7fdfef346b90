// The texts of the comparison page and of the timeline.
import { registerMessages } from "./messages.js";

registerMessages({
  en: {
    compare_title: "Compare", compare_mode: "What to compare",
    compare_texts: "Two texts", compare_bundles: "Two models", compare_training: "Over training",
    compare_first: "First text", compare_second: "Second text", compare_second_missing: "Choose a second text.",
    compare_differ: "Heads that differ most", compare_by: "by", compare_by_map: "their map", compare_by_entropy: "entropy", compare_by_sink: "weight on BOS, EOS, punctuation",
    compare_coming: "Both sides are computed …", compare_nothing: "The two models have no head of the same name.",
    compare_note_map: "Mean difference of √weight between the two maps on the same grid: 0 equal, 1 opposite. Press a head to see it on both sides.",
    compare_note_entropy: "Entropy of the rows in bits, left → right. Press a head to see it on both sides.",
    compare_note_sink: "Share of the weight on BOS, EOS and punctuation, left → right. Press a head to see it on both sides.",
    timeline_none: "This run kept one set of weights, so there is no way back to earlier steps. To look at training, keep the snapshots:",
    timeline_none_why: "Add these lines to the recipe and train again. The lens then shows a slider over all snapshots.",
    timeline_running: "The roles of the heads at every snapshot are computed …",
    timeline_note: "The role of every head at each snapshot, by the same definitions as on the page of all heads. Press a cell to see the head at that step.",
    timeline_few: "This run kept its last {count} snapshots only. With {setting} it keeps all of them.",
    timeline_slider: "Step of training", timeline_step: "step {step}", timeline_final: "finished model",
    timeline_label: "Roles of all heads over the steps of training",
  },
  zh: {
    compare_title: "对比", compare_mode: "对比内容",
    compare_texts: "两段文本", compare_bundles: "两个模型", compare_training: "训练过程",
    compare_first: "第一段文本", compare_second: "第二段文本", compare_second_missing: "请选择第二段文本。",
    compare_differ: "差别最大的头", compare_by: "依据", compare_by_map: "注意力图", compare_by_entropy: "熵", compare_by_sink: "落在 BOS、EOS、标点上的权重",
    compare_coming: "正在计算两边的结果……", compare_nothing: "两个模型没有同名的头。",
    compare_note_map: "两张图在同一网格上 √权重 的平均差：0 为相同，1 为相反。点击一个头，在两边同时查看。",
    compare_note_entropy: "各行的熵（比特），左 → 右。点击一个头，在两边同时查看。",
    compare_note_sink: "落在 BOS、EOS 和标点上的权重占比，左 → 右。点击一个头，在两边同时查看。",
    timeline_none: "这次训练只保留了一份权重，无法回看早先的步骤。要观察训练过程，请保留快照：",
    timeline_none_why: "把这几行写入配方并重新训练，这里就会出现可以拖动的时间轴。",
    timeline_running: "正在计算每个快照中各个头的角色……",
    timeline_note: "每个头在各个快照中的角色，定义与“所有注意力头”页相同。点击色块，查看该步骤的这个头。",
    timeline_few: "这次训练只保留了最后 {count} 个快照。设置 {setting} 可保留全部快照。",
    timeline_slider: "训练步数", timeline_step: "第 {step} 步", timeline_final: "训练完成的模型",
    timeline_label: "各个头在训练过程中的角色",
  },
});
