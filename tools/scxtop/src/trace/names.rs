// SPDX-License-Identifier: GPL-2.0-only
//! Names of the threads and processes in a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::bpf::{top_event, top_event_task};

use super::event::{comm, int};
use super::proto::{
    Data, Process, ProcessTree, Thread, ThreadDescriptor, TracePacket, TrackDescriptor,
};
use super::tracks::{at, describe, Track};

/// The pid of kthreadd, the parent of all other kernel threads.
const KTHREADD: u32 = 2;

/// A process.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    comm: String,
    parent: Option<u32>,
}

/// Threads, with the names that they had last, and their processes.
#[derive(Debug)]
pub(super) struct Names {
    /// The process and the name of each thread.
    threads: BTreeMap<u32, (u32, String)>,
    processes: BTreeMap<u32, Known>,
}

impl Names {
    /// Finds the names of all tasks in the records. `root` is where the directory `proc` is.
    pub(super) fn find(events: &[top_event], root: &Path) -> Self {
        let mut tasks: BTreeMap<u32, &top_event_task> = BTreeMap::new();
        for task in events.iter().flat_map(|event| [&event.task, &event.other]) {
            // Pid 0 stands for an idle task, or for the missing second task of a record.
            if task.pid != 0 {
                tasks.insert(task.pid, task);
            }
        }
        let tgids: BTreeSet<u32> = tasks.values().map(|task| task.tgid).collect();
        let mut processes: BTreeMap<u32, Known> = BTreeMap::new();
        for tgid in tgids {
            let mut known = read(root, tgid).unwrap_or_default();
            if let Some(main) = tasks.get(&tgid) {
                known.comm = comm(main);
            }
            processes.insert(tgid, known);
        }
        let mut threads = BTreeMap::new();
        for (&pid, task) in &tasks {
            let known = processes.entry(task.tgid).or_default();
            // The process ended before its name was read: use the name of a thread.
            if known.comm.is_empty() {
                known.comm = comm(task);
            }
            threads.insert(pid, (task.tgid, comm(task)));
        }
        let mut names = Self { threads, processes };
        names.gather_kernel_threads();
        names
    }

    /// Assigns all kernel threads to one process, as Perfetto does.
    fn gather_kernel_threads(&mut self) {
        let is_one = |known: &Known| known.parent == Some(KTHREADD);
        let nr_processes = self.processes.len();
        let one = self.processes.clone();
        self.processes.retain(|_, known| !is_one(known));
        if self.processes.len() == nr_processes {
            return;
        }
        let kthreadd = self.processes.entry(KTHREADD).or_default();
        kthreadd.comm = "kthreadd".to_owned();
        for (tgid, _) in self.threads.values_mut() {
            if one.get(tgid).is_some_and(is_one) {
                *tgid = KTHREADD;
            }
        }
    }

    /// Describes the processes, the threads and their tracks.
    pub(super) fn packets(&self, time_ns: u64, out: &mut Vec<TracePacket>) {
        let processes = self.processes.iter().map(|(&tgid, known)| Process {
            pid: int(tgid),
            ppid: known.parent.map(int),
            cmdline: vec![known.comm.clone()],
        });
        let threads = self.threads.iter().map(|(&pid, (tgid, name))| Thread {
            tid: int(pid),
            name: name.clone(),
            tgid: int(*tgid),
        });
        let tree = ProcessTree {
            processes: processes.collect(),
            threads: threads.collect(),
        };
        out.push(at(time_ns, Data::ProcessTree(tree)));
        for (&pid, (tgid, name)) in &self.threads {
            out.push(describe(TrackDescriptor {
                uuid: Track::Thread(pid).uuid(),
                thread: Some(ThreadDescriptor {
                    pid: int(*tgid),
                    tid: int(pid),
                    thread_name: name.clone(),
                }),
                ..TrackDescriptor::default()
            }));
        }
    }
}

/// Reads the name and the parent of a process. `None` if it does not exist any more.
fn read(root: &Path, tgid: u32) -> Option<Known> {
    let stat = fs::read(root.join(format!("proc/{tgid}/stat"))).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The format is "pid (comm) state ppid …", where comm may contain spaces and parentheses.
    let (comm, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
    Some(Known {
        comm: comm.to_owned(),
        parent: fields.split_whitespace().nth(1)?.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::switch;
    use super::*;

    fn process(root: &Path, tgid: u32, stat: &str) {
        let directory = root.join(format!("proc/{tgid}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("stat"), stat).unwrap();
    }

    #[test]
    fn processes_have_names_and_parents() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 5, "5 (a) b (c) S 1 5");
        let mut events = [switch(10, 0, 7, 1, 8)];
        events[0].task.tgid = 5;
        let names = Names::find(&events, root.path());
        assert_eq!(names.threads[&7], (5, "task7".to_owned()));
        let known = Known {
            comm: "a) b (c".to_owned(),
            parent: Some(1),
        };
        assert_eq!(names.processes[&5], known);
        // This process is gone.
        assert_eq!(names.processes[&8].comm, "task8");
    }

    #[test]
    fn kernel_threads_are_threads_of_one_process() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 7, "7 (kworker) I 2 0");
        let names = Names::find(&[switch(10, 0, 7, 1, 8)], root.path());
        assert_eq!(names.threads[&7].0, 2);
        assert_eq!(names.threads[&8].0, 8);
        assert_eq!(names.processes.keys().copied().collect::<Vec<_>>(), [2, 8]);
    }
}
