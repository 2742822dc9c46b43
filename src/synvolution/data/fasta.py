"""DNA in FASTA files, streamed; the Ensembl tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from Bio.SeqIO.FastaIO import SimpleFastaParser

from synvolution.data.files import kind_of, lines_of
from synvolution.data.options import DataOptions
from synvolution.data.rows import Reading, Row

KINDS = (".fa", ".fasta", ".fna", ".ffn", ".faa")


def records_of(path: Path | str, lines: Iterator[str] | None = None) -> Iterator[tuple[int, str, str]]:
    """Line of the header, name (to the first blank) and sequence of each record of a file, or of lines given."""
    line = 0

    def counted() -> Iterator[str]:
        nonlocal line
        for content in lines_of(path) if lines is None else lines:
            line += 1
            if line == 1 and not content.startswith(">"):
                raise ValueError(f"{path}: line 1 does not begin with '>': no FASTA file")
            yield content

    number, begins = 0, 1
    for title, sequence in SimpleFastaParser(counted()):
        number += 1
        name = title.split(None, 1)[0] if title.strip() else ""
        yield begins, name, sequence
        begins = line
    if number == 0:
        raise ValueError(f"{path} is empty: expected FASTA records")


def rows_of(path: Path, label: str, options: DataOptions, prefix: str = "") -> Iterator[Row]:
    """Rows of one file, all of one class. Sequences are cut here already: some have hundreds of thousands of bases."""
    for line, name, sequence in records_of(path):
        whole = len(sequence)
        cut = sequence if options.max_length is None else sequence[: options.max_length]
        yield Row(cut, label, identity=f"{prefix}{name}" or None, place=f"{path}: line {line}", whole=whole)


def ensembl(*genera: str) -> Callable[[Path | None, DataOptions], Reading]:
    """A reader for Genus_species.*.fa[.gz] files of these genera in one folder; the genus is the class.

    Example:
        >>> ensembl("Bos", "Sus")(Path("nowhere"), DataOptions())
        Traceback (most recent call last):
        ...
        FileNotFoundError: nowhere has no file Bos_*.fa[.gz]: put the cDNA files (*.cdna.all.fa.gz) of Ensembl there
    """

    def read(source: Path | None, options: DataOptions) -> Reading:
        if source is None:
            raise ValueError("ensembl needs its data")
        files: list[tuple[str, Path]] = []
        for genus in genera:
            found = [path for path in fasta_files(source) if path.name.lower().startswith(genus.lower() + "_")]
            if not found:
                raise FileNotFoundError(
                    f"{source} has no file {genus}_*.fa[.gz]: put the cDNA files (*.cdna.all.fa.gz) of Ensembl there"
                )
            files += [(genus, path) for path in found]
        facts = {"source": str(source), "files": [path.name for _, path in files]}
        reading = Reading(lambda: iter(()), "dna", list(genera), facts=facts)
        # Strains of one species share transcript names: the name of the file goes in front.
        reading.rows = lambda: (
            row for genus, path in files for row in rows_of(path, genus, options, f"{path.name.split('.')[0]}/")
        )
        return reading

    return read


def fasta_files(folder: Path) -> list[Path]:
    """The FASTA files of a folder, by name."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and is_fasta(path))


def is_fasta(path: Path) -> bool:
    """Whether a file's name is that of a FASTA file, perhaps compressed.

    Example:
        >>> is_fasta(Path("Bos_taurus.ARS-UCD1.2.cdna.all.fa.gz")), is_fasta(Path("a.txt"))
        (True, False)
    """
    return kind_of(path) in KINDS
