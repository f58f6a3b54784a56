//! Reads kernels' BTF and the kfunc externs of BPF objects.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{anyhow, bail, ensure, Context, Result};
use libbpf_rs::btf::types::{Array, DataSec, Fwd, FwdKind, Int, Struct};
use libbpf_rs::btf::types::{Func, FuncProto};
use libbpf_rs::btf::{Btf, BtfKind, BtfType, ReferencesType};
use object::{Object as _, ObjectSymbol as _};

use crate::compat::Function;
use crate::types::{Kind, Proto, Type, TypeId, TypeTable};

/// Section of the externs that the kernel resolves.
const KSYMS_SECTION: &str = ".ksyms";

/// Typedefs and qualifiers that may be wrapped around one type. C programs use a
/// handful; the limit ends circles in damaged BTF.
const MAX_MODIFIERS: u32 = 64;

/// A kernel's types.
pub(crate) struct Kernel {
    /// The name that the user gave it.
    pub name: String,
    btf: Btf<'static>,
    /// Prototypes by function name.
    functions: HashMap<String, Proto>,
}

impl Kernel {
    /// Reads the BTF in `path`: raw, or an ELF file's section `.BTF`.
    ///
    /// # Errors
    /// The file cannot be read, or has no BTF, or not that of a kernel.
    pub(crate) fn read(name: &str, path: &Path) -> Result<Self> {
        let btf = read_btf(path)?;
        // An object given in the place of a kernel would make every extern absent,
        // which may pass for a kernel that is merely old.
        let mut structs = btf.type_by_kind::<Struct<'_>>();
        ensure!(
            structs.any(|ty| name_of(&ty) == "task_struct"),
            "{}: not a kernel's BTF: it lacks struct task_struct",
            path.display()
        );
        drop(structs);
        let mut functions = HashMap::new();
        for func in btf.type_by_kind::<Func<'_>>() {
            // Of several functions of one name libbpf finds the first.
            if let Some(proto) = proto_of(&func.referenced_type()) {
                functions.entry(name_of(&func)).or_insert(proto);
            }
        }
        Ok(Self {
            name: name.to_string(),
            btf,
            functions,
        })
    }

    /// The function called `name`, if the kernel has one.
    pub(crate) fn function(&self, name: &str) -> Option<Function<'_>> {
        let proto = self.functions.get(name)?;
        Some(Function {
            table: &self.btf,
            proto,
        })
    }
}

/// A BPF object's kfunc externs.
pub(crate) struct Object {
    btf: Btf<'static>,
    /// Sorted by name.
    pub externs: Vec<Extern>,
}

/// A function that a BPF object expects the kernel to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extern {
    /// Its name in the object, suffix included.
    pub name: String,
    /// Whether the object can be loaded without it.
    pub is_weak: bool,
    proto: Proto,
}

impl Object {
    /// Reads the externs of the BPF object `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not an ELF file with BTF, or its BTF and its
    /// symbols do not agree.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bindings = read_undefined_symbols(path)?;
        let btf = read_btf(path)?;
        let mut externs = Vec::new();
        for func in ksym_functions(&btf) {
            let name = name_of(&func);
            let (Some(&is_weak), Some(proto)) =
                (bindings.get(&name), proto_of(&func.referenced_type()))
            else {
                bail!(
                    "{}: extern {name} has no symbol or prototype",
                    path.display()
                );
            };
            externs.push(Extern {
                name,
                is_weak,
                proto,
            });
        }
        externs.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { btf, externs })
    }

    /// The extern's prototype, ready for a comparison. `ext` is one of this
    /// object's.
    pub(crate) fn function<'a>(&'a self, ext: &'a Extern) -> Function<'a> {
        Function {
            table: &self.btf,
            proto: &ext.proto,
        }
    }
}

impl TypeTable for Btf<'_> {
    fn resolve(&self, id: TypeId) -> Option<Type> {
        let mut ty: BtfType<'_> = self.type_by_id(id.into())?;
        let mut typedef = None;
        for _ in 0..MAX_MODIFIERS {
            if ty.kind() == BtfKind::Typedef {
                typedef.get_or_insert_with(|| name_of(&ty));
            } else if !ty.is_mod() {
                return Some(Type {
                    name: typedef.unwrap_or_else(|| name_of(&ty)),
                    kind: kind_of(&ty)?,
                });
            }
            ty = ty.next_type()?;
        }
        None
    }
}

fn kind_of(ty: &BtfType<'_>) -> Option<Kind> {
    Some(match ty.kind() {
        BtfKind::Void => Kind::Void,
        // libbpf-rs 0.27.2 decodes this offset as 0 always; no compiler has made
        // another since bitfields moved into struct members (Linux 4.20).
        BtfKind::Int => Kind::Int {
            offset_bits: Int::try_from(*ty).ok()?.offset,
        },
        BtfKind::Enum | BtfKind::Enum64 => Kind::Enum,
        BtfKind::Struct => Kind::Struct,
        BtfKind::Union => Kind::Union,
        BtfKind::Fwd => Kind::Fwd {
            is_union: Fwd::try_from(*ty).ok()?.kind() == FwdKind::Union,
        },
        BtfKind::Ptr => Kind::Ptr(ty.next_type()?.type_id().into()),
        BtfKind::Array => Kind::Array(Array::try_from(*ty).ok()?.ty().into()),
        BtfKind::FuncProto => Kind::Proto(proto_of(ty)?),
        other => Kind::Other(format!("{other:?}").to_uppercase()),
    })
}

/// The prototype that `ty` is, if it is one.
fn proto_of(ty: &BtfType<'_>) -> Option<Proto> {
    let proto = FuncProto::try_from(*ty).ok()?;
    let params = (0..proto.len()).filter_map(|index| proto.get(index));
    Some(Proto {
        ret: proto.referenced_type_id().into(),
        params: params.map(|param| param.ty.into()).collect(),
    })
}

fn name_of(ty: &BtfType<'_>) -> String {
    let name = ty.name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn ksym_functions<'a>(btf: &'a Btf<'_>) -> impl Iterator<Item = Func<'a>> {
    btf.type_by_kind::<DataSec<'_>>()
        .filter(|section| name_of(section) == KSYMS_SECTION)
        .flat_map(|section| (0..section.len()).filter_map(move |i| section.get(i)))
        .filter_map(|entry| btf.type_by_id::<Func<'_>>(entry.ty))
}

fn read_btf(path: &Path) -> Result<Btf<'static>> {
    // libbpf tells all its failures by number: tell the common one properly.
    fs::File::open(path).with_context(|| path.display().to_string())?;
    Btf::from_path(path).map_err(|_| anyhow!("{}: no usable BTF in it", path.display()))
}

/// The names of an ELF file's undefined symbols, and whether each is weak.
fn read_undefined_symbols(path: &Path) -> Result<HashMap<String, bool>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let file = object::File::parse(&*bytes)
        .with_context(|| format!("{}: not a BPF object", path.display()))?;
    let undefined = file.symbols().filter(|symbol| symbol.is_undefined());
    undefined
        .map(|symbol| Ok((symbol.name()?.to_string(), symbol.is_weak())))
        .collect::<Result<_, object::Error>>()
        .with_context(|| format!("{}: damaged symbol table", path.display()))
}
