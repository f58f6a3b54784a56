// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the policy. Some of them simulate a machine: one CPU, tasks that compute and sleep, and
//! a clock.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const US: u64 = 1000;
const MS: u64 = 1000 * US;
const CONFIG: Config = Config {
    slice_ns: 5 * MS,
    slice_min_ns: 250 * US,
    slice_boost: 100,
    preempts: true,
    fifo: false,
    percpu_local: false,
};

fn with_boost(slice_boost: u32) -> Config {
    Config {
        slice_boost,
        ..CONFIG
    }
}

/// A machine whose CPUs run tasks that interactive tasks may preempt.
fn busy(nr_cpus: u32) -> Cpus {
    let mut cpus = Cpus::of_single_threads(usize::try_from(nr_cpus).unwrap());
    (0..nr_cpus).for_each(|cpu| cpus.set_online(cpu, true));
    cpus.note_running(0, |_| 1 << 61);
    cpus
}

/// The behaviour of a task: how long it computes before it sleeps, and how long it sleeps.
#[derive(Debug, Clone, Copy)]
struct Habit {
    weight: u32,
    burst_ns: u64,
    sleep_ns: u64,
}

const fn hog(weight: u32) -> Habit {
    Habit {
        weight,
        burst_ns: u64::MAX,
        sleep_ns: 0,
    }
}

#[derive(Debug)]
struct Modelled {
    habit: Habit,
    task: QueuedTask,
    /// When the task wakes up; `None` while it is runnable.
    wakes_ns: Option<u64>,
    since_ns: u64,
    longest_wait_ns: u64,
    /// When the task last woke up.
    woke_ns: u64,
    /// The longest time from a wakeup of the task to its next sleep.
    longest_response_ns: u64,
}

/// A machine with one CPU, and the policy that schedules its tasks.
struct Machine {
    policy: Rustland,
    tasks: Vec<Modelled>,
    now_ns: u64,
    idle_ns: u64,
}

impl Machine {
    fn new(config: Config, habits: &[Habit]) -> Self {
        let start_ns = 1_000_000 * MS;
        let pids = 1..;
        let modelled = |(habit, pid): (&Habit, i32)| {
            let mut task = QueuedTask::new(pid);
            task.weight = habit.weight;
            Modelled {
                habit: *habit,
                task,
                wakes_ns: Some(start_ns),
                since_ns: 0,
                longest_wait_ns: 0,
                woke_ns: start_ns,
                longest_response_ns: 0,
            }
        };
        Self {
            policy: Rustland::new(config),
            tasks: habits.iter().zip(pids).map(modelled).collect(),
            now_ns: start_ns,
            idle_ns: 0,
        }
    }

    fn wake_up(&mut self) {
        for modelled in &mut self.tasks {
            if modelled.wakes_ns.is_some_and(|wakes| wakes <= self.now_ns) {
                modelled.wakes_ns = None;
                modelled.since_ns = self.now_ns;
                modelled.woke_ns = self.now_ns;
                self.policy.enqueue(modelled.task.clone(), self.now_ns);
            }
        }
    }

    /// Simulates `for_ns` of time. Each dispatched task runs for its slice, or until it sleeps.
    fn run(&mut self, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        while self.now_ns < until_ns {
            self.wake_up();
            let vtime_ns = self.policy.clock.now_ns;
            let Some(decision) = self.policy.dispatch(&mut busy(1), self.now_ns) else {
                self.now_ns += US;
                self.idle_ns += US;
                continue;
            };
            assert!(self.policy.clock.now_ns >= vtime_ns, "time went backward");
            let slice_ns = decision.get_slice_ns();
            assert!((CONFIG.slice_min_ns..=CONFIG.slice_ns).contains(&slice_ns));
            self.execute(&decision);
        }
    }

    fn execute(&mut self, decision: &DispatchedTask) {
        let place = usize::try_from(decision.pid()).unwrap() - 1;
        let modelled = &mut self.tasks[place];
        let task = &mut modelled.task;
        assert!(modelled.wakes_ns.is_none(), "it does not wait");
        let waited_ns = self.now_ns - modelled.since_ns;
        modelled.longest_wait_ns = modelled.longest_wait_ns.max(waited_ns);
        task.ctx = decision.get_ctx();
        task.vtime = decision.get_vtime();
        let left_ns = modelled.habit.burst_ns - task.exec_ns;
        let ran_ns = decision.get_slice_ns().min(left_ns);
        self.now_ns += ran_ns;
        task.sum_exec_ns += ran_ns;
        task.exec_ns += ran_ns;
        if task.exec_ns == modelled.habit.burst_ns {
            task.exec_ns = 0;
            task.nvcsw += 1;
            let response_ns = self.now_ns - modelled.woke_ns;
            modelled.longest_response_ns = modelled.longest_response_ns.max(response_ns);
            modelled.wakes_ns = Some(self.now_ns + modelled.habit.sleep_ns);
        } else {
            modelled.since_ns = self.now_ns;
            self.policy.enqueue(task.clone(), self.now_ns);
        }
    }

