// SPDX-License-Identifier: GPL-2.0-only
//! The manual page, and shell completions.

use std::io;

use clap::CommandFactory as _;
use scx_utils::cli::{self, Generate, Section};

use crate::opts::Opts;

const SECTIONS: [Section<'_>; 8] = [
    (
        "SUPERVISION",
        &[
            "A scheduler that fails is restarted after a second, then after \
             two, four and so on, up to a minute. After five failures without a minute of \
             running in between, the fallback scheduler is started, once; if none is \
             configured, the kernel's own scheduler takes over.",
            "A scheduler that ends without an error, as after SysRq-S, is not restarted.",
            "If a switch to another scheduler fails, the previous one is started again.",
            "To stop a scheduler, SIGINT is sent, after five seconds SIGTERM, and after five more \
             SIGKILL.",
            "A scheduler that the loader did not start is reported as external. The loader does \
             not stop it, and starts no other while it is running.",
        ],
    ),
    (
        "POWER PROFILE",
        &[
            "If configured, a scheduler that was started in the mode auto follows the power \
             profile of power-profiles-daemon, or of another service with its D-Bus interface, \
             such as tuned-ppd. Its effective mode is powersave in the profile power-saver, the \
             configured one in the profile performance, and otherwise auto. If there is no such \
             service, it is powersave on battery. For a mode that the scheduler does not \
             distinguish, it is auto.",
            "When the profile changes, the scheduler is restarted in the new mode a second later. \
             If it fails to start, it returns to the previous one. A scheduler that can follow the \
             profile itself is not restarted: it is started with the option for that. It does so \
             only if there is a service; on battery without one, it is restarted, too.",
            "A scheduler that was started or switched to in another mode, or with custom \
             arguments, does not follow the profile, nor does the fallback.",
        ],
    ),
    (
        "AUTHORIZATION",
        &[
            "All users may read the properties. Root may call all methods. Other users are \
             authorized by polkit(8): org.scx.loader.manage-schedulers to start, switch, stop, \
             restart and restore; \
             org.scx.loader.pass-arguments to start or switch with custom arguments; \
             org.scx.loader.reload-configuration.",
            "Only a scheduler's own options, --partial and --verbose are accepted as custom \
             arguments: no option that makes it open a file.",
        ],
    ),
    (
        "CONFIGURATION",
        &[
            "A TOML file. default_sched and default_mode (Auto, Gaming, PowerSave, LowLatency, \
             Server): the scheduler to start with the service, and its mode. [scheds.NAME]: \
             auto_mode, gaming_mode, powersave_mode, lowlatency_mode, server_mode: lists of \
             arguments that replace those built in for the mode. [supervision]: max_failures, \
             backoff_s, start_timeout_s, stop_timeout_s, fallback_sched, fallback_mode. [auto]: \
             follow_power_profile, false by default, and performance, the mode of that profile: \
             Gaming, Server, LowLatency or Auto.",
            "The file is read at start, on SIGHUP, and by the method ReloadConfiguration. An \
             invalid file is rejected, and the previous configuration stays in effect; at start, \
             the defaults are used.",
            "With scx=off on the kernel command line, the default scheduler is not started with \
             the service.",
        ],
    ),
    (
        "FILES",
        &["/etc/scx_loader/config.toml, /etc/scx_loader.toml, \
             /usr/share/scx_loader/config.toml, /usr/share/scx_loader.toml: only the first \
             existing file is read. Other installation prefixes have corresponding directories."],
    ),
    (
        "SIGNALS",
        &[
            "SIGINT: Stop the scheduler, and exit.",
            "SIGTERM: The same.",
            "SIGHUP: Read the configuration again.",
        ],
    ),
    (
        "EXIT STATUS",
        &[
            "0: Ended by a signal.",
            "1: Startup failed, or the bus was lost. One line on standard error says why.",
        ],
    ),
    ("SEE ALSO", &["scxctl(1), scx_rustland(8), scx_rusty(8)"]),
];

pub(crate) fn generate(what: Generate) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    cli::generate(what, &mut Opts::command(), "8", &SECTIONS, &mut text)?;
    Ok(text)
}
