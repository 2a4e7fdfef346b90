"""Documents that are a zip of XML files: read with bounds, and written with all other files unchanged."""

import io
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.text.documents.document import MAX_DOCUMENT_BYTES, DividedText, Document, DocumentOptions, decode_markup
from manyheads.text.markup.xml_scanner import check_xml

_MAX_FILES = 10_000
_MAX_EXPANSION = 200  # of one file; the XML of office documents shrinks to a twentieth
_EXPANSION_CHECKED_FROM = 1 << 20  # bytes: smaller files are harmless
_CHUNK = 1 << 16
_ENCRYPTED = 1  # a flag of a file

SplitXml = Callable[[str, str, DocumentOptions], DividedText]  # of a file's name and its text


def read_archive(content: bytes) -> dict[zipfile.ZipInfo, bytes]:
    """Return the files of an archive in their order."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return dict(_files(archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError):
        raise DataError(_("It is not a zip archive, as such documents are, or it is damaged.")) from None


def _files(archive: zipfile.ZipFile) -> "Iterator[tuple[zipfile.ZipInfo, bytes]]":
    members = archive.infolist()
    if len(members) > _MAX_FILES:
        raise DataError(_("It contains {n:,} files; at most {most:,} are supported.", n=len(members), most=_MAX_FILES))
    if len({member.filename for member in members}) < len(members):
        raise DataError(_("It contains two files of one name."))
    n_left = MAX_DOCUMENT_BYTES
    for member in members:
        if member.flag_bits & _ENCRYPTED:
            raise DataError(_("It is encrypted. Save it without a password."))
        most = max(_EXPANSION_CHECKED_FROM, _MAX_EXPANSION * member.compress_size)
        pieces, size = [], 0
        with archive.open(member) as stream:
            while piece := stream.read(_CHUNK):  # the size that the archive states may be wrong
                pieces.append(piece)
                size += len(piece)
                if size > most or size > n_left:
                    raise DataError(_("It expands as no document does ({file}).", file=member.filename))
        n_left -= size
        yield member, b"".join(pieces)


def zip_document(
    files: Mapping[zipfile.ZipInfo, bytes], names: Container[str], split: SplitXml, options: DocumentOptions
) -> Document:
    """Return the document in which the XML files of these names are translated."""
    sources = {member: decode_markup(files[member]) for member in files if member.filename in names}
    if not sources:
        raise DataError(_("It contains no text: it is another kind of file, or damaged."))
    for member in sources:
        check_xml(files[member])
    parts = [split(member.filename, source.text, options) for member, source in sources.items()]

    def write(translations: Sequence[str]) -> bytes:
        own = iter(translations)
        changed = {
            member: source.encode(part.join([next(own) for _markup in part.markups]))
            for (member, source), part in zip(sources.items(), parts, strict=True)
        }
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for member, content in files.items():
                archive.writestr(member, changed.get(member, content))
        return target.getvalue()

    return Document([markup for part in parts for markup in part.markups], write)
