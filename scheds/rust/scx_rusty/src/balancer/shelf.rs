// SPDX-License-Identifier: GPL-2.0-only
//! Tasks in the order of their loads, of which one after the other is taken.

/// Tasks that may be taken, the lightest first. Who is taken leaves a hole, and holes are jumped
/// over.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// Load and index of each task.
    tasks: Vec<(f64, usize)>,
    /// At `end`: what is left before `end` is before this, and the place right before this is left
    /// (or this is on its way there).
    ends: Vec<usize>,
}

impl Shelf {
    /// The next task; none before it is heavier.
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

    /// The last place before `end` that is left.
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

/// A walk over a shelf from the load that is wanted to both sides, the closest first. No place is
/// visited twice. A light task that makes no great difference does not go before a heavy one that
/// does: see [`Goal::prefers`].
#[derive(Debug)]
pub(crate) struct Walk {
    /// Places before it were not visited.
    left: usize,
    /// Nor were this one and those after it.
    right: usize,
}

/// What a transfer is to achieve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// So much is to go.
    pub(crate) wanted: f64,
    /// With so much both sides would be where they should be.
    pub(crate) imbal: f64,
    /// A task has to be lighter than this.
    pub(crate) bound: f64,
}

impl Goal {
    /// Whether a task that is heavier than what is wanted goes before one that is lighter: it is
    /// closer to that, or to the whole imbalance while the lighter one would hardly change it.
    fn prefers(self, heavier: f64, lighter: f64) -> bool {
        heavier - self.wanted < self.wanted - lighter
            || lighter < self.wanted / 2.0
                && (heavier - self.imbal).abs() < (lighter - self.imbal).abs()
    }
}

/// A place on a shelf and the task that is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) place: usize,
    pub(crate) load: f64,
    pub(crate) task: usize,
}

impl Walk {
    /// Of tasks that weigh up to `wanted`; see [`Self::and_heavier`].
    pub(crate) fn of_lighter(shelf: &Shelf, wanted: f64) -> Self {
        Self {
            left: shelf.tasks.partition_point(|(load, _)| *load <= wanted),
            right: shelf.tasks.len(),
        }
    }

    /// Also of those that weigh more. None of the shelf was taken yet.
    pub(crate) fn and_heavier(self) -> Self {
        Self {
            right: self.left,
            ..self
        }
    }

    /// From now on, this is wanted: less than before. Those that weigh more are out of it.
    pub(crate) fn shrink(&mut self, shelf: &Shelf, wanted: f64) {
        let lighter = Self::of_lighter(shelf, wanted);
        self.left = self.left.min(lighter.left);
        self.right = lighter.right;
    }

    /// The next one.
    pub(crate) fn next(&mut self, shelf: &mut Shelf, goal: Goal) -> Option<Found> {
        let left = shelf.last_before(self.left);
        let load_at = |place: usize| shelf.tasks.get(place).map(|(load, _)| *load);
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
        let (load, task) = shelf.tasks[place];
        Some(Found { place, load, task })
    }
}
