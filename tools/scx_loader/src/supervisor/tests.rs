// SPDX-License-Identifier: GPL-2.0-only
//! Tests with simulated processes that start, crash, hang and ignore signals.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use scx_utils::manifest::Mode;

use super::*;
use crate::job::Follower;

const MS: Time = Time::from_millis(1);

/// Behaviour of a simulated scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Starts, and runs until it is stopped.
    Good,
    /// Starts, and ignores all signals but SIGKILL.
    Deaf,
    /// Starts, and soon ends with an error.
    Crashing,
    /// Exits at once.
    Broken,
    /// Is never enabled, and ignores SIGINT.
    Hanging,
    /// The program does not exist.
    Missing,
}

const NATURES: [(Nature, &str); 6] = [
    (Nature::Good, "scx_good"),
    (Nature::Deaf, "scx_deaf"),
    (Nature::Crashing, "scx_crashing"),
    (Nature::Broken, "scx_broken"),
    (Nature::Hanging, "scx_hanging"),
    (Nature::Missing, "scx_missing"),
];

fn job(nature: Nature) -> Job {
    let (_, name) = NATURES.iter().find(|(one, _)| *one == nature).unwrap();
    Job {
        scheduler: (*name).into(),
        mode: Mode::Auto,
        effective: Mode::Auto,
        follower: Follower::None,
        is_custom: false,
        args: Vec::new(),
    }
}

/// The running process.
#[derive(Debug)]
struct Process {
    nature: Nature,
    since: Time,
    is_up: bool,
    ends_at: Option<Time>,
    how: &'static str,
}

/// The supervisor and its simulated environment.
struct World {
    supervisor: Supervisor,
    now: Time,
    process: Option<Process>,
    enable_seq: u64,
    hotplug_seq: u64,
    asked: BTreeSet<Caller>,
    answers: BTreeMap<Caller, Result<(), String>>,
    spawned_at: Vec<(Time, Nature)>,
    has_quit: bool,
}

impl World {
    fn new(fallback: Option<Nature>) -> Self {
        Self {
            supervisor: Supervisor::new(Supervision::default(), fallback.map(job)),
            now: Time::ZERO,
            process: None,
            enable_seq: 0,
            hotplug_seq: 0,
            asked: BTreeSet::new(),
            answers: BTreeMap::new(),
            spawned_at: Vec::new(),
            has_quit: false,
        }
    }

    fn tell(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for action in self.supervisor.handle(self.now, event) {
                events.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Spawn(job) => return Some(self.spawn(&job)),
            Action::Signal(signal) => self.signal(signal),
            Action::Reply(caller, result) => {
                assert!(self.asked.contains(&caller));
                let twice = self.answers.insert(caller, result);
                assert_eq!(twice, None, "answered twice");
            }
            Action::Log(text) => assert!(!text.is_empty()),
            Action::Quit => {
                assert!(self.process.is_none(), "left behind");
                self.has_quit = true;
            }
        }
        None
    }

    fn spawn(&mut self, job: &Job) -> Event {
        assert!(self.process.is_none(), "two processes at once");
        let found = NATURES.iter().find(|(_, name)| *name == job.scheduler);
        let nature = found.unwrap().0;
        self.spawned_at.push((self.now, nature));
        if nature == Nature::Missing {
            return Event::NotSpawned("no such program".into());
        }
        self.process = Some(Process {
            nature,
            since: self.now,
            is_up: false,
            ends_at: (nature == Nature::Broken).then(|| self.now + 30 * MS),
            how: "with status 1",
        });
        Event::Spawned { pid: 1 }
    }

    fn signal(&mut self, signal: Signal) {
        let Some(process) = &mut self.process else {
            return;
        };
        let listens = match process.nature {
            Nature::Deaf => signal == Signal::Kill,
            Nature::Hanging => signal != Signal::Interrupt,
            _ => true,
        };
        if listens {
            process.ends_at = Some(self.now + 50 * MS);
            process.how = if signal == Signal::Kill {
                "by signal 9"
            } else {
                "with status 0"
            };
        }
    }

    /// Advances time in steps of 10 ms, and polls the kernel every 100 ms.
    fn pass(&mut self, time: Time) {
        let until = self.now + time;
        while self.now < until {
            self.now += 10 * MS;
            self.live();
            if self.now.as_millis().is_multiple_of(100) {
                self.ask_kernel();
            }
            self.tell(Event::Tick);
        }
    }

