// SPDX-License-Identifier: GPL-2.0-only
//! Compares running averages of BPF programs (`<scx/ravg.h>`) on the running kernel with
//! `scx_utils::ravg`, and with an exact average of the same values.
//!
//! Prints the largest differences, relative to the upper bound of the values. The status is 1 if
//! they exceed the limits.

use std::mem::MaybeUninit;

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{ProgramInput, ProgramMut};
use scx_utils::ravg::RunningAverage;
use scx_utils::zerocopy::IntoBytes as _;

use bpf_intf::ravg_step;
use bpf_skel::BpfSkelBuilder;

scx_utils::include_bpf!();

/// Number of sequences. Each sequence has its own half-life and values.
const NR_SEQUENCES: u64 = 40;
const NR_STEPS: u64 = 250;

/// Maximum errors, relative to the upper bound of the values: the error of one read, for which
/// `ravg.h` gives 3e-6, and the error accumulated over a sequence.
const READ_ERROR_MAX: f64 = 4e-6;
const SUM_ERROR_MAX: f64 = 2e-5;

const FRAC_BITS: i32 = 32;

/// Pseudo-random numbers, by the generator of Knuth's MMIX.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn main() -> Result<()> {
    let mut object = MaybeUninit::uninit();
    let skel = BpfSkelBuilder::default().open(&mut object)?.load()?;
    let (mut read_error, mut sum_error) = (0.0_f64, 0.0_f64);
    for sequence in 0..NR_SEQUENCES {
        let (read, sum) = follow(&skel.progs.ravg_step, &mut Dice(sequence))?;
        read_error = read_error.max(read);
        sum_error = sum_error.max(sum);
    }
    println!(
        "{} steps: error {read_error:.1e} per read, {sum_error:.1e} accumulated",
        NR_SEQUENCES * NR_STEPS
    );
    ensure!(
        read_error < READ_ERROR_MAX && sum_error < SUM_ERROR_MAX,
        "the errors exceed the limits"
    );
    Ok(())
}

/// Follows a sequence of values. Returns the largest difference between the averages of the BPF
/// program and of user space, and the largest difference between the average of the BPF program and
/// the exact average. Both are relative to the upper bound of the values.
#[allow(clippy::cast_precision_loss)] // The lost precision is far below the measured differences.
fn follow(program: &ProgramMut<'_>, dice: &mut Dice) -> Result<(f64, f64)> {
    let half_life_ns = 1_000_000 << dice.below(18);
    let val_end = 1 << dice.below(20);
    let mut step = ravg_step {
        half_life_ns,
        ..ravg_step::default()
    };
    let mut exact = RunningAverage::default();
    let mut average = 0.0;
    let (mut read_error, mut sum_error) = (0.0_f64, 0.0_f64);
    for _ in 0..NR_STEPS {
        // The time advances by less than three half-lives, and sometimes not at all.
        step.now_ns += dice.below(4) * dice.below(half_life_ns.min(1 << 30));
        step.next_val = dice.below(val_end);
        let kept = RunningAverage {
            avg: step.avg,
            val: step.val,
            val_at_ns: step.val_at_ns,
        };
        let wanted = kept.read(step.now_ns, half_life_ns);
        let elapsed = step.now_ns - exact.val_at_ns;
        let decay = (-(elapsed as f64) / half_life_ns as f64).exp2();
        average = exact.val as f64 + (average - exact.val as f64) * decay;
        run(program, &mut step)?;
        let read = step.read as f64 * 2_f64.powi(-FRAC_BITS);
        read_error = read_error.max((read - wanted).abs() / val_end as f64);
        sum_error = sum_error.max((read - average).abs() / val_end as f64);
        exact.val = step.next_val;
        exact.val_at_ns = step.now_ns;
    }
    Ok((read_error, sum_error))
}

fn run(program: &ProgramMut<'_>, step: &mut ravg_step) -> Result<()> {
    let input = ProgramInput {
        context_in: Some(step.as_mut_bytes()),
        ..ProgramInput::default()
    };
    let output = program
        .test_run(input)
        .context("cannot run the BPF program")?;
    ensure!(output.return_value == 0, "the BPF program failed");
    Ok(())
}
