//! The socket file: its creation, permissions and removal.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{lchown, DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{fchmod, fstat, open, renameat_with, FileType, Mode, OFlags, RenameFlags, CWD};
use rustix::io::Errno;
use rustix::net::{
    bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};

use super::{Access, ServerError};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Mode of created directories.
const DIR_MODE: u32 = 0o755;

/// Mode of a socket for root and the owner only.
const ROOT_MODE: u32 = 0o600;

/// Mode of a socket for root, the owner and a group.
const GROUP_MODE: u32 = 0o660;

/// The socket file of a server. Dropping the value removes the file, unless another server has
/// replaced the file.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode of the file, since another server may put its own file at `path`.
    id: (u64, u64),
}

impl SocketFile {
    /// Creates the file and its listening socket. The socket is bound to a temporary name, gets its
    /// group and mode, listens, and is then renamed. So a client without permission can never
    /// connect, and an existing file, such as one left by a killed scheduler, is replaced
    /// atomically.
    pub(super) fn create(path: &Path, access: Access) -> Result<(Self, UnixListener), ServerError> {
        // Clients connect to the path itself, which may be longer than the temporary name.
        address(path, path)?;
        check_free(path)?;
        let dir = match path.parent() {
            Some(dir) if dir != Path::new("") => dir,
            _ => Path::new("."),
        };
        create_dirs(dir)?;
        let temporary = TemporaryFile(dir.join(temporary_name()));
        let listener = temporary.bind(path, access)?;
        let io_error = |error| ServerError::io(path, error);
        let id = file_id(&temporary.0).map_err(io_error)?;
        fs::rename(&temporary.0, path).map_err(io_error)?;
        let path = path.to_path_buf();
        Ok((Self { path, id }, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if file_id(&self.path).is_ok_and(|id| id == self.id) {
            if let Err(error) = remove_own(&self.path, self.id) {
                tracing::warn!("{}: {error}", self.path.display());
            }
        }
    }
}

/// Removes the file at `path` if it has this `id`. Another scheduler may put its own file there at
/// any moment. If so, that file is restored. Clients that try to connect in between get a retryable
/// error.
fn remove_own(path: &Path, id: (u64, u64)) -> io::Result<()> {
    let temporary = TemporaryFile(path.with_file_name(temporary_name()));
    fs::rename(path, &temporary.0)?;
    if file_id(&temporary.0)? == id {
        return Ok(());
    }
    match renameat_with(CWD, &temporary.0, CWD, path, RenameFlags::NOREPLACE) {
        // A third server has created its file meanwhile.
        Err(Errno::EXIST) => Ok(()),
        result => Ok(result?),
    }
}

/// A socket file with a temporary name. Dropping the value removes the file, if it still exists.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Binds a listening socket to the temporary name. Errors show `path` instead of this name.
    fn bind(&self, path: &Path, access: Access) -> Result<UnixListener, ServerError> {
        let address = address(&self.0, path)?;
        self.bind_to(&address, access)
            .map_err(|error| ServerError::io(path, error))
    }

    fn bind_to(&self, address: &SocketAddrUnix, access: Access) -> io::Result<UnixListener> {
        // A killed process with the same pid may have left its file.
        self.remove()?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The file inherits the mode of the unbound socket, minus the umask.
        fchmod(&socket, Mode::from_raw_mode(ROOT_MODE))?;
        bind(&socket, address)?;
        let mode = match access.group {
            Some(group) => {
                lchown(&self.0, None, Some(group))?;
                GROUP_MODE
            }
            None => ROOT_MODE,
        };
        set_socket_mode(&self.0, mode)?;
        listen(&socket, BACKLOG)?;
        Ok(socket.into())
    }

    /// Removes the file, if it exists.
    fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// The address of a socket at `name`. Errors show `path` instead of `name`.
fn address(name: &Path, path: &Path) -> Result<SocketAddrUnix, ServerError> {
    SocketAddrUnix::new(name).map_err(|_| ServerError::PathTooLong {
        path: path.to_path_buf(),
    })
}

/// A short name that no other live server uses. If it is longer than the name of the socket, the
/// maximum length of the path is reduced accordingly.
fn temporary_name() -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".{:x}.{number:x}", process::id()).into()
}

/// Checks that only a socket, if anything, exists at `path`.
fn check_free(path: &Path) -> Result<(), ServerError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => Ok(()),
        Ok(_) => Err(ServerError::NotASocket {
            path: path.to_path_buf(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ServerError::io(path, error)),
    }
}

/// Creates missing directories with [`DIR_MODE`], regardless of the umask.
fn create_dirs(dir: &Path) -> Result<(), ServerError> {
    let missing: Vec<_> = dir.ancestors().take_while(|dir| !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        if dir == Path::new("") {
            continue;
        }
        let created = match DirBuilder::new().mode(DIR_MODE).create(dir) {
            Ok(()) => set_dir_mode(dir),
            // Another process has created the directory meanwhile.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        };
        created.map_err(|error| ServerError::io(dir, error))?;
    }
    Ok(())
}

/// Sets the mode through a file descriptor, because another process may have replaced the directory
/// with a symbolic link.
fn set_dir_mode(dir: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = open(dir, flags, Mode::empty())?;
    Ok(fchmod(&dir, Mode::from_raw_mode(DIR_MODE))?)
}

/// Sets the mode of a socket's file, also through a file descriptor. A socket's file can only be
/// opened with `O_PATH`. fchmod() rejects such a descriptor; chmod() of its name in /proc works.
fn set_socket_mode(path: &Path, mode: u32) -> io::Result<()> {
    let file = open(
        path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::Socket {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(name, Permissions::from_mode(mode))
}

fn file_id(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_not_set_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "").unwrap();
        fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(set_socket_mode(&link, 0o666).is_err());
        assert!(set_dir_mode(&link).is_err());
        assert!(set_socket_mode(&victim, 0o666).is_err(), "no socket");
        assert_eq!(
            fs::metadata(&victim).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn leftovers_of_the_same_name_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join(".1.0");
        drop(UnixListener::bind(&name).unwrap());
        let temporary = TemporaryFile(name.clone());
        let _listener = temporary.bind(&name, Access::default()).unwrap();
        std::os::unix::net::UnixStream::connect(&name).unwrap();
        drop(temporary);
        assert!(!name.exists());
    }

    #[test]
    fn the_file_of_another_server_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats");
        let (own, _listener) = SocketFile::create(&path, Access::default()).unwrap();
        let (_other, _listener) = SocketFile::create(&path, Access::default()).unwrap();
        // As if the other server had created its file after the check.
        remove_own(&path, own.id).unwrap();
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(own);
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_two_names_are_the_same() {
        assert_ne!(temporary_name(), temporary_name());
    }
}
