// SPDX-License-Identifier: GPL-2.0-only
//! The manual page, and completions.

use std::io;

use clap::CommandFactory as _;
use scx_utils::cli::{self, Generate, Section};

use crate::opts::Opts;

const SECTIONS: [Section<'_>; 7] = [
    (
        "SUPERVISION",
        &[
            "A scheduler that ends for an error is started again after a second, and then after \
             two, four and so on, a minute at most. After five failures with no minute of \
             running between them, the fallback scheduler is started, once; if none is \
             configured, the kernel's own scheduler stays.",
            "One that ends by itself without an error, as after SysRq-S, is not started again.",
            "A switch to a scheduler that does not come up brings the one before back.",
            "Who has to end gets SIGINT, after five seconds SIGTERM, and after five more SIGKILL.",
            "A scheduler that somebody else has started is reported, and left alone: nothing is \
             started beside it.",
        ],
    ),
    (
        "AUTHORIZATION",
        &[
            "Everybody may read. Root may do everything. All others are asked for by polkit(8): \
             org.scx.loader.manage-schedulers to start, switch, stop, restart and restore; \
             org.scx.loader.pass-arguments to start or switch with arguments of one's own; \
             org.scx.loader.reload-configuration.",
            "Of arguments, only those are taken that are the scheduler's own options, --partial \
             and --verbose: none that opens a file.",
        ],
    ),
    (
        "CONFIGURATION",
        &[
            "A file in TOML. default_sched and default_mode (Auto, Gaming, PowerSave, LowLatency, \
             Server): what is started with the service. [scheds.NAME]: auto_mode, gaming_mode, \
             powersave_mode, lowlatency_mode, server_mode, lists of arguments instead of the \
             scheduler's own. [supervision]: max_failures, backoff_s, start_timeout_s, \
             stop_timeout_s, fallback_sched, fallback_mode.",
            "It is read at start, at SIGHUP, and by the method ReloadConfiguration. One with an \
             error is refused, and the one before stays; at start, the service goes on without.",
            "With scx=off on the kernel's command line no scheduler is started with the service.",
        ],
    ),
    (
        "FILES",
        &["/etc/scx_loader/config.toml, /etc/scx_loader.toml, \
             /usr/share/scx_loader/config.toml, /usr/share/scx_loader.toml: the first that there \
             is counts, alone. A build for other folders looks below those."],
    ),
    (
        "SIGNALS",
        &[
            "SIGINT: End, with the scheduler.",
            "SIGTERM: The same.",
            "SIGHUP: Read the configuration again.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "0: Ended by a signal.",
            "1: It could not start, or has lost the bus. One line on standard error says why.",
        ],
    ),
    ("SEE ALSO", &["scxctl(1), scx_rustland(8), scx_rusty(8)"]),
];

pub(crate) fn generate(what: Generate) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cli::generate(what, &mut Opts::command(), "8", &SECTIONS, &mut text)?;
    Ok(text)
}
