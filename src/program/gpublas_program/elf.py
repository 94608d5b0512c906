# SPDX-License-Identifier: MIT
"""ELF files of 64 bits, little-endian, as far as `gpublas run` needs them: how they are linked, and the
symbols that they define and use. Any other file, or a broken one, raises Unreadable."""
import struct

SHT_SYMTAB, SHT_DYNAMIC, SHT_DYNSYM = 2, 6, 11
PT_DYNAMIC, PT_INTERP = 2, 3
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SYMBOLIC, DT_FLAGS = 0, 1, 5, 16, 30
DF_SYMBOLIC = 2
STT_FUNC, STT_GNU_IFUNC = 2, 10
STB_LOCAL = 0
STV_PROTECTED = 3
EM_X86_64 = 62


class Unreadable(Exception):
    pass


class File:
    """interpreter: the program interpreter, or None. dynamic: there is a dynamic section. needed: sonames.
    symbolic: linked with -Bsymbolic. machine_fits: an x86-64 file. defined: names of the dynamic functions
    that it has, and of these `protected`; used: those that it wants of others; inside: functions of the
    program that no dynamic symbol names, as far as it is not stripped."""

    def __init__(self, path):
        self.path = path
        self.interpreter, self.dynamic, self.symbolic = None, False, False
        self.needed, self.defined, self.protected, self.used, self.inside = [], set(), set(), set(), set()
        try:
            with open(path, "rb") as file:
                self.bytes = file.read()
            self._read()
        except (OSError, struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
            raise Unreadable(f"{path}: {error}") from error
        finally:
            self.bytes = b""

    def _read(self):
        if self.bytes[:4] != b"\x7fELF":
            raise Unreadable(f"{self.path}: not an ELF file")
        self.machine_fits = self.bytes[4:6] == b"\x02\x01" and self._unpack("H", 18)[0] == EM_X86_64
        if not self.machine_fits:
            return
        segments, sections, _, _, segment_size, segment_count, section_size, section_count = \
            self._unpack("QQIHHHHH", 32)
        for i in range(segment_count):
            kind, _, offset, _, _, size = self._unpack("IIQQQQ", segments + i * segment_size)
            if kind == PT_INTERP:
                self.interpreter = self.bytes[offset:offset + size].rstrip(b"\0").decode()
            self.dynamic |= kind == PT_DYNAMIC
        headers = [self._unpack("IIQQQQIIQQ", sections + i * section_size) for i in range(section_count)]
        for _, kind, _, _, offset, size, link, _, _, _ in headers:
            if kind not in (SHT_DYNAMIC, SHT_DYNSYM, SHT_SYMTAB):
                continue
            strings = headers[link][4]
            if kind == SHT_DYNAMIC:
                self._read_dynamic(offset, size, strings)
            else:
                self._read_symbols(offset, size, strings, kind == SHT_DYNSYM)

    def _unpack(self, form, offset):
        return struct.unpack_from("<" + form, self.bytes, offset)

    def _text(self, offset):
        return self.bytes[offset:self.bytes.index(b"\0", offset)].decode("utf-8", "surrogateescape")

    def _read_dynamic(self, offset, size, strings):
        for tag, value in struct.iter_unpack("<QQ", self.bytes[offset:offset + size // 16 * 16]):
            if tag == DT_NULL:
                break
            if tag == DT_NEEDED:
                self.needed.append(self._text(strings + value))
            self.symbolic |= tag == DT_SYMBOLIC or (tag == DT_FLAGS and bool(value & DF_SYMBOLIC))

    def _read_symbols(self, offset, size, strings, dynamic):
        for name, info, other, section, _, _ in struct.iter_unpack(
                "<IBBHQQ", self.bytes[offset:offset + size // 24 * 24]):
            if not dynamic:
                if section and info & 15 in (STT_FUNC, STT_GNU_IFUNC):
                    self.inside.add(self._text(strings + name))
            elif section and info & 15 in (STT_FUNC, STT_GNU_IFUNC) and info >> 4 != STB_LOCAL:
                self.defined.add(self._text(strings + name))
                if other & 3 == STV_PROTECTED:
                    self.protected.add(self._text(strings + name))
            elif not section and name:
                self.used.add(self._text(strings + name))

    @property
    def static(self):
        return self.machine_fits and not self.interpreter
