// SPDX-License-Identifier: GPL-2.0-only
//! D-Bus names, and the client side of the interface.

/// Name of the service and of its interface.
pub const NAME: &str = "org.scx.Loader";
/// Path of the service's only object.
pub const PATH: &str = "/org/scx/Loader";

/// Value of `CurrentScheduler` in the states stopped and failed, and of `DefaultScheduler` if none
/// is configured.
pub const NONE: &str = "unknown";

mod client {
    #![allow(missing_docs)] // see services/dbus/org.scx.Loader.xml

    use zbus::proxy;

    /// The client side of the properties, and of two methods that change nothing. The methods that
    /// change something are missing here: their calls need message flags, so clients use
    /// `call_with_flags()` of the proxy. `RunOperation` returns at once. The other methods that
    /// change something return when the change is complete or has failed.
    #[proxy(
        interface = "org.scx.Loader",
        default_service = "org.scx.Loader",
        default_path = "/org/scx/Loader"
    )]
    pub trait Loader {
        async fn scheduler_modes(&self, scheduler: &str) -> zbus::Result<Vec<u32>>;
        async fn scheduler_mode_args(
            &self,
            scheduler: &str,
            mode: u32,
        ) -> zbus::Result<Vec<String>>;

        #[zbus(property)]
        fn current_scheduler(&self) -> zbus::Result<String>;
        #[zbus(property)]
        fn scheduler_mode(&self) -> zbus::Result<u32>;
        #[zbus(property)]
        fn supported_schedulers(&self) -> zbus::Result<Vec<String>>;
        #[zbus(property)]
        fn current_scheduler_args(&self) -> zbus::Result<Vec<String>>;
        #[zbus(property)]
        fn default_scheduler(&self) -> zbus::Result<String>;
        #[zbus(property)]
        fn default_mode(&self) -> zbus::Result<u32>;
        #[zbus(property)]
        fn state(&self) -> zbus::Result<String>;
        #[zbus(property)]
        fn state_reason(&self) -> zbus::Result<String>;
        #[zbus(property)]
        fn stderr_tail(&self) -> zbus::Result<Vec<String>>;
        #[zbus(property)]
        fn scheduler_pid(&self) -> zbus::Result<u32>;
        #[zbus(property)]
        fn power_profile(&self) -> zbus::Result<String>;
        #[zbus(property)]
        fn power_profile_follower(&self) -> zbus::Result<String>;
        #[zbus(property)]
        fn effective_mode(&self) -> zbus::Result<u32>;
        #[zbus(property)]
        fn since_usec(&self) -> zbus::Result<u64>;
    }
}

pub use client::LoaderProxy;
