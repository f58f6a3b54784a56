// SPDX-License-Identifier: GPL-2.0-only
//! The messages of Perfetto's format that a trace consists of, with the fields that are used. Names
//! and tags are those of `protos/perfetto/trace/` of Perfetto. Fields are written even if they are
//! zero, because Perfetto requires some of them when it reads a trace.

use prost::{Message, Oneof};

/// The key of the field `packet` of the message Trace. The whole file is one such message: for each
/// packet, this key, the packet's length, and the packet.
pub(super) const PACKET_KEY: u8 = 1 << 3 | 2;

/// Values of Perfetto's enum BuiltinClock.
pub(super) const CLOCK_REALTIME: u32 = 1;
pub(super) const CLOCK_MONOTONIC: u32 = 3;
pub(super) const CLOCK_BOOTTIME: u32 = 6;

/// A value of Perfetto's enum FtraceClock. With this clock, Perfetto converts the times of a
/// bundle's events to CLOCK_BOOTTIME by the bundle's `ftrace_timestamp` and `boot_timestamp`.
/// Without it, the events' times would be read as times of CLOCK_BOOTTIME.
pub(super) const FTRACE_CLOCK_GLOBAL: i32 = 2;

/// Values of Perfetto's enum TrackEvent.Type.
pub(super) const SLICE_BEGIN: i32 = 1;
pub(super) const SLICE_END: i32 = 2;
pub(super) const INSTANT: i32 = 3;
pub(super) const COUNTER: i32 = 4;

/// A value of Perfetto's enum TrackDescriptor.ChildTracksOrdering. Children are ordered by their
/// `sibling_order_rank`.
pub(super) const ORDER_EXPLICIT: i32 = 3;

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "58")]
    pub timestamp_clock_id: Option<u32>,
    #[prost(uint32, required, tag = "10")]
    pub trusted_packet_sequence_id: u32,
    #[prost(oneof = "Data", tags = "1, 2, 6, 11, 45, 60")]
    pub data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Data {
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    #[prost(uint32, required, tag = "2")]
    pub primary_trace_clock: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Clock {
    #[prost(uint32, required, tag = "1")]
    pub clock_id: u32,
    #[prost(uint64, required, tag = "2")]
    pub timestamp: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, required, tag = "1")]
    pub utsname: Utsname,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Utsname {
    #[prost(string, required, tag = "1")]
    pub sysname: String,
    #[prost(string, required, tag = "2")]
    pub version: String,
    #[prost(string, required, tag = "3")]
    pub release: String,
    #[prost(string, required, tag = "4")]
    pub machine: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(int32, optional, tag = "2")]
    pub ppid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Thread {
    #[prost(int32, required, tag = "1")]
    pub tid: i32,
    #[prost(string, required, tag = "2")]
    pub name: String,
    #[prost(int32, required, tag = "3")]
    pub tgid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, required, tag = "1")]
    pub cpu: u32,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(int32, required, tag = "5")]
    pub ftrace_clock: i32,
    #[prost(int64, required, tag = "6")]
    pub ftrace_timestamp: i64,
    #[prost(int64, required, tag = "7")]
    pub boot_timestamp: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, required, tag = "1")]
    pub timestamp: u64,
    /// The task that was running on the CPU.
    #[prost(uint32, required, tag = "2")]
    pub pid: u32,
    #[prost(oneof = "Sched", tags = "4, 20, 114, 237, 238, 239, 491")]
    pub event: Option<Sched>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Sched {
    #[prost(message, tag = "4")]
    Switch(SchedSwitch),
    #[prost(message, tag = "20")]
    Waking(SchedWakeup),
    #[prost(message, tag = "114")]
    WakeupNew(SchedWakeup),
    #[prost(message, tag = "237")]
    Exec(SchedProcessExec),
    #[prost(message, tag = "238")]
    Exit(SchedProcessExit),
    #[prost(message, tag = "239")]
    Fork(SchedProcessFork),
    #[prost(message, tag = "491")]
    Migrate(SchedMigrateTask),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitch {
    #[prost(string, required, tag = "1")]
    pub prev_comm: String,
    #[prost(int32, required, tag = "2")]
    pub prev_pid: i32,
    #[prost(int32, required, tag = "3")]
    pub prev_prio: i32,
    #[prost(int64, required, tag = "4")]
    pub prev_state: i64,
    #[prost(string, required, tag = "5")]
    pub next_comm: String,
    #[prost(int32, required, tag = "6")]
    pub next_pid: i32,
    #[prost(int32, required, tag = "7")]
    pub next_prio: i32,
}

/// SchedWaking and SchedWakeupNew have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedWakeup {
    #[prost(string, required, tag = "1")]
    pub comm: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub prio: i32,
    #[prost(int32, required, tag = "4")]
    pub success: i32,
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedMigrateTask {
    #[prost(string, required, tag = "1")]
    pub comm: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub prio: i32,
    #[prost(int32, optional, tag = "4")]
    pub orig_cpu: Option<i32>,
    #[prost(int32, required, tag = "5")]
    pub dest_cpu: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedProcessFork {
    #[prost(string, required, tag = "1")]
    pub parent_comm: String,
    #[prost(int32, required, tag = "2")]
    pub parent_pid: i32,
    #[prost(string, required, tag = "3")]
    pub child_comm: String,
    #[prost(int32, required, tag = "4")]
    pub child_pid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedProcessExec {
    #[prost(string, required, tag = "1")]
    pub filename: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub old_pid: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedProcessExit {
    #[prost(string, required, tag = "1")]
    pub comm: String,
    #[prost(int32, required, tag = "2")]
    pub pid: i32,
    #[prost(int32, required, tag = "3")]
    pub tgid: i32,
    #[prost(int32, required, tag = "4")]
    pub prio: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, required, tag = "1")]
    pub uuid: u64,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, required, tag = "1")]
    pub pid: i32,
    #[prost(int32, required, tag = "2")]
    pub tid: i32,
    #[prost(string, required, tag = "5")]
    pub thread_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// The field is called `type` in Perfetto.
    #[prost(int32, required, tag = "9")]
    pub kind: i32,
    #[prost(uint64, required, tag = "11")]
    pub track_uuid: u64,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(string, required, tag = "10")]
    pub name: String,
    #[prost(oneof = "Value", tags = "3, 6, 7")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(uint64, tag = "3")]
    Uint(u64),
    #[prost(string, tag = "6")]
    String(String),
    /// Shown in hexadecimal.
    #[prost(uint64, tag = "7")]
    Pointer(u64),
}