    fn used_ns(&self) -> Vec<u64> {
        self.tasks.iter().map(|m| m.task.sum_exec_ns).collect()
    }
}

/// A task that has got a decision before.
fn queued(pid: i32) -> QueuedTask {
    let mut task = QueuedTask::new(pid);
    task.vtime = VRUNTIME_FIRST_NS;
    task
}

#[test]
fn empty_queue_dispatches_nothing() {
    let mut policy = Rustland::new(CONFIG);
    assert!(policy.dispatch(&mut busy(1), 0).is_none());
    assert!(!policy.is_urgent());
}

#[test]
fn the_same_pid_waits_once() {
    let mut policy = Rustland::new(CONFIG);
    for _ in 0..3 {
        policy.enqueue(queued(7), MS);
    }
    assert_eq!(policy.nr_waiting(), 1);
    assert_eq!(policy.dispatch(&mut busy(1), MS).unwrap().pid(), 7);
    assert!(policy.dispatch(&mut busy(1), MS).is_none());
}

#[test]
fn nothing_is_left_of_a_million_short_tasks() {
    let mut policy = Rustland::new(CONFIG);
    for pid in 1..=1_000_000 {
        policy.enqueue(QueuedTask::new(pid), u64::from(pid.unsigned_abs()) * US);
        if pid % 3 == 0 {
            while policy.dispatch(&mut busy(1), 0).is_some() {}
            assert_eq!(policy.nr_waiting(), 0);
        }
    }
    while policy.dispatch(&mut busy(1), 0).is_some() {}
    assert_eq!(policy.queue.len(), 0);
    assert!(policy.queue.oldest_since_ns().is_none() && policy.queue.min_vruntime_ns().is_none());
}

#[test]
fn slices_shrink_with_the_queue() {
    let mut policy = Rustland::new(CONFIG);
    (1..=40).for_each(|pid| policy.enqueue(QueuedTask::new(pid), MS));
    let mut slice_us = || policy.dispatch(&mut busy(1), MS).unwrap().get_slice_ns() / US;
    let slices: Vec<_> = (0..40).map(|_| slice_us()).collect();
    assert_eq!((slices[0], slices[36], slices[38]), (250, 1250, 2500));
    assert_eq!(slices[39], 5000);
}

/// A task that has slept often, and wakes up.
fn interactive(pid: i32) -> QueuedTask {
    let mut task = queued(pid);
    task.ctx = [VRUNTIME_FIRST_NS, 0, MS, 100_000 << 32];
    task
}

#[test]
fn interactive_task_preempts_the_latest_deadline() {
    let mut policy = Rustland::new(CONFIG);
    let mut cpus = busy(3);
    cpus.note_running(9, |cpu| [1 << 50, 1 << 60, 1 << 55][cpu]);
    policy.enqueue(interactive(1), 2 * MS);
    policy.enqueue(interactive(2), 2 * MS);
    assert!(policy.is_urgent());
    let mut next = || policy.dispatch(&mut cpus, 2 * MS).unwrap();
    let (first, second) = (next(), next());
    assert_eq!((first.target(), first.preempts()), (Target::Cpu(1), true));
    assert_eq!((second.target(), second.preempts()), (Target::Cpu(2), true));
}

#[test]
fn new_task_preempts_new_hogs_at_its_first_wakeup() {
    for (used_ns, preempts) in [(BRIEF_NS, true), (BRIEF_NS + 1, false)] {
        let mut policy = Rustland::new(CONFIG);
        let mut cpus = busy(1);
        // The hog is in its first slice.
        cpus.note_running(0, |_| VRUNTIME_FIRST_NS);
        let mut task = queued(1);
        task.ctx = [VRUNTIME_FIRST_NS, 0, MS, 0];
        task.nvcsw = 1;
        task.sum_exec_ns = used_ns;
        policy.enqueue(task, 2 * MS);
        let decision = policy.dispatch(&mut cpus, 2 * MS).unwrap();
        assert_eq!(decision.preempts(), preempts, "{used_ns}");
    }
}

