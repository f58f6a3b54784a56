// SPDX-License-Identifier: GPL-2.0-only
//! Compiles the BPF side of a scheduler, for its build script.
//!
//! ```no_run
//! // build.rs
//! fn main() -> anyhow::Result<()> {
//!     scx_cargo::BpfBuilder::new()?
//!         .intf("src/bpf/intf.h")
//!         .skel("src/bpf/main.bpf.c")
//!         .build()
//! }
//! ```
//!
//! `scx_utils::include_bpf!` includes the generated modules. The headers `<scx/...>` come with this
//! crate, and `<bpf/...>` with libbpf-sys. So a build needs clang and its libclang, but no checkout
//! of this repository.
//!
//! Environment variables, for packagers and experiments:
//!
//! | variable | effect |
//! |---|---|
//! | `BPF_CLANG` | the compiler; default: the first of `clang`, `clang-22`, … that is new enough |
//! | `BPF_CFLAGS` | replaces all flags, except the paths of [`BpfBuilder::include`] |
//! | `BPF_BASE_CFLAGS` | replaces the base flags (target, optimisation, warnings) |
//! | `BPF_EXTRA_CFLAGS_PRE_INCL` | flags before the include paths |
//! | `BPF_EXTRA_CFLAGS_POST_INCL` | flags after the include paths |
//! | `LIBCLANG_PATH` | the directory of bindgen's libclang; default: that of the compiler |
//!
//! Flags are separated by blanks, without quoting.

mod clang;
mod flags;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, Context as _, Result};
use bindgen::callbacks::{AttributeInfo, DeriveInfo, ParseCallbacks, TypeKind};
use object::{Object as _, ObjectSymbol as _};

use clang::Clang;

/// Builds the BPF side of one scheduler. See the [crate](self).
#[derive(Debug)]
pub struct BpfBuilder {
    clang: Clang,
    out_dir: PathBuf,
    includes: Vec<PathBuf>,
    intf: Option<PathBuf>,
    skel: Option<PathBuf>,
}

impl BpfBuilder {
    /// A builder that writes into cargo's `OUT_DIR`.
    ///
    /// # Errors
    ///
    /// If there is no clang of version 16 or newer, or this is not called
    /// from a build script.
    pub fn new() -> Result<Self> {
        let out_dir =
            env::var_os("OUT_DIR").context("OUT_DIR is not set: call this in build.rs")?;
        Ok(Self {
            clang: Clang::find()?,
            out_dir: out_dir.into(),
            includes: Vec::new(),
            intf: None,
            skel: None,
        })
    }

    /// Adds an include directory with the headers of a library.
    #[must_use]
    pub fn include(mut self, directory: impl Into<PathBuf>) -> Self {
        self.includes.push(directory.into());
        self
    }

    /// The header that the BPF side and user space share. Its types and constants become
    /// `bpf_intf.rs`.
    #[must_use]
    pub fn intf(mut self, header: impl Into<PathBuf>) -> Self {
        self.intf = Some(header.into());
        self
    }

    /// The source file of the BPF programs; it may include other files. The programs' skeleton
    /// becomes `bpf_skel.rs`, and the list of the kfuncs that they require becomes `bpf_kfuncs.rs`.
    #[must_use]
    pub fn skel(mut self, source: impl Into<PathBuf>) -> Self {
        self.skel = Some(source.into());
        self
    }

    /// Compiles and generates everything, and declares the dependencies to cargo.
    ///
    /// # Errors
    ///
    /// Errors of clang and bindgen, with their messages, and of the file system.
    pub fn build(self) -> Result<()> {
        flags::print_rerun_if_env_changed();
        let mut flags = flags::cflags(&self.libbpf_headers()?)?;
        for path in &self.includes {
            flags.push(flags::join("-I", path));
            flags.push(flags::prefix_map(path, "include"));
        }
        if let Some(header) = &self.intf {
            self.generate_intf(header, &flags)?;
        }
        if let Some(source) = &self.skel {
            self.generate_skel(source, &flags)?;
        }
        Ok(())
    }

    /// Unpacks libbpf's headers, which libbpf-sys contains as text, and returns their directory.
    fn libbpf_headers(&self) -> Result<PathBuf> {
        let include = self.out_dir.join("include");
        fs::create_dir_all(include.join("bpf"))?;
        for (name, text) in libbpf_sys::API_HEADERS {
            write_if_changed(&include.join("bpf").join(name), text)?;
        }
        Ok(include)
    }