    fn live(&mut self) {
        let Some(process) = &mut self.process else {
            return;
        };
        if process.ends_at.is_some_and(|at| self.now >= at) {
            let how = process.how;
            self.process = None;
            self.tell(Event::Exited(Exit {
                well: how.ends_with('0'),
                how: how.into(),
                stderr_tail: vec!["words".into()],
            }));
            return;
        }
        let comes_up = !matches!(process.nature, Nature::Broken | Nature::Hanging);
        if comes_up && !process.is_up && self.now >= process.since + 200 * MS {
            process.is_up = true;
            self.enable_seq += 1;
            if process.nature == Nature::Crashing {
                process.ends_at = Some(self.now + 500 * MS);
                process.how = "with status 2";
            }
        }
    }

    fn ask_kernel(&mut self) {
        let up = self.process.as_ref().filter(|process| process.is_up);
        let ops = up.map_or_else(String::new, |process| job(process.nature).ops().to_owned());
        self.tell(Event::Kernel(Kernel {
            ops,
            enable_seq: self.enable_seq,
            hotplug_seq: Some(self.hotplug_seq),
        }));
    }

    /// The kernel unloads the scheduler. Its process stays, and loads it again 200 ms after `time`
    /// has passed.
    fn comes_up_again_after(&mut self, time: Time) {
        let process = self.process.as_mut().unwrap();
        (process.is_up, process.since) = (false, self.now + time);
    }

    fn ask(&mut self, request: Request) -> Caller {
        let caller = self.asked.len() as Caller;
        self.asked.insert(caller);
        self.tell(Event::Request(caller, request));
        caller
    }

    fn start(&mut self, nature: Nature) -> Caller {
        self.ask(Request::Start(job(nature)))
    }

    fn switch(&mut self, nature: Nature) -> Caller {
        self.ask(Request::Switch(job(nature)))
    }

    fn seconds(&mut self, seconds: u64) {
        self.pass(Time::from_secs(seconds));
    }

    fn runs(&self) -> Option<Nature> {
        self.process.as_ref().map(|process| process.nature)
    }

    fn state(&self) -> State {
        self.supervisor.state()
    }

    fn refusal(&self, caller: Caller) -> &str {
        self.answers[&caller].as_ref().unwrap_err()
    }
}

#[test]
fn start_and_stop() {
    let mut world = World::new(None);
    let start = world.start(Nature::Good);
    assert_eq!(world.state(), State::Starting);
    assert!(world.answers.is_empty(), "answered before it is up");
    world.seconds(1);
    assert_eq!(world.answers[&start], Ok(()));
    assert_eq!(world.state(), State::Running);
    let stop = world.ask(Request::Stop);
    assert_eq!(world.state(), State::Stopping);
    world.seconds(1);
    assert_eq!(world.answers[&stop], Ok(()));
    assert_eq!((world.state(), world.runs()), (State::Stopped, None));
    assert_eq!(world.ask(Request::Stop), 2);
    assert_eq!(world.answers[&2], Ok(()), "stop without a scheduler");
}

#[test]
fn second_start_fails_and_restart_needs_a_scheduler() {
    let mut world = World::new(None);
    let restart = world.ask(Request::Restart);
    assert!(world.refusal(restart).contains("no scheduler"));
    world.start(Nature::Good);
    let again = world.start(Nature::Deaf);
    assert!(world.refusal(again).contains("scx_good"));
    world.seconds(1);
    let restart = world.ask(Request::Restart);
    world.seconds(1);
    assert_eq!(world.answers[&restart], Ok(()));
    assert_eq!(world.spawned_at.len(), 2);
}

#[test]
fn failed_switch_returns_to_the_previous_one() {
    for bad in [Nature::Broken, Nature::Missing, Nature::Hanging] {
        let mut world = World::new(None);
        world.start(Nature::Good);
        world.seconds(1);
        let switch = world.switch(bad);
        world.seconds(80);
        assert!(world.refusal(switch).contains("scx_good is started again"));
        assert_eq!(world.runs(), Some(Nature::Good), "{bad:?}");
        assert_eq!(world.state(), State::Running);
    }
}

#[test]
fn restart_during_a_switch_returns_to_the_previous_one() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    world.seconds(1);
    world.switch(Nature::Hanging);
    world.seconds(1);
    let restart = world.ask(Request::Restart);
    world.seconds(80);
    assert!(world.refusal(restart).contains("scx_good is started again"));
    assert_eq!(world.runs(), Some(Nature::Good));
}

