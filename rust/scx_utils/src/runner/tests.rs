// SPDX-License-Identifier: GPL-2.0-only
//! The runner with a fake scheduler, without a kernel.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use scx_stats::{Args as StatsArgs, Client};
use serde::{Deserialize, Serialize};

use super::*;
use crate::bpf::OpenOptions;

const RESTART: i64 = 1 << 48;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The steps of one generation, one per tick. Ticks after the last step do nothing.
type Life = VecDeque<Step>;

#[derive(Debug, Clone)]
enum Step {
    /// The user requests the end.
    Shutdown,
    /// The kernel ends the scheduler: exit kind, exit code, and whether the scheduler ran.
    Exit(i32, i64, bool),
    /// The tick returns this.
    Tick(Tick),
    /// The tick fails.
    Fail,
    /// The tick panics.
    Panic,
    /// Waits until a client of the statistics has been answered, and logs the error in the answer.
    AwaitClient,
}

/// Shared by all generations: their steps, and a log of what they did.
#[derive(Debug)]
struct Script {
    lives: Mutex<VecDeque<Life>>,
    trigger: Trigger,
    log: Mutex<Vec<String>>,
    socket: PathBuf,
}

impl Script {
    /// Waits until the statistics are served.
    fn connect(&self) -> Client {
        let until = Instant::now() + TIMEOUT;
        loop {
            match Client::connect(&self.socket, TIMEOUT) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn note(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
    }
}

#[derive(Debug, clap::Args)]
struct Opts {
    #[arg(long, default_value = "7", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=9))]
    size: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, scx_stats::Stats)]
#[stat(top)]
struct Metrics {
    #[stat(counter)]
    nr_ticks: u64,
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ticks={}", self.nr_ticks)
    }
}

struct Fake;

struct Pretender {
    script: Arc<Script>,
    life: Life,
    exit: ExitInfo,
}

impl Scheduler for Fake {
    const PROGRAM: Program = crate::program!();
    const DESCRIPTION: &'static str = "It only pretends.";
    const KFUNCS: &'static [&'static str] = &[];

    type Opts = Opts;
    type Config = Arc<Script>;
    type Stats = Metrics;
    type Instance<'obj> = Pretender;

    fn config(_opts: Opts) -> Result<Arc<Script>> {
        anyhow::bail!("tests bring their own")
    }

    fn attach(start: &Start<'_>, script: &Arc<Script>, _slot: &mut Slot) -> Result<Pretender> {
        script.note(format!("attach {}", start.generation()));
        let life = script.lives.lock().unwrap().pop_front();
        let life = life.ok_or_else(|| anyhow::anyhow!("the kernel refused the scheduler"))?;
        Ok(Pretender {
            script: Arc::clone(script),
            life,
            exit: ExitInfo::default(),
        })
    }
}

impl Instance for Pretender {
    type Stats = Metrics;

    fn tick(&mut self) -> Result<Tick> {
        match self.life.pop_front() {
            None => Ok(Tick::After(Duration::from_millis(1))),
            Some(Step::Tick(tick)) => Ok(tick),
            Some(Step::Fail) => anyhow::bail!("the policy failed"),
            Some(Step::Panic) => panic!("as the test says"),
            Some(Step::Shutdown) => {
                self.script.trigger.request();
                Ok(Tick::Now)
            }
            Some(Step::Exit(kind, code, ran)) => {
                let reason = "as the test says".to_owned();
                self.exit = ExitInfo {
                    kind,
                    code,
                    ran,
                    reason,
                    ..ExitInfo::default()
                };
                Ok(Tick::Now)
            }
            Some(Step::AwaitClient) => {
                let mut client = self.script.connect();
                let error = client.request("stats", &StatsArgs::new()).unwrap_err();
                self.script.note(format!("{error:#}"));
                Ok(Tick::Now)
            }
        }
    }

    fn stats_reader(&self) -> Result<StatsReader<Metrics>> {
        Ok(Box::new(|| anyhow::bail!("nothing to tell")))
    }

    fn exited(&self) -> bool {
        self.exit.kind != 0
    }

    fn detach(self) -> ExitInfo {
        self.script.note("detach");
        self.exit
    }
}

/// The result of a run.
struct Played {
    result: Result<Status>,
    log: Vec<String>,
}

