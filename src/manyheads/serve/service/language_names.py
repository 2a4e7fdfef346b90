"""English names of languages by their codes, as clients of LibreTranslate show them."""

from manyheads.text.language_codes import base_of

_NAMES = """
af Afrikaans|am Amharic|ar Arabic|az Azerbaijani|be Belarusian|bg Bulgarian|bn Bengali|bo Tibetan|br Breton|bs Bosnian
ca Catalan|ceb Cebuano|co Corsican|cs Czech|cy Welsh|da Danish|de German|el Greek|en English|eo Esperanto|es Spanish
et Estonian|eu Basque|fa Persian|fi Finnish|fo Faroese|fr French|fy Western Frisian|ga Irish|gd Scottish Gaelic
gl Galician|gu Gujarati|ha Hausa|he Hebrew|hi Hindi|hr Croatian|ht Haitian Creole|hu Hungarian|hy Armenian
ia Interlingua|id Indonesian|ig Igbo|is Icelandic|it Italian|ja Japanese|jv Javanese|ka Georgian|kk Kazakh|km Khmer
kn Kannada|ko Korean|ku Kurdish|ky Kyrgyz|la Latin|lb Luxembourgish|lo Lao|lt Lithuanian|lv Latvian|mg Malagasy
mi Maori|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese|my Burmese|nb Norwegian Bokmål
ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian|oc Occitan|or Odia|pa Punjabi|pl Polish|ps Pashto|pt Portuguese
qu Quechua|rm Romansh|ro Romanian|ru Russian|rw Kinyarwanda|sa Sanskrit|sd Sindhi|si Sinhala|sk Slovak|sl Slovenian
so Somali|sq Albanian|sr Serbian|st Southern Sotho|su Sundanese|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik
th Thai|tk Turkmen|tl Tagalog|tr Turkish|tt Tatar|ug Uyghur|uk Ukrainian|ur Urdu|uz Uzbek|vi Vietnamese|wo Wolof
xh Xhosa|yi Yiddish|yo Yoruba|yue Cantonese|zh Chinese|zu Zulu
"""
_BY_CODE: dict[str, str] = dict(entry.split(" ", 1) for entry in _NAMES.strip().replace("\n", "|").split("|"))


def language_name(code: str) -> str:
    """Return the English name of a language, with its script or region: zh-Hant is "Chinese (Hant)".

    A code without a known name is its own name.
    """
    base = base_of(code)
    if base not in _BY_CODE:
        return code
    variant = code.replace("_", "-").partition("-")[2]
    return f"{_BY_CODE[base]} ({variant})" if variant else _BY_CODE[base]