#[test]
fn failed_start_reports_the_reason() {
    let mut world = World::new(None);
    let start = world.start(Nature::Broken);
    world.seconds(1);
    let refusal = world.refusal(start);
    assert_eq!(refusal, "scx_broken ended with status 1: words");
    assert_eq!(world.state(), State::Failed);
    assert_eq!(world.spawned_at.len(), 1, "retried without a request");
    assert_eq!(world.supervisor.reason(), "ended with status 1: words");
}

#[test]
fn crashes_are_retried_with_increasing_delays_then_given_up() {
    let mut world = World::new(None);
    world.start(Nature::Crashing);
    world.seconds(600);
    assert_eq!(world.state(), State::Failed);
    let moments: Vec<_> = world.spawned_at.iter().map(|(at, _)| *at).collect();
    assert_eq!(moments.len(), 5);
    for (pause, pair) in [1, 2, 4, 8].into_iter().zip(moments.windows(2)) {
        assert!(pair[1] - pair[0] >= Time::from_secs(pause), "{moments:?}");
    }
}

#[test]
fn failures_before_a_requested_restart_do_not_count() {
    let mut world = World::new(None);
    world.start(Nature::Crashing);
    while world.spawned_at.len() < 4 || world.runs().is_some() {
        world.seconds(1);
    }
    world.ask(Request::Restart);
    world.seconds(600);
    assert_eq!(world.state(), State::Failed);
    assert_eq!(world.spawned_at.len(), 4 + 5);
}

#[test]
fn fallback_replaces_a_scheduler_that_fails_repeatedly() {
    let mut world = World::new(Some(Nature::Good));
    world.start(Nature::Crashing);
    world.seconds(600);
    assert_eq!(
        (world.state(), world.runs()),
        (State::Running, Some(Nature::Good))
    );
    // A fallback that fails is not replaced.
    let mut world = World::new(Some(Nature::Broken));
    world.start(Nature::Crashing);
    world.seconds(600);
    assert_eq!(world.state(), State::Failed);
    let nr_fallbacks = world
        .spawned_at
        .iter()
        .filter(|(_, one)| *one == Nature::Broken);
    assert_eq!(nr_fallbacks.count(), 1);
}

#[test]
fn failing_default_is_retried() {
    let mut world = World::new(None);
    world.tell(Event::Begin(job(Nature::Broken)));
    world.seconds(600);
    assert_eq!(world.state(), State::Failed);
    assert_eq!(world.spawned_at.len(), 5);
}

#[test]
fn old_failures_are_forgotten() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    for _ in 0..20 {
        world.seconds(70);
        let process = world.process.as_mut().unwrap();
        process.ends_at = Some(Time::ZERO);
        process.how = "with status 2";
        world.seconds(10);
        assert_eq!(world.state(), State::Running);
    }
}

/// Like [`old_failures_are_forgotten`], but the kernel ejects the scheduler, and its process hangs.
#[test]
fn old_failures_are_forgotten_by_hanging_processes_too() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    for _ in 0..20 {
        world.seconds(70);
        world.comes_up_again_after(Time::MAX / 2);
        world.seconds(20);
        assert_eq!(world.state(), State::Running);
    }
}

#[test]
fn clean_exit_is_not_retried() {
    let mut world = World::new(Some(Nature::Good));
    world.start(Nature::Good);
    world.seconds(1);
    let process = world.process.as_mut().unwrap();
    (process.ends_at, process.how) = (Some(Time::ZERO), "with status 0");
    world.seconds(100);
    assert_eq!((world.state(), world.spawned_at.len()), (State::Stopped, 1));
}

#[test]
fn unresponsive_scheduler_is_killed() {
    let mut world = World::new(None);
    world.start(Nature::Deaf);
    world.seconds(1);
    let stop = world.ask(Request::Stop);
    world.seconds(9);
    assert_eq!(world.state(), State::Stopping, "has had SIGINT and SIGTERM");
    world.seconds(2);
    assert_eq!(world.answers[&stop], Ok(()));
}

#[test]
fn ejected_scheduler_that_hangs_is_killed_and_restarted() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    world.seconds(1);
    world.comes_up_again_after(Time::MAX / 2);
    world.seconds(1);
    assert_eq!(world.state(), State::Stopping, "the kernel has none");
    assert!(world
        .supervisor
        .reason()
        .contains("the kernel has unloaded it"));
    world.seconds(8);
    assert_eq!(world.spawned_at.len(), 1);
    world.seconds(4);
    assert_eq!(world.state(), State::Running);
    assert_eq!(world.spawned_at.len(), 2);
    assert_eq!(world.supervisor.reason(), "", "that of the previous run");
}

