// SPDX-License-Identifier: GPL-2.0-only
//! The configuration file: default scheduler, arguments of modes, supervision, power profiles. Only
//! the first existing file is read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail, ensure, Context as _, Result};
use scx_utils::manifest::Mode;
use serde::{Deserialize, Deserializer};

use crate::job::{Follower, Job};
use crate::profile::Source;
use crate::registry::Registry;

/// Paths relative to SYSCONFDIR, which is searched first, and to DATADIR.
const FILES: [&str; 2] = ["scx_loader/config.toml", "scx_loader.toml"];

/// Upper limit of the restart delay.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Maximum size of the file in bytes. The whole file is read into memory.
const SIZE_MAX: u64 = 1 << 20;

/// The checked configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Config {
    /// The scheduler that is started with the loader, and by `RestoreDefault`.
    pub(crate) default: Option<Job>,
    pub(crate) default_mode: Mode,
    /// The scheduler that replaces one that fails repeatedly.
    pub(crate) fallback: Option<Job>,
    pub(crate) supervision: Supervision,
    pub(crate) auto: Auto,
    /// Arguments by scheduler and mode. They replace the arguments in the scheduler's manifest.
    modes: BTreeMap<String, BTreeMap<Mode, Vec<String>>>,
    /// Problems that do not make the file invalid.
    pub(crate) warnings: Vec<String>,
    /// Why the file was rejected at the start of the loader. Empty if it was valid.
    pub(crate) error: String,
}

/// Settings of the mode auto.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Auto {
    /// Whether schedulers in the mode auto follow the power profile.
    pub(crate) follows: bool,
    /// The mode whose arguments are used for auto while the power profile is performance.
    pub(crate) performance: Mode,
}

impl Default for Auto {
    fn default() -> Self {
        Self {
            follows: false,
            performance: Mode::Gaming,
        }
    }
}

/// Restarts and timeouts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Supervision {
    /// A scheduler is given up after this many failures in a row.
    pub(crate) max_failures: u32,
    /// The restart delay after the first failure. Each further failure in a row doubles the delay,
    /// up to [`BACKOFF_MAX`].
    pub(crate) backoff: Duration,
    /// How long a scheduler may take to become enabled.
    pub(crate) start_timeout: Duration,
    /// How long a scheduler may take to exit after a signal before the next signal is sent.
    pub(crate) stop_timeout: Duration,
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            max_failures: 5,
            backoff: Duration::from_secs(1),
            start_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(5),
        }
    }
}