    /// Generates `bpf_intf.rs`. bindgen adds compile-time assertions of the layout of each struct.
    fn generate_intf(&self, header: &Path, flags: &[OsString]) -> Result<()> {
        let file = header.file_name().and_then(|n| n.to_str());
        let file = file.with_context(|| format!("{} is not a file's name", header.display()))?;
        let own = format!(".*{}", file.replace('.', "\\."));
        let flags = flags.iter().map(|flag| flag.to_string_lossy());
        self.clang.use_for_bindgen();
        let bindings = bindgen::Builder::default()
            .header(header.to_string_lossy())
            .clang_args(flags)
            .clang_args(["-target", "bpf"])
            .allowlist_file(own)
            .derive_default(true)
            .prepend_enum_name(false)
            .use_core()
            .parse_callbacks(Box::new(Dependencies {
                out_dir: self.out_dir.clone(),
            }))
            .parse_callbacks(Box::new(Plain))
            .generate()
            .with_context(|| format!("cannot generate Rust from {}", header.display()))?;
        bindings
            .write_to_file(self.out_dir.join("bpf_intf.rs"))
            .context("cannot write bpf_intf.rs")
    }

    fn generate_skel(&self, source: &Path, flags: &[OsString]) -> Result<()> {
        let depfile = self.out_dir.join("bpf.d");
        let mut flags = flags.to_vec();
        flags.extend(["-MD", "-MF"].map(Into::into));
        flags.push(depfile.clone().into());
        let object = self.out_dir.join("bpf.bpf.o");
        libbpf_cargo::SkeletonBuilder::new()
            .source(source)
            .obj(&object)
            .clang(self.clang.path())
            .clang_args(flags)
            .reference_obj(true)
            .build_and_generate(self.out_dir.join("bpf_skel.rs"))?;
        let kfuncs = required_kfuncs(&fs::read(&object)?)?;
        let text = format!("pub const KFUNCS: &[&str] = &{kfuncs:?};\n");
        write_if_changed(&self.out_dir.join("bpf_kfuncs.rs"), &text)?;
        self.print_dependencies(&depfile)
    }

    /// Passes clang's list of dependencies to cargo.
    fn print_dependencies(&self, depfile: &Path) -> Result<()> {
        let text = fs::read_to_string(depfile)?;
        let (_, files) = text
            .split_once(':')
            .ok_or_else(|| anyhow!("clang wrote no dependencies"))?;
        // The format is make's: a backslash continues lines and escapes blanks in names.
        let files = files.replace("\\\n", " ").replace("\\ ", "\0");
        if files.trim().is_empty() {
            bail!("clang wrote no dependencies");
        }
        for file in files.split_whitespace() {
            print_rerun_if_changed(&file.replace('\0', " "), &self.out_dir);
        }
        Ok(())
    }
}

/// Declares to cargo the files and variables that bindgen reads, as bindgen's `CargoCallbacks`
/// would, but without the headers that this crate unpacks.
#[derive(Debug)]
struct Dependencies {
    out_dir: PathBuf,
}

impl ParseCallbacks for Dependencies {
    fn header_file(&self, file: &str) {
        print_rerun_if_changed(file, &self.out_dir);
    }

    fn include_file(&self, file: &str) {
        print_rerun_if_changed(file, &self.out_dir);
    }

    fn read_env_var(&self, name: &str) {
        println!("cargo:rerun-if-env-changed={name}");
    }
}

/// Declares a file to cargo, except the headers that this crate unpacks. These headers change only
/// with libbpf-sys. They are newer than the start of the build script, so cargo would run the build
/// script and compile the scheduler once more.
fn print_rerun_if_changed(file: &str, out_dir: &Path) {
    if !Path::new(file).starts_with(out_dir) {
        println!("cargo:rerun-if-changed={file}");
    }
}

/// The kernel symbols without which a BPF object does not load: kfuncs, and in tools also kernel
/// variables. Weak symbols are not among them, because they are optional.
fn required_kfuncs(object: &[u8]) -> Result<Vec<String>> {
    let file = object::File::parse(object).context("cannot parse the BPF object")?;
    let symbols = file.symbols();
    let needed = symbols.filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    let mut names = needed
        .map(|symbol| Ok(symbol.name()?.to_owned()))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Makes the structs of the shared header convertible from and to bytes, for per-CPU arrays, ring
/// buffers and sections. The derives reject padding, whose bytes are undefined, and types with
/// invalid bit patterns. So all members have to consist of integers.
#[derive(Debug)]
struct Plain;

impl ParseCallbacks for Plain {
    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        match info.kind {
            TypeKind::Struct => ["FromBytes", "Immutable", "IntoBytes"]
                .map(|name| format!("::scx_utils::zerocopy::{name}"))
                .into(),
            _ => Vec::new(),
        }
    }

    fn add_attributes(&self, info: &AttributeInfo<'_>) -> Vec<String> {
        match info.kind {
            TypeKind::Struct => vec![r#"#[zerocopy(crate = "::scx_utils::zerocopy")]"#.into()],
            _ => Vec::new(),
        }
    }
}

/// Writes a file if its text has changed. An unchanged file is not touched, because cargo compares
/// modification times.
fn write_if_changed(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