#[test]
fn ejected_scheduler_can_be_started_again_at_once() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    world.seconds(1);
    world.comes_up_again_after(Time::MAX / 2);
    world.seconds(1);
    let again = world.start(Nature::Good);
    world.seconds(1);
    assert_eq!(world.answers[&again], Ok(()));
    assert_eq!(world.spawned_at.len(), 2);
}

#[test]
fn reload_after_hotplug_has_the_start_timeout() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    world.seconds(1);
    world.hotplug_seq += 1;
    world.comes_up_again_after(Time::from_secs(50));
    world.seconds(40);
    assert_eq!(world.state(), State::Starting, "the kernel has none");
    let again = world.start(Nature::Good);
    assert!(world.refusal(again).contains("already running"));
    world.seconds(11);
    assert_eq!((world.state(), world.spawned_at.len()), (State::Running, 1));
    // The scheduler is restarted if it does not load itself again within the timeout.
    world.hotplug_seq += 1;
    world.comes_up_again_after(Time::MAX / 2);
    world.seconds(59);
    assert_eq!(
        (world.state(), world.spawned_at.len()),
        (State::Starting, 1)
    );
    world.seconds(4);
    assert_eq!((world.state(), world.spawned_at.len()), (State::Running, 2));
}

#[test]
fn nothing_is_started_while_an_external_scheduler_runs() {
    let mut world = World::new(None);
    let foreign = Kernel {
        ops: "foreign".into(),
        enable_seq: 1,
        ..Kernel::default()
    };
    world.tell(Event::Kernel(foreign.clone()));
    assert_eq!(world.state(), State::External);
    for request in [
        Request::Start(job(Nature::Good)),
        Request::Switch(job(Nature::Good)),
        Request::Stop,
        Request::Restart,
    ] {
        let caller = world.ask(request);
        assert!(world.refusal(caller).contains("'foreign'"));
    }
    world.tell(Event::Begin(job(Nature::Good)));
    assert!(world.spawned_at.is_empty());
    world.tell(Event::Kernel(Kernel::default()));
    assert_eq!(world.state(), State::Stopped);
}

#[test]
fn pending_restart_is_dropped_for_an_external_scheduler() {
    for stops in [false, true] {
        let mut world = World::new(Some(Nature::Good));
        world.start(Nature::Crashing);
        world.seconds(1);
        world.tell(Event::Kernel(Kernel {
            ops: "foreign".into(),
            enable_seq: 9,
            ..Kernel::default()
        }));
        assert_eq!(world.state(), State::BackingOff);
        if stops {
            let stop = world.ask(Request::Stop);
            assert_eq!(world.answers[&stop], Ok(()));
        } else {
            world.now += Time::from_secs(2);
            world.tell(Event::Tick);
            assert!(world.supervisor.reason().contains("'foreign'"));
        }
        assert_eq!(world.state(), State::External);
        assert_eq!(world.spawned_at.len(), 1);
    }
}

#[test]
fn predecessor_of_the_same_name_is_not_mistaken_for_the_new_one() {
    let mut world = World::new(None);
    let start = world.start(Nature::Good);
    world.tell(Event::Kernel(Kernel {
        ops: "good".into(),
        enable_seq: 0,
        ..Kernel::default()
    }));
    assert_eq!(world.state(), State::Starting);
    assert!(!world.answers.contains_key(&start));
}

#[test]
fn shutdown_stops_the_scheduler() {
    for nature in [Nature::Good, Nature::Deaf, Nature::Hanging] {
        let mut world = World::new(None);
        world.start(nature);
        world.seconds(1);
        world.tell(Event::Shutdown);
        let late = world.switch(Nature::Good);
        assert!(world.refusal(late).contains("shutting down"));
        world.seconds(16);
        assert!(world.has_quit, "{nature:?}");
    }
    let mut world = World::new(None);
    world.tell(Event::Shutdown);
    assert!(world.has_quit);
}

/// Simulates a change of the power profile. In these tests, the new profile selects a scheduler of
/// another nature, instead of new arguments for the same scheduler.
fn follow(world: &mut World, nature: Nature) {
    world.tell(Event::Follow(job(nature)));
}

