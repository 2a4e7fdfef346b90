"""Documents: what is translated is replaced, and every other byte stays."""

import io
import json
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from manyheads.errors import DataError
from manyheads.text.documents import formats
from manyheads.text.documents.document import DocumentOptions
from manyheads.text.documents.formats import FORMATS, document_format, document_suffixes, split_document
from manyheads.text.documents.zip_archive import read_archive
from manyheads.text.tokens.words import split_text

OPTIONS = DocumentOptions("en", "zh")


def in_capitals(name: str, content: str | bytes, options: DocumentOptions = OPTIONS) -> bytes:
    """The document with every text in capitals as its translation."""
    document = split_document(name, content.encode() if isinstance(content, str) else content, options)
    joined = []
    for markup in document.markups:
        links = [[(i, i) for i in range(len(split_text(text, "word")))] for text in markup.texts]
        joined.append(markup.join([text.upper() for text in markup.texts], links))
    return document.write(joined)


def texts_of(name: str, content: str) -> list[str]:
    return [text for markup in split_document(name, content.encode(), OPTIONS).markups for text in markup.texts]


PAGE = """<!doctype html>\r
<html lang="en"><head><title>two cats</title><meta name="description" content="a &quot;page&quot;">
<meta name="viewport" content="width=device-width"><script>var a = "text";</script></head>
<body><p title='a dog' class="some class">two <b>red</b> cats {{ user.name }} <img src=a.png alt="a cat"> sleep.</p>
<pre title="code">some code</pre><p lang="de">ein <code>x</code></p><p translate="no" title="no">no</p></body></html>
"""
MARKDOWN = """---
title: two cats
---
# two *cats* `sleep` {#top}

some [link text](http://x.y/a_b "title") and __bold words__, {user_name} and
a second line.\x20\x20
after \\* a break ![alt text](a.png)[^1]

> quoted text
> goes on

- [ ] an item
- $E = mc^2$ formula

```python
print("code")
```

    indented code

| head | two |
|:-----|----:|
| cell | `x` |

[ref] and [other][ref] in snake_case.

[^1]: a note

[ref]: http://example.com "a title"

<div class="x">html block</div>

!!! note "Title"
    of mkdocs
"""
CATALOG = """# comment
msgid ""
msgstr ""
"Language: \\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

#: a.c:1
#, fuzzy, c-format
#| msgid "two"
msgid ""
"two %s cats \\"now\\"\\n"
"and <b>a dog</b>\\n"
msgstr "old\\n"

msgctxt "menu"
msgid "one cat"
msgid_plural "%d cats"
msgstr[0] ""
msgstr[1] ""

msgid "done"
msgstr "fertig"

#~ msgid "gone"
#~ msgstr "weg"
"""
XLIFF_1 = """<?xml version="1.0"?>
<xliff version="1.2"><file source-language="en-US" datatype="x" original="a"><body>
  <trans-unit id="1">
    <source>two <g id="1">red</g> &amp; cats<x id="2"/>.</source>
    <alt-trans><source>x</source><target>y</target></alt-trans>
  </trans-unit>
  <trans-unit id="2" translate="no"><source>no</source></trans-unit>
  <trans-unit id="3"><source>a dog</source><target state="new"/></trans-unit>
  <trans-unit id="4"><source>done</source><target>fertig</target></trans-unit>
  <trans-unit id="5"><source>a. b.</source>
    <seg-source><mrk mtype="seg" mid="1">a.</mrk> <mrk mtype="seg" mid="2">b.</mrk></seg-source></trans-unit>
</body></file></xliff>"""
XLIFF_2 = (
    '<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1">'
    '<segment><source>two <pc id="1">red</pc> cats<ph id="2"/></source></segment></unit></file></xliff>'
)
TABLE = """{
  "title": "two \\"cats\\" {{n}} here",  "n": 1,
  "url": "https://a.b/c", "list": ["one dog", true, {"@note": "meta", "icu": "{n, plural, one {# cat} other {# cats}}"}]
}
"""
YAML = """a: two cats # comment
b: 'it''s a %s dog'
c: "say: {n}"
d: |
  first line.
  second line.
e: >-
  folded text
  goes on
f: 12
g: [one cat, two: three]
"key text": &x say yes
i: *x
"""
SUBTITLES = """1\r
00:00:01,000 --> 00:00:02,000\r
two cats\r
<i>sleep</i>.\r
\r
2
00:00:03,000 --> 00:00:04,000
- hi!
- 42
"""