#[test]
fn no_preemption_of_similar_deadlines_or_unpreemptible_tasks() {
    for running in [
        0,
        VRUNTIME_FIRST_NS,
        VRUNTIME_FIRST_NS + CONFIG.slice_min_ns,
    ] {
        let mut policy = Rustland::new(CONFIG);
        let mut cpus = busy(2);
        cpus.note_running(0, |_| running);
        policy.enqueue(interactive(1), 2 * MS);
        let decision = policy.dispatch(&mut cpus, 2 * MS).unwrap();
        assert_eq!(
            (decision.target(), decision.preempts()),
            (Target::Any, false)
        );
        assert!(!policy.is_urgent());
    }
}

#[test]
fn idle_cpu_has_precedence_over_preemption() {
    let mut policy = Rustland::new(CONFIG);
    let mut cpus = busy(2);
    cpus.set_idle(1, true);
    policy.enqueue(interactive(1), 2 * MS);
    let decision = policy.dispatch(&mut cpus, 2 * MS).unwrap();
    assert_eq!(decision.target(), Target::IdleCpu(1));
    assert!(!decision.preempts());
}

#[test]
fn options_disable_preemption() {
    let without_preemption = Config {
        preempts: false,
        ..CONFIG
    };
    for config in [without_preemption, with_boost(0)] {
        let mut policy = Rustland::new(config);
        policy.enqueue(interactive(1), 2 * MS);
        assert!(!policy.is_urgent());
        assert!(!policy.dispatch(&mut busy(1), 2 * MS).unwrap().preempts());
    }
}

#[test]
fn task_that_has_run_since_its_sleep_preempts_none() {
    let mut policy = Rustland::new(CONFIG);
    let mut task = interactive(1);
    task.exec_ns = 1;
    policy.enqueue(task, 2 * MS);
    assert!(!policy.is_urgent());
}

/// An interactive task that has itself slept several times.
fn experienced(pid: i32) -> QueuedTask {
    let mut task = interactive(pid);
    task.nvcsw = SLEEPS_MIN;
    task
}

fn stands(config: Config, task: QueuedTask) -> bool {
    let mut policy = Rustland::new(config);
    policy.enqueue(task, 2 * MS);
    policy.dispatch(&mut busy(1), 2 * MS).unwrap().stands()
}

#[test]
fn decisions_on_interactive_tasks_stand() {
    assert!(stands(CONFIG, experienced(1)));
    // This new task may be a hog with an interactive parent.
    assert!(!stands(CONFIG, interactive(1)));
    assert!(!stands(CONFIG, queued(1)));
    let mut computing = experienced(1);
    computing.exec_ns = 1;
    assert!(!stands(CONFIG, computing));
    let fifo = Config {
        fifo: true,
        ..CONFIG
    };
    let percpu_local = Config {
        percpu_local: true,
        ..CONFIG
    };
    for config in [fifo, percpu_local] {
        assert!(!stands(config, experienced(1)));
    }
}

#[test]
fn decisions_that_stand_are_made_at_once_unless_another_task_waits() {
    let config = Config {
        preempts: false,
        ..CONFIG
    };
    let mut policy = Rustland::new(config);
    policy.enqueue(experienced(1), 2 * MS);
    assert!(policy.is_urgent());
    policy.enqueue(queued(2), 2 * MS);
    assert!(!policy.is_urgent());
    policy.enqueue(experienced(2), 3 * MS);
    assert!(policy.is_urgent());
    while policy.dispatch(&mut busy(1), 3 * MS).is_some() {}
    assert!(!policy.is_urgent());
}

#[test]
fn sleepers_are_at_most_a_slice_behind() {
    let mut policy = Rustland::new(CONFIG);
    policy.enqueue(experienced(1), 2 * MS);
    let _ = policy.dispatch(&mut busy(1), 2 * MS).unwrap();
    let clock = policy.clock;
    assert_eq!(policy.vtime_floor(), clock.now_ns - CONFIG.slice_ns);
}

