// SPDX-License-Identifier: GPL-2.0-only
//! The program `scx_loader`. All of its code is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    scx_loader::main()
}