CHANGED = {
    "a.html": (
        PAGE,
        [
            ("two cats<", "TWO CATS<"),
            ("a &quot;page&quot;", "A &quot;PAGE&quot;"),
            ("two <b>red</b> cats", "TWO <b>RED</b> CATS"),
            (" sleep.", " SLEEP."),
            ("'a dog'", '"A DOG"'),
            ("a cat", "A CAT"),
            ("ein <", "EIN <"),
            ('<html lang="en"', '<html lang="zh"'),
        ],
    ),
    "a.md": (
        MARKDOWN,
        [
            ("# two *cats*", "# TWO *CATS*"),
            ("some [link text]", "SOME [LINK TEXT]"),
            ("and __bold words__", "AND **BOLD WORDS**"),
            ("and\na second line.  \nafter \\* a break", "AND A SECOND LINE.  \nAFTER \\* A BREAK"),
            ("quoted text\n> goes on", "QUOTED TEXT GOES ON"),
            ("an item", "AN ITEM"),
            (" formula", " FORMULA"),
            ("head | two", "HEAD | TWO"),
            ("| cell", "| CELL"),
            ("[ref] and [other][ref] in", "[REF][ref] AND [OTHER][ref] IN"),
            ("a note", "A NOTE"),
            ("html block", "HTML BLOCK"),
            ("of mkdocs", "OF MKDOCS"),
        ],
    ),
    "a.po": (
        CATALOG,
        [
            ("Language: ", "Language: zh"),
            ("nplurals=INTEGER; plural=EXPRESSION;", "nplurals=1; plural=0;"),
            ('#, fuzzy, c-format\n#| msgid "two"\n', "#, c-format\n"),
            ('msgstr "old\\n"', 'msgstr ""\n"TWO %s CATS \\"NOW\\"\\n"\n"AND <b>A DOG</b>\\n"'),
            ('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d CATS"'),
        ],
    ),
    "a.xlf": (
        XLIFF_1,
        [
            ('original="a"', 'original="a" target-language="zh"'),
            (
                'cats<x id="2"/>.</source>',
                'cats<x id="2"/>.</source>\n    <target state="needs-review-translation">TWO <g id="1">RED</g> &amp; '
                'CATS<x id="2"/>.</target>',
            ),
            ('<target state="new"/>', '<target state="needs-review-translation">A DOG</target>'),
            (
                "</seg-source>",
                '</seg-source><target state="needs-review-translation"><mrk mtype="seg" mid="1">A.</mrk> '
                '<mrk mtype="seg" mid="2">B.</mrk></target>',
            ),
        ],
    ),
    "b.xliff": (
        XLIFF_2,
        [
            ('2.0"><file', '2.0" trgLang="zh"><file'),
            ("</source>", '</source><target>TWO <pc id="1">RED</pc> CATS<ph id="2"/></target>'),
        ],
    ),
    "a.json": (TABLE, [('two \\"cats\\" {{n}} here', 'TWO \\"CATS\\" {{n}} HERE'), ("one dog", "ONE DOG")]),
    "a.yaml": (
        YAML,
        [
            ("two cats", "TWO CATS"),
            ("it''s a %s dog", "IT''S A %s DOG"),
            ("say: {n}", "SAY: {n}"),
            ("first line.\n  second line.", "FIRST LINE.\n  SECOND LINE."),
            ("folded text\n  goes on", "FOLDED TEXT GOES ON"),
            ("one cat", "ONE CAT"),
            (": three", ": THREE"),
            ("say yes", "SAY YES"),
        ],
    ),
    "a.srt": (SUBTITLES, [("two cats\r\n<i>sleep", "TWO CATS\r\n<i>SLEEP"), ("hi!", "HI!")]),
}


@pytest.mark.parametrize("name", CHANGED)
def test_only_text_changes(name: str) -> None:
    content, changes = CHANGED[name]
    expected = content
    for old, new in changes:
        assert old in expected, old
        expected = expected.replace(old, new, 1)
    assert in_capitals(name, content).decode() == expected


