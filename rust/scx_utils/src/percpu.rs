// SPDX-License-Identifier: GPL-2.0-only
//! Reading per-CPU arrays, such as counters, from outside of the kernel.

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use zerocopy::FromBytes;

/// A per-CPU array (`BPF_MAP_TYPE_PERCPU_ARRAY`) whose values are of the type `T`. It owns a file
/// descriptor, so it can be read on any thread, for as long as it lives.
#[derive(Debug)]
pub struct PerCpu<T> {
    map: MapHandle,
    value: std::marker::PhantomData<fn() -> T>,
}

impl<T: FromBytes> PerCpu<T> {
    /// Takes such a map.
    ///
    /// # Errors
    ///
    /// If it is of another kind, or its values are of another size.
    pub fn new(map: MapHandle) -> Result<Self> {
        let size = usize::try_from(map.value_size())?;
        ensure!(
            map.map_type() == MapType::PercpuArray && size == size_of::<T>(),
            "the map {:?} is no per-CPU array of values of {} bytes",
            map.name(),
            size_of::<T>()
        );
        Ok(Self {
            map,
            value: std::marker::PhantomData,
        })
    }

    /// The values of all possible CPUs, in their order, at the index `idx`. One system call.
    ///
    /// # Errors
    ///
    /// If there is no such index.
    pub fn read(&self, idx: u32) -> Result<Vec<T>> {
        let values = self.map.lookup_percpu(&idx.to_ne_bytes(), MapFlags::ANY)?;
        let values = values.with_context(|| format!("a per-CPU array has no index {idx}"))?;
        let read = |bytes: &Vec<u8>| T::read_from_bytes(bytes).ok();
        values
            .iter()
            .map(read)
            .collect::<Option<_>>()
            .context("a value of another size")
    }
}