#[test]
fn power_profile_is_followed_without_a_request() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    world.seconds(1);
    follow(&mut world, Nature::Deaf);
    world.seconds(20);
    assert_eq!(world.runs(), Some(Nature::Deaf));
    assert_eq!(world.state(), State::Running);
}

#[test]
fn scheduler_returns_to_the_mode_that_worked() {
    for bad in [Nature::Broken, Nature::Missing, Nature::Hanging] {
        let mut world = World::new(None);
        world.start(Nature::Good);
        world.seconds(1);
        follow(&mut world, bad);
        world.seconds(80);
        assert_eq!(world.state(), State::Running);
        let natures: Vec<_> = world.spawned_at.iter().map(|(_, nature)| *nature).collect();
        assert_eq!(natures, [Nature::Good, bad, Nature::Good]);
    }
}

#[test]
fn only_a_running_scheduler_follows() {
    let mut world = World::new(None);
    follow(&mut world, Nature::Good);
    world.seconds(1);
    assert_eq!(world.state(), State::Stopped);
    world.start(Nature::Hanging);
    follow(&mut world, Nature::Good);
    world.seconds(1);
    assert_eq!(world.runs(), Some(Nature::Hanging));
}

#[test]
fn request_wins_over_the_power_profile() {
    let mut world = World::new(None);
    world.start(Nature::Good);
    world.seconds(1);
    follow(&mut world, Nature::Deaf);
    let stop = world.ask(Request::Stop);
    world.seconds(20);
    assert_eq!(world.answers[&stop], Ok(()));
    assert_eq!((world.state(), world.spawned_at.len()), (State::Stopped, 1));
}

fn nature() -> impl Strategy<Value = Nature> {
    (0..NATURES.len()).prop_map(|index| NATURES[index].0)
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        nature().prop_map(|nature| Request::Start(job(nature))),
        nature().prop_map(|nature| Request::Switch(job(nature))),
        Just(Request::Stop),
        Just(Request::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any sequence of requests, each request is answered once, there is at most one process
    /// (checked by World), and nothing is started in a tight loop.
    #[test]
    fn all_requests_are_answered(
        requests in prop::collection::vec((request(), 0..3000_u32), 1..30),
        fallback in prop::option::of(nature()),
    ) {
        let mut world = World::new(fallback);
        let nr_requests = requests.len();
        for (request, pause_ms) in requests {
            world.ask(request);
            world.pass(MS * pause_ms);
        }
        // A scheduler takes at most 60 s to start, and 5 s after each of three signals to stop. If
        // a switch fails, the previous scheduler is started again and may take as long.
        world.seconds(200);
        prop_assert_eq!(world.answers.len(), nr_requests);
        // Each request causes at most seven starts: one of its scheduler, five of the previous
        // scheduler, and one of the fallback. The test allows eight.
        prop_assert!(world.spawned_at.len() <= nr_requests * 8);
        let quiet = world.spawned_at.len();
        world.seconds(600);
        prop_assert!(world.spawned_at.len() - quiet <= 6);
    }

    /// After any sequence of requests, the last request wins.
    #[test]
    fn last_request_wins(
        requests in prop::collection::vec((request(), 0..200_u32), 0..30),
        stops in any::<bool>(),
    ) {
        let mut world = World::new(None);
        for (request, pause_ms) in requests {
            world.ask(request);
            world.pass(MS * pause_ms);
        }
        let last = if stops { world.ask(Request::Stop) } else { world.switch(Nature::Good) };
        world.seconds(60);
        prop_assert_eq!(&world.answers[&last], &Ok(()));
        let expected = (!stops).then_some(Nature::Good);
        prop_assert_eq!(world.runs(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// With changes of the power profile between the requests, all requests are answered, and the
    /// last request wins.
    #[test]
    fn requests_win_over_power_profiles(
        steps in prop::collection::vec((request(), 0..3000_u32, nature()), 0..20),
    ) {
        let mut world = World::new(None);
        for (request, pause_ms, profile) in steps {
            world.ask(request);
            world.pass(MS * pause_ms);
            follow(&mut world, profile);
            world.pass(MS * (pause_ms / 3));
        }
        let last = world.switch(Nature::Good);
        world.seconds(60);
        prop_assert_eq!(&world.answers[&last], &Ok(()));
        prop_assert_eq!(world.runs(), Some(Nature::Good));
        prop_assert_eq!(world.answers.len(), world.asked.len());
    }
}