def test_texts_that_have_a_translation_are_replaced_on_request() -> None:
    options = DocumentOptions("en", "zh", replaces=True)
    assert 'msgid "done"\nmsgstr "DONE"' in in_capitals("a.po", CATALOG, options).decode()
    assert (
        '<source>done</source><target state="needs-review-translation">DONE</target>'
        in in_capitals("a.xlf", XLIFF_1, options).decode()
    )


def zipped(**files: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), text)
    return target.getvalue()


def content_of(archive: bytes, name: str) -> str:
    return next(text for member, text in read_archive(archive).items() if member.filename == name).decode()


WORD = (
    '<w:document xmlns:w="x"><w:body><w:p w:rsidR="1"><w:pPr><w:jc/></w:pPr><w:r>'
    '<w:t xml:space="preserve">two </w:t></w:r>'
    "<w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r><w:proofErr/><w:r><w:t> ca</w:t></w:r>"
    "<w:r><w:t>ts &amp; a dog</w:t></w:r>"
    "<w:r><w:drawing/></w:r></w:p><w:p><w:r><w:t>42</w:t></w:r></w:p>{more}</w:body></w:document>"
)


def test_runs_of_another_format_are_around_the_words_that_translate_theirs() -> None:
    source = zipped(word__document_xml=WORD.format(more=""), word__styles_xml="<a>text</a>")
    translated = in_capitals("a.docx", source)
    text = content_of(translated, "word/document.xml")
    preserve = '<w:t xml:space="preserve">'
    assert text == (
        f'<w:document xmlns:w="x"><w:body><w:p w:rsidR="1"><w:pPr><w:jc/></w:pPr><w:r>{preserve}TWO </w:t></w:r>'
        f"<w:r><w:rPr><w:b/></w:rPr>{preserve}RED</w:t></w:r><w:r>{preserve} CATS &amp; A DOG</w:t></w:r>"
        "<w:r><w:drawing/></w:r></w:p><w:p><w:r><w:t>42</w:t></w:r></w:p></w:body></w:document>"
    )
    assert content_of(translated, "word/styles.xml") == "<a>text</a>"


def test_links_bookmarks_and_text_boxes_of_word_stay_whole() -> None:
    more = (
        '<w:p><w:bookmarkStart w:id="0"/><w:r><w:t>see </w:t></w:r><w:hyperlink r:id="5"><w:r><w:t>a page</w:t></w:r>'
        '</w:hyperlink><w:bookmarkEnd w:id="0"/><w:r><w:tab/><w:t>now</w:t><w:br/><w:t>then</w:t></w:r></w:p>'
        "<w:p><w:r><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:r></w:p>"
    )
    text = content_of(in_capitals("a.docx", zipped(word__document_xml=WORD.format(more=more))), "word/document.xml")
    assert text.count("<w:p>") == text.count("</w:p>") - 1  # the first has an attribute
    plain = re.sub("<[^>]*>", "", text)
    assert plain.endswith("SEE A PAGENOWTHENIN A BOX")
    assert re.search(r'<w:hyperlink r:id="5"><w:r><w:t [^>]*>A PAGE</w:t></w:r></w:hyperlink>', text)
    assert text.count("<w:tab/>") == text.count("<w:br/>") == text.count("<w:bookmarkEnd") == 1


def test_notes_of_open_document_are_translated_apart() -> None:
    body = (
        '<office:text xmlns:office="o" xmlns:text="t"><text:p>two <text:span text:style-name="B">red</text:span> cats'
        "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>a dog</text:p></text:note-body>"
        "</text:note> sleep.</text:p></office:text>"
    )
    translated = in_capitals("a.odt", zipped(mimetype="application/x", content_xml=body))
    expected = body.replace("two", "TWO").replace("red", "RED").replace(" cats", " CATS").replace("a dog", "A DOG")
    assert content_of(translated, "content.xml") == expected.replace("sleep", "SLEEP")


