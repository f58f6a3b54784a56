// SPDX-License-Identifier: GPL-2.0-only
//! Recognizes processes by their names in the kernel, which have at most 15 characters.

use super::facts::Role;

/// Length of a name in the kernel (`TASK_COMM_LEN` without the final 0).
const COMM_LEN: usize = 15;

/// The full names of programs, of which the kernel keeps the first 15 characters. A name that ends
/// with `*` is a prefix.
const NAMES: [(Role, &[&str]); 8] = [
    (
        Role::Game,
        &[
            "gamemoded",
            "gamescope",
            "gamescope-wl",
            "proton",
            "wine",
            "wine-preloader",
            "wine64",
            "wine64-preloader",
            "wineserver*",
        ],
    ),
    (
        Role::Launcher,
        &["bottles", "heroic", "legendary", "lutris", "steam"],
    ),
    (
        Role::Desktop,
        &[
            "Hyprland",
            "X",
            "Xorg",
            "Xwayland",
            "awesome",
            "bspwm",
            "budgie-wm",
            "cinnamon",
            "cosmic-comp",
            "dwm",
            "enlightenment",
            "gnome-shell",
            "i3",
            "kwin_wayland",
            "kwin_x11",
            "labwc",
            "lxqt-session",
            "lxsession",
            "marco",
            "mate-session",
            "mutter",
            "niri",
            "openbox",
            "plasmashell",
            "river",
            "sway",
            "wayfire",
            "weston",
            "xfce4-session",
            "xfwm4",
        ],
    ),
    (
        Role::Audio,
        &[
            "jackd",
            "jackdbus",
            "pipewire",
            "pipewire-pulse",
            "pulseaudio",
        ],
    ),
    (
        Role::Database,
        &[
            "clickhouse-server",
            "etcd",
            "influxd",
            "mariadbd",
            "memcached",
            "mongod",
            "mysqld",
            "postgres",
            "redis-server",
            "valkey-server",
        ],
    ),
    (
        Role::WebServer,
        &[
            "apache2", "caddy", "envoy", "haproxy", "httpd", "lighttpd", "nginx", "php-fpm*",
            "traefik", "uwsgi", "varnishd",
        ],
    ),
    (
        Role::Container,
        &[
            "conmon",
            "containerd",
            "containerd-shim*",
            "crio",
            "dockerd",
            "incusd",
            "k3s-server",
            "kubelet",
            "lxc-start",
            "lxd",
            "podman",
            "systemd-nspawn",
        ],
    ),
    (
        Role::VirtualMachine,
        &[
            "VBoxHeadless",
            "VirtualBoxVM",
            "cloud-hypervisor",
            "firecracker",
            "qemu-kvm",
            "qemu-system-*",
            "vmware-vmx",
        ],
    ),
];

/// Servers whose clients are usually local.
const LOCAL_SERVERS: [&str; 4] = ["X", "Xorg", "Xwayland", "postgres"];
/// Parts of the paths of the sockets on which these servers listen.
const LOCAL_SOCKETS: [&str; 2] = ["/.X11-unix/X", "/.s.PGSQL."];

/// Kernel functions in which threads wait for sockets. In ep_poll() and wait_woken(), they may also
/// wait for other files.
const SOCKET_WAITS: [&str; 8] = [
    "__skb_wait_for_more_packets",
    "ep_poll",
    "inet_csk_accept",
    "sk_wait_data",
    "unix_accept",
    "unix_stream_data_wait",
    "unix_stream_read_generic",
    "wait_woken",
];

/// The role of processes with this name.
pub(super) fn role(comm: &str) -> Option<Role> {
    let of_name = |name: &&str| match name.strip_suffix('*') {
        Some(prefix) => comm.starts_with(prefix.get(..COMM_LEN).unwrap_or(prefix)),
        None => comm == name.get(..COMM_LEN).unwrap_or(name),
    };
    let mut roles = NAMES.iter();
    let found = roles.find(|(_, names)| names.iter().any(&of_name));
    found.map(|(role, _)| *role)
}

pub(super) fn is_local_server(comm: &str) -> bool {
    LOCAL_SERVERS.contains(&comm)
}

/// Whether a Unix socket with this path belongs to a local server.
pub(super) fn is_local_socket(path: &str) -> bool {
    LOCAL_SOCKETS.iter().any(|part| path.contains(part))
}

/// Whether a thread in this kernel function probably waits for a socket. The compiler may have
/// appended a suffix, such as `.constprop.0`.
pub(super) fn is_socket_wait(function: &str) -> bool {
    let name = function.trim_end().split('.').next().unwrap_or_default();
    SOCKET_WAITS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_roles() {
        assert_eq!(role("steam"), Some(Role::Launcher));
        assert_eq!(role("wineserver64"), Some(Role::Game));
        assert_eq!(role("php-fpm8.4"), Some(Role::WebServer));
        // The kernel cuts names after 15 characters.
        assert_eq!(role("wine64-preloade"), Some(Role::Game));
        assert_eq!(role("qemu-system-x86"), Some(Role::VirtualMachine));
        assert_eq!(role("clickhouse-serv"), Some(Role::Database));
        assert_eq!(role("containerd-shim"), Some(Role::Container));
        for other in ["", "steamer", "bash", "wine64-p", "xorg", "kworker/0:1"] {
            assert_eq!(role(other), None, "{other}");
        }
    }

    #[test]
    fn each_name_is_listed_once() {
        for (of, names) in NAMES {
            for name in names {
                let comm = name.trim_end_matches('*');
                let comm = comm.get(..COMM_LEN).unwrap_or(comm);
                assert_eq!(role(comm), Some(of), "{name}");
            }
            assert!(names.is_sorted(), "{of:?}");
        }
    }

    #[test]
    fn sockets_and_waits_are_known() {
        assert!(is_local_socket("@/tmp/.X11-unix/X0"));
        assert!(is_local_socket("/var/run/postgresql/.s.PGSQL.5432"));
        assert!(!is_local_socket("/run/dbus/system_bus_socket"));
        assert!(is_socket_wait("ep_poll.isra.0") && is_socket_wait("wait_woken"));
        assert!(!is_socket_wait("0") && !is_socket_wait("futex_do_wait") && !is_socket_wait(""));
    }
}
