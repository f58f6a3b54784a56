// SPDX-License-Identifier: GPL-2.0-only
//! The terminal: its modes, which are restored when the views end or panic, and its input.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, Stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, Context as _, Result};
use crossterm::cursor::Show;
use crossterm::event::{self, DisableMouseCapture, Event};
use crossterm::terminal::{
    disable_raw_mode, enable_raw_mode, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, Command};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Size;
use ratatui::Frame;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// Size of the output buffer in bytes. A full screen takes about 20 KiB, so a frame is one write.
const BUFFER_SIZE: usize = 64 << 10;

/// How long [`input`] waits. With a wait of 0, crossterm returns no input at all.
const INPUT_WAIT: Duration = Duration::from_millis(2);

/// Whether the terminal's modes have to be restored.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// Turns on reports of clicks and of the wheel, in SGR encoding. crossterm's own command also turns
/// on reports of each movement, which would wake the program for nothing.
struct EnableClicks;

impl Command for EnableClicks {
    fn write_ansi(&self, f: &mut impl fmt::Write) -> fmt::Result {
        f.write_str("\x1b[?1000h\x1b[?1006h")
    }
}

/// Fails unless the live views can be shown and controlled.
pub(crate) fn check() -> Result<()> {
    let streams = [
        ("output", io::stdout().is_terminal()),
        ("input", io::stdin().is_terminal()),
    ];
    for (name, is_terminal) in streams {
        if !is_terminal {
            bail!("standard {name} is not a terminal: use scxtop top, or scxtop top --json");
        }
    }
    Ok(())
}

/// The terminal in raw mode, on its alternate screen.
///
/// ratatui's `Terminal` is never dropped, because its `drop()` panics if the real terminal is gone:
/// it tries to print an error, and printing fails.
pub(crate) struct Terminal(ManuallyDrop<ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>>);

impl Terminal {
    pub(crate) fn enter() -> Result<Self> {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // Restore the terminal first, because a message on the alternate screen would be lost.
            restore();
            previous(info);
        }));
        IS_ENTERED.store(true, Ordering::Relaxed);
        Self::prepare()
            .inspect_err(|_| restore())
            .context("terminal")
    }

    fn prepare() -> io::Result<Self> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableClicks)?;
        let output = BufWriter::with_capacity(BUFFER_SIZE, io::stdout());
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(output))?;
        Ok(Self(ManuallyDrop::new(terminal)))
    }

    pub(crate) fn size(&self) -> Result<Size> {
        self.0.size().context("terminal")
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<()> {
        self.0.draw(draw).context("terminal")?;
        Ok(())
    }

    /// Clears the screen, so that the next frame is drawn completely.
    pub(crate) fn clear(&mut self) -> Result<()> {
        // ratatui's clear() asks the terminal for the position of the cursor, and fails if the
        // terminal does not answer.
        execute!(self.0.backend_mut(), Clear(ClearType::All)).context("terminal")?;
        // Record that the screen is empty now.
        self.0.current_buffer_mut().reset();
        self.0.swap_buffers();
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the modes that [`Terminal::enter`] has changed, once. Ignores errors, because the
/// terminal may be gone.
fn restore() {
    if IS_ENTERED.swap(false, Ordering::Relaxed) {
        let _ = execute!(
            io::stdout(),
            DisableMouseCapture,
            LeaveAlternateScreen,
            Show
        );
        let _ = disable_raw_mode();
    }
}

/// Waits for input, a resize, or a signal, for at most `at_most`. Returns whether the terminal
/// still exists: crossterm reports a terminal that is gone as an error, or not at all.
pub(crate) fn wait(at_most: Duration) -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec::try_from(at_most).ok();
    // An interruption, such as by SIGWINCH, is handled like a timeout.
    let _ = poll(&mut fds, timeout.as_ref());
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    !fds[0].revents().intersects(gone)
}

/// The next input, if there is any.
pub(crate) fn input() -> Result<Option<Event>> {
    if !event::poll(INPUT_WAIT).context("terminal")? {
        return Ok(None);
    }
    event::read().map(Some).context("terminal")
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs::File;
    use std::io::Write as _;
    use std::process;
    use std::time::Instant;

    use crossterm::event::KeyCode;
    use rustix::fs::{Mode, OFlags};
    use rustix::process::setsid;
    use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
    use rustix::stdio::dup2_stdin;
    use signal_hook::consts::SIGWINCH;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_key_that_arrives_with_a_resize_is_not_lost() {
        // crossterm reads from the terminal of its process.
        let child = "ui::terminal::tests::child_reads_a_key_after_a_resize";
        let status = process::Command::new(env::current_exe().unwrap())
            .args(["--exact", "--ignored", child])
            .status();
        assert!(status.unwrap().success());
    }

    #[test]
    #[ignore = "run by other tests, in a separate process"]
    fn child_reads_a_key_after_a_resize() {
        let mut user = terminal_of_process();
        enable_raw_mode().unwrap();
        // From here on, crossterm receives signals.
        assert_eq!(input().unwrap(), None);
        signal_hook::low_level::raise(SIGWINCH).unwrap();
        user.write_all(b"x").unwrap();
        assert!(wait(LONG));
        let begin = Instant::now();
        let (mut keys, mut resizes) = (0, 0);
        while keys == 0 || resizes == 0 {
            match input().unwrap() {
                Some(Event::Key(key)) => keys += u32::from(key.code == KeyCode::Char('x')),
                Some(Event::Resize(..)) => resizes += 1,
                _ => assert!(begin.elapsed() < LONG, "{keys} keys, {resizes} resizes"),
            }
        }
    }

    /// Makes a new terminal the controlling terminal and the standard input of this process.
    /// Returns the user's side, which is never closed: closing it would kill the process.
    fn terminal_of_process() -> ManuallyDrop<File> {
        setsid().unwrap();
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap();
        // The first terminal that the new session opens becomes its controlling terminal.
        let terminal = rustix::fs::open(&name, OFlags::RDWR, Mode::empty()).unwrap();
        dup2_stdin(&terminal).unwrap();
        ManuallyDrop::new(user.into())
    }
}
