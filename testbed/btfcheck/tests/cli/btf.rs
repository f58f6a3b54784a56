//! Writes BTF and BPF objects, byte by byte, so that the tests need no compiler.

use std::fs;
use std::path::Path;

use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};

// Kinds, as in the kernel's uapi/linux/btf.h.
const INT: u32 = 1;
const PTR: u32 = 2;
const STRUCT: u32 = 4;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const CONST: u32 = 10;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const DATASEC: u32 = 15;

/// BTF in the making. Functions that add a type return its number.
pub(crate) struct Btf {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
}

impl Btf {
    /// BTF with nothing in it but `void`, number 0.
    pub(crate) fn new() -> Self {
        Self {
            types: Vec::new(),
            strings: vec![0],
            count: 0,
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = self.strings.len();
        self.strings.extend(text.bytes().chain([0]));
        u32::try_from(offset).unwrap()
    }

    fn add(&mut self, name: &str, info: u32, size_or_type: u32, rest: &[u32]) -> u32 {
        let name = self.string(name);
        let words = [name, info, size_or_type];
        let words = words.iter().chain(rest);
        self.types.extend(words.flat_map(|word| word.to_le_bytes()));
        self.count += 1;
        self.count
    }

    /// An unsigned integer of `size_bytes`.
    pub(crate) fn int(&mut self, name: &str, size_bytes: u32) -> u32 {
        self.add(name, INT << 24, size_bytes, &[size_bytes * 8])
    }

    /// A pointer.
    pub(crate) fn ptr(&mut self, to: u32) -> u32 {
        self.add("", PTR << 24, to, &[])
    }

    /// A struct without members.
    pub(crate) fn structure(&mut self, name: &str) -> u32 {
        self.add(name, STRUCT << 24, 0, &[])
    }

    /// A struct that is declared only.
    pub(crate) fn forward(&mut self, name: &str) -> u32 {
        self.add(name, FWD << 24, 0, &[])
    }

    /// A typedef.
    pub(crate) fn typedef(&mut self, name: &str, of: u32) -> u32 {
        self.add(name, TYPEDEF << 24, of, &[])
    }

    /// A `const` type.
    pub(crate) fn constant(&mut self, of: u32) -> u32 {
        self.add("", CONST << 24, of, &[])
    }

    /// A function with its prototype.
    pub(crate) fn func(&mut self, name: &str, ret: u32, params: &[u32]) -> u32 {
        let vlen = u32::try_from(params.len()).unwrap();
        let words: Vec<u32> = params.iter().flat_map(|&ty| [0, ty]).collect();
        let proto = self.add("", FUNC_PROTO << 24 | vlen, ret, &words);
        self.add(name, FUNC << 24, proto, &[])
    }

    /// The section of externs.
    pub(crate) fn ksyms(&mut self, externs: &[u32]) {
        let vlen = u32::try_from(externs.len()).unwrap();
        let words: Vec<u32> = externs.iter().flat_map(|&ty| [ty, 0, 0]).collect();
        self.add(".ksyms", DATASEC << 24 | vlen, 0, &words);
    }

    /// The raw bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let types = u32::try_from(self.types.len()).unwrap();
        let strings = u32::try_from(self.strings.len()).unwrap();
        // Magic, version 1, no flags.
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        // Header length, then offset and length of the types and of the strings.
        for word in [24, 0, types, types, strings] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        bytes
    }

    /// Writes an ELF file with this BTF and the given undefined symbols (name, and
    /// whether it is weak).
    pub(crate) fn write_object(&self, path: &Path, symbols: &[(&str, bool)]) {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
        let section = object.add_section(Vec::new(), b".BTF".to_vec(), SectionKind::Other);
        object.set_section_data(section, self.bytes(), 8);
        for &(name, weak) in symbols {
            object.add_symbol(Symbol {
                name: name.into(),
                value: 0,
                size: 0,
                kind: SymbolKind::Unknown,
                scope: SymbolScope::Unknown,
                weak,
                section: SymbolSection::Undefined,
                flags: SymbolFlags::None,
            });
        }
        fs::write(path, object.write().unwrap()).unwrap();
    }
}
