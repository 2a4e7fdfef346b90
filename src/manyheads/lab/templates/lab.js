// The language switch: the choice of the reader, else the language of the browser, else that of the page.
(() => {
  "use strict";
  const root = document.documentElement;
  const group = document.getElementById("language");
  const buttons = [...group.querySelectorAll("button")];
  const show = (language) => {
    root.lang = language;
    document.title = language === "zh" ? root.dataset.titleZh : root.dataset.titleEn;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === language));
  };
  let stored = null;
  try { stored = localStorage.getItem("manyheads-language"); } catch { /* a page opened from disk may have no storage */ }
  show(stored || root.lang);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      show(button.value);
      try { localStorage.setItem("manyheads-language", button.value); } catch { /* see above */ }
    });
  }
  group.hidden = false;
})();