impl Supervision {
    /// The restart delay after this many failures in a row.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let times = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.backoff.saturating_mul(times).min(BACKOFF_MAX)
    }
}

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    default_sched: Option<String>,
    #[serde(deserialize_with = "mode")]
    default_mode: Mode,
    scheds: BTreeMap<String, Scheduler>,
    supervision: SupervisionSection,
    auto: AutoSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Scheduler {
    auto_mode: Option<Vec<String>>,
    gaming_mode: Option<Vec<String>>,
    powersave_mode: Option<Vec<String>>,
    lowlatency_mode: Option<Vec<String>>,
    server_mode: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AutoSection {
    follow_power_profile: bool,
    #[serde(deserialize_with = "mode")]
    performance: Mode,
}

impl Default for AutoSection {
    fn default() -> Self {
        let Auto {
            follows,
            performance,
        } = Auto::default();
        Self {
            follow_power_profile: follows,
            performance,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SupervisionSection {
    max_failures: Option<u32>,
    backoff_s: Option<f64>,
    start_timeout_s: Option<f64>,
    stop_timeout_s: Option<f64>,
    fallback_sched: Option<String>,
    #[serde(deserialize_with = "mode")]
    fallback_mode: Mode,
}

fn mode<'de, D: Deserializer<'de>>(from: D) -> Result<Mode, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// The file to read, if any exists.
pub(crate) fn find(sysconfdir: &Path, datadir: &Path) -> Option<PathBuf> {
    let folders = [sysconfdir, datadir];
    let candidates = folders
        .iter()
        .flat_map(|folder| FILES.map(|file| folder.join(file)));
    candidates.into_iter().find(|path| path.exists())
}

/// Reads the file. Without a path, returns the defaults.
///
/// # Errors
///
/// If the file cannot be read, is too large, or is invalid. The error begins with the path and, if
/// the file is invalid, the line number.
pub(crate) fn read(path: Option<&Path>, registry: &Registry) -> Result<Config> {
    let Some(path) = path else {
        return Ok(Config::default());
    };
    let shown = path.display();
    let size = fs::metadata(path).with_context(|| shown.to_string())?.len();
    ensure!(size <= SIZE_MAX, "{shown}: larger than {SIZE_MAX} bytes");
    let text = fs::read_to_string(path).with_context(|| shown.to_string())?;
    parse(&text, registry).map_err(|error| anyhow!("{shown}:{error:#}"))
}

/// Parses and checks the text of the file. Errors begin with the line number; 1 if it is unknown.
fn parse(text: &str, registry: &Registry) -> Result<Config> {
    let file: File = toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..before]
            .split(|&byte| byte == b'\n')
            .count();
        anyhow!("{line}: {}", error.message().replace('\n', " "))
    })?;
    let at = |key: &str| line_of(text, key);
    let mut config = Config {
        default_mode: file.default_mode,
        supervision: supervision(&file.supervision)
            .map_err(|(key, error)| anyhow!("{}: {key}: {error}", at(key)))?,
        auto: auto(&file.auto).with_context(|| format!("{}: performance", at("performance")))?,
        ..Config::default()
    };
    for (name, modes) in file.scheds {
        let Ok(manifest) = registry.find(&name) else {
            config.warnings.push(format!("unknown scheduler {name}"));
            continue;
        };
        let earlier = config.modes.insert(manifest.name.clone(), modes.into());
        if earlier.is_some() {
            bail!("1: scheds: {} has two sections", manifest.name);
        }
    }
    let job = |key: &str, name: Option<String>, mode| {
        name.map(|name| config.job(registry, &name, mode))
            .transpose()
            .map_err(|error| anyhow!("{}: {key}: {error}", at(key)))
    };
    let section = file.supervision;
    let default = job("default_sched", file.default_sched, file.default_mode)?;
    let fallback = job(
        "fallback_sched",
        section.fallback_sched,
        section.fallback_mode,
    )?;
    config.default = default;
    config.fallback = fallback;
    Ok(config)
}

/// The number of the first line that sets `key`; 1 if no line does.
fn line_of(text: &str, key: &str) -> usize {
    let sets = |line: &str| {
        line.split('=')
            .next()
            .is_some_and(|name| name.trim() == key)
    };
    text.lines().position(sets).map_or(1, |index| index + 1)
}

fn supervision(typed: &SupervisionSection) -> Result<Supervision, (&'static str, anyhow::Error)> {
    let default = Supervision::default();
    let max_failures = typed.max_failures.unwrap_or(default.max_failures);
    if !(1..=1000).contains(&max_failures) {
        return Err(("max_failures", anyhow!("not from 1 to 1000")));
    }
    let seconds = |key, typed: Option<f64>, default| {
        typed.map_or(Ok(default), |value| {
            seconds(value).map_err(|error| (key, error))
        })
    };
    Ok(Supervision {
        max_failures,
        backoff: seconds("backoff_s", typed.backoff_s, default.backoff)?,
        start_timeout: seconds(
            "start_timeout_s",
            typed.start_timeout_s,
            default.start_timeout,
        )?,
        stop_timeout: seconds("stop_timeout_s", typed.stop_timeout_s, default.stop_timeout)?,
    })
}

fn auto(typed: &AutoSection) -> Result<Auto> {
    let performance = typed.performance;
    ensure!(
        performance != Mode::PowerSave,
        "not Gaming, Server, LowLatency or Auto"
    );
    Ok(Auto {
        follows: typed.follow_power_profile,
        performance,
    })
}

fn seconds(value: f64) -> Result<Duration> {
    if !(0.1..=3600.0).contains(&value) {
        bail!("not from 0.1 to 3600 seconds");
    }
    Ok(Duration::from_secs_f64(value))
}

impl From<Scheduler> for BTreeMap<Mode, Vec<String>> {
    fn from(typed: Scheduler) -> Self {
        let modes = [
            (Mode::Auto, typed.auto_mode),
            (Mode::Gaming, typed.gaming_mode),
            (Mode::PowerSave, typed.powersave_mode),
            (Mode::LowLatency, typed.lowlatency_mode),
            (Mode::Server, typed.server_mode),
        ];
        let given = modes
            .into_iter()
            .filter_map(|(mode, args)| Some((mode, args?)));
        given.collect()
    }
}

impl Config {
    /// The configuration of a loader whose file was rejected at the start.
    pub(crate) fn rejected(error: String) -> Self {
        Self {
            error,
            ..Self::default()
        }
    }

    /// A scheduler in a mode. A list of arguments in this configuration, even an empty list,
    /// replaces the list in the scheduler's manifest.
    ///
    /// # Errors
    ///
    /// If there is no such scheduler.
    pub(crate) fn job(&self, registry: &Registry, name: &str, mode: Mode) -> Result<Job> {
        let manifest = registry.find(name)?;
        let configured = self
            .modes
            .get(&manifest.name)
            .and_then(|modes| modes.get(&mode));
        let own = || manifest.modes.get(&mode).cloned().unwrap_or_default();
        Ok(Job {
            scheduler: manifest.name.clone(),
            mode,
            effective: mode,
            follower: Follower::None,
            is_custom: false,
            args: configured.cloned().unwrap_or_else(own),
        })
    }

    /// Adapts `job` to a power profile: arguments, effective mode and follower. Returns `job`
    /// unchanged if the configuration does not follow profiles, or if `job` has custom arguments or
    /// a mode other than auto. If the mode of the profile has the same arguments as auto, the
    /// effective mode is auto.
    pub(crate) fn follow(&self, registry: &Registry, job: &Job, profile: Source) -> Job {
        if !self.auto.follows || job.is_custom || job.mode != Mode::Auto {
            return job.clone();
        }
        let wanted = profile.mode(self.auto.performance);
        let of_mode = |mode| self.job(registry, &job.scheduler, mode);
        let args = self.power_profile_args(registry, &job.scheduler);
        let followed = match args.filter(|_| profile.is_known_to_schedulers()) {
            Some(args) => of_mode(Mode::Auto).map(|auto| Job {
                follower: Follower::Scheduler,
                args,
                ..auto
            }),
            None => self.modes(registry, &job.scheduler).and_then(|modes| {
                let is_there = modes.contains(&wanted);
                let mode = if is_there { wanted } else { Mode::Auto };
                Ok(Job {
                    mode: Mode::Auto,
                    follower: Follower::Loader,
                    ..of_mode(mode)?
                })
            }),
        };
        // `of_mode` cannot fail, because the scheduler of a job is in the registry.
        followed.unwrap_or_else(|_| job.clone())
    }

    /// All arguments with which the scheduler itself follows the power profile in the mode auto.
    /// `None` if the scheduler cannot follow it, or if this configuration sets arguments for the
    /// mode auto that do not include the required ones.
    fn power_profile_args(&self, registry: &Registry, name: &str) -> Option<Vec<String>> {
        let manifest = registry.find(name).ok()?;
        let needed = manifest.power_profile_args.as_ref()?;
        let configured = self
            .modes
            .get(&manifest.name)
            .and_then(|modes| modes.get(&Mode::Auto));
        match configured {
            Some(args) => {
                let mut parts = args.windows(needed.len().max(1));
                parts.any(|part| part == needed).then(|| args.clone())
            }
            None => {
                let auto = manifest.modes.get(&Mode::Auto).into_iter().flatten();
                Some(auto.chain(needed).cloned().collect())
            }
        }
    }

    /// Auto, and the modes whose arguments differ from those of auto.
    ///
    /// # Errors
    ///
    /// If there is no such scheduler.
    pub(crate) fn modes(&self, registry: &Registry, name: &str) -> Result<Vec<Mode>> {
        let auto = self.job(registry, name, Mode::Auto)?.args;
        let mut modes = vec![Mode::Auto];
        for mode in Mode::ALL {
            if self.job(registry, name, mode)?.args != auto {
                modes.push(mode);
            }
        }
        Ok(modes)
    }
}

#[cfg(test)]
mod tests {
    use scx_utils::power::{Profile, Supply};

    use super::*;

    fn registry() -> Registry {
        Registry::of(["scx_rusty", "scx_simple"].map(crate::registry::tests::manifest))
    }

    fn parsed(text: &str) -> Config {
        parse(text, &registry()).unwrap()
    }

    fn refused(text: &str) -> String {
        parse(text, &registry()).unwrap_err().to_string()
    }

    #[test]
    fn empty_file_is_valid() {
        assert_eq!(parsed(""), Config::default());
        assert_eq!(parsed("# default_sched = \"x\"\n"), Config::default());
    }

    #[test]
    fn configured_arguments_replace_those_of_the_manifest() {
        let config = parsed(
            "default_sched = 'scx_rusty'\ndefault_mode = 'Gaming'\n\
             [scheds.scx_rusty]\ngaming_mode = ['-u', '100']\nserver_mode = []\n",
        );
        let args = |mode| config.job(&registry(), "scx_rusty", mode).unwrap().args;
        assert_eq!(args(Mode::Gaming), ["-u", "100"]);
        assert!(args(Mode::Server).is_empty(), "given, and empty");
        assert_eq!(args(Mode::LowLatency), ["--fast"], "not given");
        let default = config.default.unwrap();
        assert_eq!((default.mode, default.args.len()), (Mode::Gaming, 2));
    }

    #[test]
    fn sections_may_omit_the_prefix_of_the_name() {
        let config = parsed("[scheds.rusty]\ngaming_mode = ['-f']\n");
        let job = config.job(&registry(), "scx_rusty", Mode::Gaming).unwrap();
        assert_eq!(job.args, ["-f"]);
        let both = refused("[scheds.rusty]\n[scheds.scx_rusty]\n");
        assert_eq!(both, "1: scheds: scx_rusty has two sections");
    }

    #[test]
    fn section_of_an_unknown_scheduler_is_a_warning() {
        let config = parsed("[scheds.none]\ngaming_mode = ['-f']\n");
        assert_eq!(config.warnings, ["unknown scheduler none"]);
    }

    #[test]
    fn modes_without_effect_are_omitted() {
        let modes = |config: &Config| config.modes(&registry(), "rusty").unwrap();
        assert_eq!(modes(&Config::default()), [Mode::Auto, Mode::LowLatency]);
        let config = parsed("[scheds.scx_rusty]\nserver_mode = ['-f']\nlowlatency_mode = []\n");
        assert_eq!(modes(&config), [Mode::Auto, Mode::Server]);
        assert!(Config::default().modes(&registry(), "none").is_err());
    }

    #[test]
    fn prefix_of_names_is_optional() {
        let job = Config::default().job(&registry(), "rusty", Mode::Auto);
        assert_eq!(job.unwrap().scheduler, "scx_rusty");
    }

    #[test]
    fn errors_name_the_line() {
        assert!(refused("\n\nnonsense\n").starts_with("3: "));
        assert!(refused("\ndefault_mod = 'Auto'\n").starts_with("2: unknown field"));
        assert!(refused("default_mode = 'Turbo'").starts_with("1: there is no mode 'Turbo'"));
        let none = refused("\n\ndefault_sched = 'scx_none'\n");
        assert!(none.starts_with("3: default_sched: "), "{none}");
        assert!(refused("[supervision]\nbackoff_s = -1\n").starts_with("2: backoff_s: "));
        assert!(refused("[supervision]\nbackoff_s = nan\n").starts_with("2: backoff_s: "));
        assert!(refused("[supervision]\nmax_failures = 0\n").starts_with("2: max_failures"));
    }

    const SAVING: Source = Source::Daemon(Profile::PowerSave);
    const FAST: Source = Source::Daemon(Profile::Performance);

    /// Returns the follower, effective mode and arguments of a scheduler in the mode auto.
    fn followed(text: &str, name: &str, profile: Source) -> (Follower, Mode, Vec<String>) {
        let mut in_place = crate::registry::tests::manifest("scx_lavd");
        in_place.power_profile_args = Some(vec!["--follow".into(), "it".into()]);
        let rusty = crate::registry::tests::manifest("scx_rusty");
        let registry = Registry::of([in_place, rusty]);
        let config = parse(text, &registry).unwrap();
        let job = config.job(&registry, name, Mode::Auto).unwrap();
        let job = config.follow(&registry, &job, profile);
        assert_eq!((job.mode, job.scheduler.as_str()), (Mode::Auto, name));
        (job.follower, job.effective, job.args)
    }

    #[test]
    fn profile_is_followed_only_if_configured() {
        for text in ["", "[auto]\n", "[auto]\nperformance = 'Server'\n"] {
            let job = followed(text, "scx_rusty", SAVING);
            assert_eq!(job, (Follower::None, Mode::Auto, vec![]), "{text}");
        }
        let config = parsed("[auto]\nfollow_power_profile = true\n");
        for mode in Mode::ALL.into_iter().filter(|mode| *mode != Mode::Auto) {
            let job = config.job(&registry(), "scx_rusty", mode).unwrap();
            assert_eq!(config.follow(&registry(), &job, SAVING), job, "{mode}");
        }
    }

    #[test]
    fn modes_of_profiles() {
        let text = "[scheds.scx_rusty]\npowersave_mode = ['-p']\n\
                    [auto]\nfollow_power_profile = true\nperformance = 'lowlatency'\n";
        let with = |profile| followed(text, "scx_rusty", profile);
        let loader = |mode, arg: &str| (Follower::Loader, mode, vec![arg.to_owned()]);
        assert_eq!(with(SAVING), loader(Mode::PowerSave, "-p"));
        assert_eq!(with(FAST), loader(Mode::LowLatency, "--fast"));
        let auto = (Follower::Loader, Mode::Auto, vec![]);
        assert_eq!(with(Source::Daemon(Profile::BalancedPerformance)), auto);
        assert_eq!(with(Source::None), auto);
        // This scheduler has no arguments for the mode gaming.
        let text = "[auto]\nfollow_power_profile = true\n";
        assert_eq!(followed(text, "scx_rusty", FAST), auto);
    }

    #[test]
    fn schedulers_that_follow_the_profile_are_not_switched() {
        let on =
            "[auto]\nfollow_power_profile = true\n[scheds.scx_lavd]\npowersave_mode = ['-p']\n";
        let with = |more: &str, profile| followed(&format!("{on}{more}"), "scx_lavd", profile);
        let args = |args: &[&str]| args.iter().map(ToString::to_string).collect::<Vec<_>>();
        let itself = |list: &[&str]| (Follower::Scheduler, Mode::Auto, args(list));
        for profile in [SAVING, FAST, Source::None, Source::Supply(Supply::Mains)] {
            assert_eq!(with("", profile), itself(&["--follow", "it"]));
        }
        // Schedulers do not know whether the machine runs on battery.
        let saving = (Follower::Loader, Mode::PowerSave, args(&["-p"]));
        assert_eq!(with("", Source::Supply(Supply::Battery)), saving);
        // Arguments are configured, first with those required to follow the profile, then without.
        let more = "auto_mode = ['-f', '--follow', 'it']\n";
        assert_eq!(with(more, SAVING), itself(&["-f", "--follow", "it"]));
        assert_eq!(with("auto_mode = ['--follow']\n", SAVING), saving);
    }

    #[test]
    fn invalid_settings_of_auto_are_errors() {
        let error = refused("[auto]\nfollow_power_profile = true\nperformance = 'PowerSave'\n");
        assert!(error.starts_with("3: performance"), "{error}");
        assert!(refused("[auto]\nperformance = 'fast'\n").starts_with("2: there is no mode"));
        assert!(refused("[auto]\nfollow_power_profile = 1\n").starts_with("2: invalid type"));
        assert!(refused("[auto]\nfollow = true\n").starts_with("2: unknown field"));
    }

    #[test]
    fn unknown_schedulers_are_warnings() {
        let config = parsed("[scheds.scx_bpfland]\nauto_mode = []\n");
        assert_eq!(config.warnings, ["unknown scheduler scx_bpfland"]);
    }

    /// The installed sample is valid as it is, and with all settings uncommented.
    #[test]
    fn sample_is_valid() {
        let sample = include_str!("../../../services/config.toml");
        assert_eq!(parsed(sample), Config::default());
        let is_setting = |line: &str| line.starts_with('#') && !line.starts_with("# ");
        let settings = sample.lines().filter(|line| is_setting(line));
        let text = settings
            .map(|line| line[1..].to_owned() + "\n")
            .collect::<String>();
        let names = ["scx_rustland", "scx_simple"].map(crate::registry::tests::manifest);
        let config = parse(&text, &Registry::of(names)).unwrap();
        assert_eq!(config.supervision, Supervision::default());
        assert_eq!(config.modes["scx_rustland"].len(), Mode::ALL.len());
        assert_eq!(config.fallback.unwrap().scheduler, "scx_simple");
    }

    #[test]
    fn first_existing_file_is_read() {
        let root = tempfile::tempdir().unwrap();
        let (etc, share) = (root.path().join("etc"), root.path().join("share"));
        fs::create_dir_all(etc.join("scx_loader")).unwrap();
        fs::create_dir_all(&share).unwrap();
        assert_eq!(find(&etc, &share), None);
        for path in [
            share.join("scx_loader.toml"),
            etc.join("scx_loader.toml"),
            etc.join("scx_loader/config.toml"),
        ] {
            fs::write(&path, "").unwrap();
            assert_eq!(find(&etc, &share), Some(path));
        }
    }

    #[test]
    fn delays_double_up_to_a_limit() {
        let config = Supervision::default();
        let seconds = |failures| config.backoff(failures).as_secs();
        assert_eq!([1, 2, 3, 4].map(seconds), [1, 2, 4, 8]);
        assert_eq!(seconds(50), 60);
        assert_eq!(seconds(u32::MAX), 60);
    }
}
