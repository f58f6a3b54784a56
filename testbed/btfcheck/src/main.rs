//! Checks the kfunc externs of BPF objects against the BTF of kernels.
//!
//! A scheduler that runs on many kernels declares the kernel's functions as weak
//! externs and asks `bpf_ksym_exists()`. libbpf leaves a weak extern unresolved not
//! only where the kernel lacks the function, but also where its prototype differs,
//! and says nothing. A typo, a struct that is declared and not defined, or an
//! argument that a new kernel added then turn a feature off silently. This command
//! makes such an extern a test failure:
//!
//! ```text
//! scx_btfcheck --span --btf 6.12=6.12.btf --btf 7.2=vmlinux scx_simple.bpf.o
//! ```
//!
//! `types` and `compat` are the rules, free of any file format; `input` reads
//! objects and kernels; `check` decides what is a finding; `report` prints.
//!
//! Not looked at: variables among the externs, functions of kernel modules, and
//! what only the verifier checks (whether a function is a kfunc at all, names and
//! sizes of structs that pointers lead to).

#![forbid(unsafe_code)]

mod check;
mod compat;
mod input;
mod opts;
mod report;
mod types;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};

use check::{check_object, Checked, Totals};
use input::{Kernel, Object};
use opts::Opts;
use report::Report;

/// Exit status when something was found.
const FINDINGS: u8 = 1;
/// Exit status after wrong usage or unreadable input.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let opts = match Opts::from_command_line() {
        Ok(opts) => opts,
        Err(text) if !text.use_stderr() => return status(text.print().is_ok(), UNUSABLE),
        Err(error) => return fail(&scx_utils::cli::one_line(&error)),
    };
    match run(&opts) {
        Ok(totals) => status(totals.faulty == 0, FINDINGS),
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn status(good: bool, otherwise: u8) -> ExitCode {
    ExitCode::from(if good { 0 } else { otherwise })
}

fn fail(message: &str) -> ExitCode {
    eprintln!("scx_btfcheck: {message}");
    ExitCode::from(UNUSABLE)
}

fn run(opts: &Opts) -> Result<Totals> {
    // libbpf's own words would come on top of ours.
    libbpf_rs::set_print(None);
    let kernels = opts.btf.iter().map(|(name, file)| Kernel::read(name, file));
    let kernels: Vec<_> = kernels.collect::<Result<_>>()?;
    let objects: Vec<_> = opts.objects.iter().map(|p| p.to_string_lossy()).collect();
    let mut checked = Vec::new();
    for (path, name) in opts.objects.iter().zip(&objects) {
        let object = Object::read(path)?;
        checked.extend(check_object(name, &object, &kernels, opts.span));
    }
    print(opts, &kernels, &objects, &checked).context("standard output")?;
    Ok(Totals::of(&checked))
}

fn print(
    opts: &Opts,
    kernels: &[Kernel],
    objects: &[impl AsRef<str>],
    checked: &[Checked],
) -> io::Result<()> {
    let report = Report {
        kernels: kernels.iter().map(|kernel| kernel.name.as_str()).collect(),
        objects: objects.iter().map(AsRef::as_ref).collect(),
        checked,
    };
    let out = &mut BufWriter::new(io::stdout().lock());
    match opts {
        Opts { json: true, .. } => report.write_json(out)?,
        Opts { tap: true, .. } => report.write_tap(out)?,
        _ => report.write_table(out)?,
    }
    out.flush()
}