#[test]
fn without_boost_order_is_that_of_virtual_time() {
    let mut machine = Machine::new(with_boost(0), &[hog(100); 5]);
    machine.policy.enqueue(queued(100), MS);
    machine.wake_up();
    let mut last = 0;
    for _ in 0..500 {
        let least = machine.policy.queue.min_vruntime_ns().unwrap();
        let decision = machine.policy.dispatch(&mut busy(1), machine.now_ns);
        let decision = decision.unwrap();
        assert_eq!(decision.get_vtime(), least);
        assert!(decision.get_vtime() >= last);
        last = decision.get_vtime();
        if decision.pid() != 100 {
            machine.execute(&decision);
        }
    }
}

#[test]
fn sleeper_beside_hogs_runs_at_once_with_boost_only() {
    let frames = Habit {
        weight: 100,
        burst_ns: 6 * MS,
        sleep_ns: 10 * MS,
    };
    let response_ms = |boost| {
        let habits = [frames, hog(100), hog(100), hog(100)];
        let mut machine = Machine::new(with_boost(boost), &habits);
        // The first two seconds are not measured: at first, the deadlines of hogs are not late.
        machine.run(2000 * MS);
        machine.tasks[0].longest_response_ns = 0;
        machine.run(2000 * MS);
        machine.tasks[0].longest_response_ns / MS
    };
    let (with, without) = (response_ms(100), response_ms(0));
    assert!(with < 10, "{with} ms");
    assert!(without > 12, "{without} ms");
}

#[test]
fn fifo_ends_with_the_last_cpus_and_comes_back() {
    let config = Config {
        fifo: true,
        ..CONFIG
    };
    let mut policy = Rustland::new(config);
    let mut cpus = busy(4);
    (1..4).for_each(|cpu| cpus.set_idle(cpu, true));
    let mut late = queued(1);
    late.exec_ns = 400 * MS;
    // By deadline, the second task would precede the first one.
    policy.enqueue(late, MS);
    policy.enqueue(queued(2), 2 * MS);
    assert_eq!(policy.mode(), 1);
    assert_eq!(policy.dispatch(&mut cpus, 2 * MS).unwrap().pid(), 1);
    (1..4).for_each(|cpu| cpus.set_idle(cpu, false));
    policy.dispatch(&mut cpus, 2 * MS);
    assert_eq!(policy.mode(), 0);
    (1..4).for_each(|cpu| cpus.set_idle(cpu, true));
    let rounds = (0..100).take_while(|_| {
        policy.dispatch(&mut cpus, 2 * MS);
        policy.mode() == 0
    });
    assert!((1..20).contains(&rounds.count()));
}

fn habits() -> impl Strategy<Value = Vec<Habit>> {
    let sleeper = (1..=10_000_u32, 1..20_000_u64, 0..50_000_u64);
    let sleeper = sleeper.prop_map(|(weight, burst_us, sleep_us)| Habit {
        weight,
        burst_ns: burst_us * US,
        sleep_ns: sleep_us * US,
    });
    vec(prop_oneof![sleeper, (1..=10_000_u32).prop_map(hog)], 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the weights and habits of the tasks, no task waits for longer than `STARVED_NS`
    /// plus two slices per task of the machine, and virtual time never decreases
    /// ([`Machine::run`]).
    #[test]
    fn no_task_starves(habits in habits(), boost in 0..=1000_u32) {
        let mut machine = Machine::new(with_boost(boost), &habits);
        machine.run(10_000 * MS);
        let turns_ns = 2 * u64::try_from(habits.len()).unwrap() * CONFIG.slice_ns;
        let waits = machine.tasks.iter().map(|m| match m.wakes_ns {
            None => m.longest_wait_ns.max(machine.now_ns - m.since_ns),
            Some(_) => m.longest_wait_ns,
        });
        prop_assert!(waits.max().unwrap() <= STARVED_NS + turns_ns);
    }

    /// The CPU time of hogs is proportional to their weights, of which at most 1000 counts.
    #[test]
    fn shares_converge_to_the_weights(weights in vec(20..=2000_u32, 2..8), boost in 0..=100_u32) {
        let habits: Vec<_> = weights.iter().map(|weight| hog(*weight)).collect();
        let mut machine = Machine::new(with_boost(boost), &habits);
        machine.run(20_000 * MS);
        let capped = weights.iter().map(|weight| f64::from((*weight).min(1000)));
        let sum: f64 = capped.clone().sum();
        for (weight, used_ns) in capped.zip(machine.used_ns()) {
            let share = std::time::Duration::from_nanos(used_ns).as_secs_f64() / 20.0;
            prop_assert!((share - weight / sum).abs() < 0.02, "{share} {}", weight / sum);
        }
    }
}