def test_books() -> None:
    chapter = '<?xml version="1.0"?>\n<html xmlns="x" xml:lang="en"><body><p>two&#160;cats<br/></p></body></html>'
    package = '<package xmlns:dc="d"><dc:title>a book</dc:title><dc:language>en</dc:language><a>me</a></package>'
    source = zipped(**{"mimetype": "application/epub+zip", "c.xhtml": chapter, "p.opf": package})
    translated = in_capitals("a.epub", source)
    assert content_of(translated, "c.xhtml") == chapter.replace("two&#160;cats", "TWO\u00a0CATS").replace(
        'xml:lang="en"', 'xml:lang="zh"'
    )
    assert content_of(translated, "p.opf") == package.replace("a book", "A BOOK").replace(">en<", ">zh<")


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><xliff version="1.2"><file>&b;</file></xliff>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><xliff version="1.2">&a;</xliff>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlf", BOMB, "declares entities"),
        ("a.xlf", EXTERNAL, "declares entities"),
        ("a.xlf", "<xliff><file></xliff>", r"damaged in line 1 \(mismatched tag\)"),
        ("a.xlf", "<a>" * 300 + "</a>" * 300, "nested more than 256 levels"),
        ("a.xlf", "<tmx/>", "is not XLIFF"),
        ("a.xlf", XLIFF_1.replace("en-US", "de"), "source language is de, but the model translates from en"),
        ("a.po", CATALOG.replace("Language: ", "Language: fr"), "target language is fr, but the model .* into zh"),
        ("a.po", "two cats\n", "Line 1 is not a line of a catalog"),
        ("a.json", '{"a": "b"', "not valid JSON"),
        ("a.json", "[" * 100 + "]" * 100, "nested more than 32"),
        ("a.yaml", "a: [b", r"not valid YAML in line 1"),
        ("a.yaml", "[" * 5000, "YAML|nested too deeply"),
        ("a.srt", "two cats", "has no times"),
        ("a.docx", "two cats", "is not a zip archive"),
        ("a.md", b"\xff\xff", r"Byte 0 is not UTF-8"),
        ("a.html", b'<meta charset="klingon"><p>', "encoding, klingon, is not known"),
        ("a.html", b"", "is empty"),
        ("a.pdf", b"x", "documents end in .*, .yaml or .yml"),
    ],
)
def test_bad_documents_are_one_line_that_names_the_file(name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        in_capitals(name, content)
    assert str(caught.value).startswith(name)
    assert "\n" not in str(caught.value)


def test_zip_bombs_and_other_archives_are_refused() -> None:
    huge = "<w:document>" + " " * 60_000_000 + "</w:document>"
    for archive, message in (
        (zipped(word__document_xml=huge), r"expands as no document does \(word/document.xml\)"),
        (zipped(other_xml="<a/>"), "contains no text"),
        (zipped(word__document_xml=BOMB), "declares entities"),
        (zipped(word__document_xml=WORD)[:-40], "is not a zip archive"),
    ):
        with pytest.raises(DataError, match=message):
            in_capitals("a.docx", archive)


def test_a_page_keeps_its_encoding() -> None:
    page = '<meta charset="iso-8859-1"><p>café'
    document = split_document("a.html", page.encode("latin-1"), OPTIONS)
    written = document.write([markup.join(["猫 é"], [[]]) for markup in document.markups])
    assert written == '<meta charset="iso-8859-1"><p>&#29483; é'.encode("latin-1")
    utf16 = "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\ncat\r\n".encode("utf-16-le")
    assert in_capitals("a.srt", utf16).decode("utf-16").endswith("CAT\r\n")


@pytest.mark.parametrize(
    "text", ["--{column}-column is", "set model.head_width.", "a.{b}.c", "%d (of %d) cats", "{a}{b}"]
)
def test_no_character_is_lost_beside_placeholders(text: str) -> None:
    written = json.loads(in_capitals("a.json", json.dumps({"k": text})))["k"]
    assert Counter(written.upper().replace(" ", "")) == Counter(text.upper().replace(" ", ""))
    assert all(span in written for span in re.findall(r"\{\w+\}|%d|\w+_\w+", text))


def test_every_file_of_the_folder_is_a_format_with_its_own_suffixes() -> None:
    files = {file.stem for folder in formats.__path__ for file in Path(folder).glob("*.py")} - {"__init__"}
    assert {type(one).__module__.rpartition(".")[2] for one in FORMATS} == files
    suffixes = [suffix for one in FORMATS for suffix in one.suffixes]
    assert len({*suffixes}) == len(suffixes)
    assert all(document_format(f"A{suffix.upper()}") is not None for suffix in suffixes)
    assert document_suffixes().endswith(" or .yml")