fn play_with(args: &[&str], lives: &[&[Step]], change: impl FnOnce(&std::path::Path)) -> Played {
    let root = tempfile::tempdir().unwrap();
    let socket = root.path().join("stats");
    change(root.path());
    let line = ["fake", "--stats-socket", socket.to_str().unwrap()];
    let line = line.iter().chain(args).map(Into::into);
    let cli = opts::parse::<Fake>(line).unwrap();
    let shutdown = Shutdown::new().unwrap();
    let script = Arc::new(Script {
        lives: Mutex::new(
            lives
                .iter()
                .map(|life| life.iter().cloned().collect())
                .collect(),
        ),
        trigger: shutdown.1.clone(),
        log: Mutex::default(),
        socket,
    });
    let kernel = SchedExt::new(root.path());
    let generations = Generations::<Fake>::new(&cli.common, &script, &kernel, &shutdown);
    let result = generations.and_then(|generations| generations.run(None));
    let log = script.log.lock().unwrap().clone();
    Played { result, log }
}

fn play(lives: &[&[Step]]) -> Played {
    play_with(&[], lives, |_| ())
}

fn hotplug() -> Step {
    Step::Exit(66, RESTART | 1 << 32, true)
}

#[test]
fn hotplug_restarts_until_the_user_ends_it() {
    let played = play(&[&[hotplug()], &[hotplug()], &[Step::Shutdown]]);
    assert_eq!(played.result.unwrap(), Status::Clean);
    assert_eq!(
        played.log,
        ["attach 0", "detach", "attach 1", "detach", "attach 2", "detach"]
    );
}

#[test]
fn errors_and_clean_ends_have_their_statuses() {
    for (kind, ran, status) in [
        (64, true, Status::Clean),
        (65, true, Status::Clean),
        (67, true, Status::Clean),
        (1025, true, Status::Ejected),
        (1026, true, Status::Ejected),
        (1025, false, Status::Failed),
    ] {
        let played = play(&[&[Step::Exit(kind, 0, ran)], &[]]);
        assert_eq!(played.result.unwrap(), status, "kind {kind}");
        assert_eq!(played.log, ["attach 0", "detach"]);
    }
}

#[test]
fn shutdown_wins_over_a_restart() {
    let info = ExitInfo {
        kind: 66,
        code: RESTART,
        ran: true,
        ..ExitInfo::default()
    };
    let judged = generations::judge(Ok(generations::End::Shutdown), &info, false);
    assert_eq!(judged, crate::exit_info::Outcome::Done);
}

#[test]
fn an_error_wins_over_a_shutdown() {
    let info = ExitInfo {
        kind: 1025,
        ran: true,
        ..ExitInfo::default()
    };
    let judged = generations::judge(Ok(generations::End::Shutdown), &info, false);
    assert_eq!(judged, crate::exit_info::Outcome::Ejected);
}

#[test]
fn a_scheduler_may_ask_for_a_restart() {
    let again = Step::Tick(Tick::Restart("the power profile has changed"));
    let played = play(&[&[again], &[Step::Shutdown]]);
    assert_eq!(played.result.unwrap(), Status::Clean);
    assert_eq!(played.log.len(), 4);
}

#[test]
fn failing_tick_gives_the_machine_back_and_is_an_error() {
    let played = play(&[&[Step::Fail], &[]]);
    assert_eq!(played.result.unwrap(), Status::Ejected);
    assert_eq!(played.log, ["attach 0", "detach"]);
}

#[test]
fn panic_gives_the_machine_back_and_is_an_error() {
    let played = play(&[&[Step::Panic], &[]]);
    assert_eq!(played.result.unwrap(), Status::Ejected);
    assert_eq!(played.log, ["attach 0", "detach"]);
}

#[test]
fn refused_scheduler_is_an_error() {
    let error = play(&[]).result.unwrap_err();
    assert_eq!(error.to_string(), "the kernel refused the scheduler");
    // A refusal after a restart is an error, too.
    let played = play(&[&[hotplug()]]);
    assert!(played.result.is_err());
    assert_eq!(played.log, ["attach 0", "detach", "attach 1"]);
}

