// SPDX-License-Identifier: GPL-2.0-only
//! Tasks sorted by load, to be taken one by one.

/// Tasks in ascending order of load. Taking a task leaves a hole, which later searches skip.
#[derive(Debug, Default)]
pub(crate) struct SortedTasks {
    /// Load and index of each task.
    tasks: Vec<(f64, usize)>,
    /// A union-find forest that skips holes. If `ends[end] == end`, the place `end - 1` is not a
    /// hole, or `end` is 0. Otherwise `ends[end]` is less than `end`, and all places from
    /// `ends[end]` to `end - 1` are holes.
    ends: Vec<usize>,
}

impl SortedTasks {
    /// Appends a task, which must not be lighter than the tasks appended before.
    pub(crate) fn push(&mut self, load: f64, task: usize) {
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        self.tasks.push((load, task));
        self.ends.push(self.tasks.len());
    }

    pub(crate) fn take(&mut self, place: usize) {
        self.ends[place + 1] = place;
    }

    /// The last place before `end` that is not a hole.
    fn last_before(&mut self, mut end: usize) -> Option<usize> {
        if self.ends.is_empty() {
            return None;
        }
        while self.ends[end] != end {
            self.ends[end] = self.ends[self.ends[end]];
            end = self.ends[end];
        }
        end.checked_sub(1)
    }
}

/// An iteration over tasks that starts at the wanted load and continues to lighter tasks and, after
/// [`Walk::and_heavier`], to heavier tasks. Tasks with loads closest to the wanted load come first,
/// with the exception described at [`Goal::prefers`]. No task is visited twice.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The places before this one are not visited yet.
    left: usize,
    /// This place and the places after it are not visited yet.
    right: usize,
}

/// The goal of a transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// The load to transfer.
    pub(crate) wanted: f64,
    /// The largest load whose transfer takes neither side beyond its share.
    pub(crate) imbal: f64,
    /// Tasks have to be lighter than this.
    pub(crate) bound: f64,
}

impl Goal {
    /// Whether the task with the load `heavier` is visited before the task with the load `lighter`.
    /// This is so if `heavier` is closer to `wanted`, or if `lighter` is less than half of `wanted`
    /// and `heavier` is closer to `imbal`.
    fn prefers(self, heavier: f64, lighter: f64) -> bool {
        heavier - self.wanted < self.wanted - lighter
            || lighter < self.wanted / 2.0
                && (heavier - self.imbal).abs() < (lighter - self.imbal).abs()
    }
}

/// A visited task, and its place in [`SortedTasks`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) place: usize,
    pub(crate) load: f64,
    pub(crate) task: usize,
}

impl Walk {
    /// Visits tasks whose load is at most `wanted`. For heavier tasks, see [`Self::and_heavier`].
    pub(crate) fn of_lighter(sorted_tasks: &SortedTasks, wanted: f64) -> Self {
        Self {
            left: sorted_tasks
                .tasks
                .partition_point(|(load, _)| *load <= wanted),
            right: sorted_tasks.tasks.len(),
        }
    }

    /// Visits heavier tasks too. Call it before the first [`Self::next`], because otherwise tasks
    /// would be visited twice.
    pub(crate) fn and_heavier(self) -> Self {
        Self {
            right: self.left,
            ..self
        }
    }

    /// Lowers `wanted`, and skips the tasks that are heavier than the new value.
    pub(crate) fn shrink(&mut self, sorted_tasks: &SortedTasks, wanted: f64) {
        let lighter = Self::of_lighter(sorted_tasks, wanted);
        self.left = self.left.min(lighter.left);
        self.right = lighter.right;
    }

    /// Returns the next task to visit.
    pub(crate) fn next(&mut self, sorted_tasks: &mut SortedTasks, goal: Goal) -> Option<Found> {
        let left = sorted_tasks.last_before(self.left);
        let load_at = |place: usize| sorted_tasks.tasks.get(place).map(|(load, _)| *load);
        let lighter = left.and_then(load_at);
        let heavier = load_at(self.right).filter(|load| *load < goal.bound);
        let place = match (lighter, heavier) {
            (Some(lighter), Some(heavier)) if goal.prefers(heavier, lighter) => self.right,
            (None, Some(_)) => self.right,
            _ => left?,
        };
        if place == self.right {
            self.right += 1;
        } else {
            self.left = place;
        }
        let (load, task) = sorted_tasks.tasks[place];
        Some(Found { place, load, task })
    }
}
