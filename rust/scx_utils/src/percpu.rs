// SPDX-License-Identifier: GPL-2.0-only
//! Reads per-CPU arrays, such as counters, from user space.

use anyhow::{ensure, Context as _, Result};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use zerocopy::FromBytes;

/// A per-CPU array (`BPF_MAP_TYPE_PERCPU_ARRAY`) with values of type `T`. It owns a file
/// descriptor, so it can be read on any thread.
#[derive(Debug)]
pub struct PerCpu<T> {
    map: MapHandle,
    value: std::marker::PhantomData<fn() -> T>,
}

impl<T: FromBytes> PerCpu<T> {
    /// Wraps a map.
    ///
    /// # Errors
    ///
    /// If the map has another type, or values of another size.
    pub fn new(map: MapHandle) -> Result<Self> {
        let size = usize::try_from(map.value_size())?;
        ensure!(
            map.map_type() == MapType::PercpuArray && size == size_of::<T>(),
            "the map {:?} is not a per-CPU array of values of {} bytes",
            map.name(),
            size_of::<T>()
        );
        Ok(Self {
            map,
            value: std::marker::PhantomData,
        })
    }

    /// The values of all possible CPUs at the index `idx`, in CPU order, by one system call.
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
            .context("a per-CPU value has an unexpected size")
    }

    /// A reader of statistics that `from` computes from the values of all possible CPUs at index
    /// 0.
    pub fn into_reader<M>(
        self,
        from: impl Fn(&[T]) -> M + Send + 'static,
    ) -> impl FnMut() -> Result<M> + Send + 'static
    where
        T: 'static,
    {
        move || Ok(from(&self.read(0)?))
    }
}
