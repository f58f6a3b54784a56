// SPDX-License-Identifier: GPL-2.0-only
//! See the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    scx_loader::main()
}