#[test]
fn failed_request_for_statistics_ends_nothing() {
    let played = play(&[&[Step::AwaitClient, Step::AwaitClient, Step::Shutdown]]);
    assert_eq!(played.result.unwrap(), Status::Clean);
    let answers = &played.log[1..3];
    assert!(
        answers
            .iter()
            .all(|answer| answer.contains("nothing to tell")),
        "{answers:?}"
    );
}

#[test]
fn statistics_that_cannot_be_served_end_nothing() {
    let played = play_with(&[], &[&[Step::Shutdown]], |root| {
        fs::create_dir(root.join("stats")).unwrap();
    });
    assert_eq!(played.result.unwrap(), Status::Clean);
}

#[test]
fn restarts_in_a_row_are_slowed_down() {
    let hotplug = [hotplug()];
    let mut lives: Vec<&[Step]> = vec![&hotplug; 11];
    lives.push(&[Step::Shutdown]);
    let begin = Instant::now();
    assert_eq!(play(&lives).result.unwrap(), Status::Clean);
    // The restarts after the tenth and the eleventh generation are delayed by a second each.
    assert!(begin.elapsed() >= Duration::from_secs(2));
}

#[test]
fn hotplug_count_of_the_machine_is_read_anew_each_time() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("sys/kernel/sched_ext/hotplug_seq");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let cli = opts::parse::<Fake>([std::ffi::OsString::from("fake")]).unwrap();
    let kernel = SchedExt::new(root.path());
    let open = OpenOptions::default();
    for seq in [4, 5] {
        fs::write(&file, format!("{seq}\n")).unwrap();
        let start = Start::new(&cli.common, &open, &kernel, 0, None).unwrap();
        // The token keeps the count of the start, so that the kernel detects later CPU hotplug.
        fs::write(&file, "99\n").unwrap();
        assert_eq!(start.token().seq(), seq);
    }
}

#[test]
fn options_out_of_range_are_refused_in_one_line() {
    for (option, values) in [
        ("--stats", &["-1", "0", "NaN", "inf", "1e99", "x", ""][..]),
        ("--monitor", &["-0.5", "nan", "86401"]),
        (
            "--exit-dump-len",
            &["-1", "16777217", "99999999999999999999", "NaN"],
        ),
        ("--size", &["-1", "10", "4294967303"]),
        ("--print-topology", &["xml"]),
    ] {
        for value in values {
            let line = ["fake".into(), format!("{option}={value}")];
            let error = opts::parse::<Fake>(line.map(Into::into)).unwrap_err();
            let line = cli::one_line(&error);
            assert!(!line.contains('\n') && line.contains(option), "{line}");
        }
    }
}

#[test]
fn monitor_and_stats_exclude_each_other() {
    let line = ["fake", "--stats", "1", "--monitor", "1"].map(Into::into);
    assert!(opts::parse::<Fake>(line).is_err());
}

#[test]
fn unknown_group_is_refused_before_anything_is_loaded() {
    let played = play_with(
        &["--stats-group", "no such group"],
        &[&[Step::Shutdown]],
        |_| (),
    );
    let error = played.result.unwrap_err().to_string();
    assert!(error.contains("no such group"), "{error}");
    assert!(played.log.is_empty());
}

#[test]
fn definition_of_the_options_is_sound() {
    opts::command::<Fake>().debug_assert();
}

/// With `--kconfig <(zcat /proc/config.gz)` nothing is left for a second read.
#[test]
fn files_that_options_name_are_read_once() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config");
    fs::write(&file, "CONFIG_HZ=250\n").unwrap();
    let again = Step::Tick(Tick::Restart("the file is gone"));
    let path = file.to_str().unwrap().to_owned();
    let played = play_with(
        &["--kconfig", &path],
        &[&[again], &[Step::Shutdown]],
        |_| (),
    );
    assert_eq!(played.result.unwrap(), Status::Clean);
    fs::remove_file(&file).unwrap();
    let played = play_with(&["--kconfig", &path], &[&[Step::Shutdown]], |_| ());
    assert!(played.result.is_err() && played.log.is_empty());
}

#[test]
fn each_status_is_as_documented() {
    // ExitCode can only be compared by its debug output.
    let printed = |status: Status| format!("{:?}", ExitCode::from(status));
    for (status, number) in [
        (Status::Clean, 0),
        (Status::Failed, 1),
        (Status::Ejected, 2),
    ] {
        assert_eq!(printed(status), format!("{:?}", ExitCode::from(number)));
    }
}
