//! What the service manager is told: that the robot is ready, how it is, that it ends, and that it is still alive.
//!
//! The protocol is systemd's `sd_notify(3)`: datagrams of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names.
//! Without that variable nothing is told, and nothing else changes. Nobody answers, so a datagram that is lost is lost.
//!
//! The watchdog is fed from what the parts promise: each takes a [`Pulse`] from the [`Heartbeat`] and says, again and
//! again, within which time it will be heard of next. Feeding stops as soon as one promise is broken, and the manager
//! then ends the process and starts it anew. A part that ends on purpose drops its pulse; one that panics cannot, so a
//! dead part is noticed like a hanging one.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::health::{Health, PartHealth};

/// The state's line is looked at this often, and the watchdog fed at least so often. Not measured: soon enough for
/// somebody who looks, and one datagram.
const SLOWEST: Duration = Duration::from_secs(10);
/// The watchdog is never fed oftener, whatever the manager asks for.
const FASTEST: Duration = Duration::from_millis(50);
/// The longest state line, in characters; `systemctl status` shows one line of a terminal.
const LONGEST_STATUS: usize = 160;

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// The start, or a reload, is over.
    Ready,
    Reloading,
    Stopping,
    /// The process is alive.
    Watchdog,
    /// How it is, in one line.
    Status(String),
}

impl Tell {
    fn line(&self) -> String {
        match self {
            Self::Ready => "READY=1".into(),
            Self::Reloading => "RELOADING=1".into(),
            Self::Stopping => "STOPPING=1".into(),
            Self::Watchdog => "WATCHDOG=1".into(),
            Self::Status(what) => format!("STATUS={}", one_line(what)),
        }
    }
}

/// Control characters end a line of the protocol, so they become spaces.
fn one_line(what: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    match what.char_indices().nth(LONGEST_STATUS) {
        Some((end, _)) => what.get(..end).unwrap_or(what).chars().map(plain).chain(['…']).collect(),
        None => what.chars().map(plain).collect(),
    }
}

/// Why the service manager cannot be told anything.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    #[error("the service manager's socket {address:?} cannot be reached: {source}")]
    Socket { address: OsString, source: io::Error },
    #[error("NOTIFY_SOCKET is {address:?}, which is neither a path nor an abstract address")]
    Address { address: OsString },
}

/// The line to the service manager; cheap to clone.
#[derive(Clone, Debug)]
pub struct Manager {
    line: Option<Arc<(UnixDatagram, SocketAddr)>>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// The manager that started this process, if one did.
    ///
    /// # Errors
    /// [`NotifyError`] when there should be one.
    pub fn of_this_process() -> Result<Self, NotifyError> {
        let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
            return Ok(Self::nobody());
        };
        let variable = |name| std::env::var(name).ok();
        Self::at(address, watchdog(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), std::process::id()))
    }

    /// The manager at `address` (a path, or a name in the abstract space after `@`), who ends a process that is silent
    /// for `watchdog`.
    ///
    /// # Errors
    /// [`NotifyError`].
    pub fn at(address: OsString, watchdog: Option<Duration>) -> Result<Self, NotifyError> {
        let socket_address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            [b'/', ..] => SocketAddr::from_pathname(&address),
            _ => return Err(NotifyError::Address { address }),
        };
        let opened = socket_address.and_then(|to| {
            let socket = UnixDatagram::unbound()?;
            // A manager that does not read must not hold the robot up.
            socket.set_nonblocking(true)?;
            Ok((socket, to))
        });
        match opened {
            Ok(line) => Ok(Self { line: Some(Arc::new(line)), watchdog }),
            Err(source) => Err(NotifyError::Socket { address, source }),
        }
    }

    /// Nobody: what is told goes nowhere.
    #[must_use]
    pub fn nobody() -> Self {
        Self { line: None, watchdog: None }
    }

    /// Tells all of `what` in one datagram.
    pub fn tell(&self, what: &[Tell]) {
        let Some(line) = &self.line else { return };
        let (socket, to) = line.as_ref();
        let words = what.iter().map(Tell::line).collect::<Vec<_>>().join("\n");
        if let Err(error) = socket.send_to_addr(words.as_bytes(), to) {
            tracing::debug!(%error, "the service manager was not told");
        }
    }

    /// Whether there is anybody to tell.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.line.is_some()
    }
}

/// How long the manager waits for a sign of life: `WATCHDOG_USEC`, where it is meant for this process.
fn watchdog(microseconds: Option<String>, process: Option<String>, own: u32) -> Option<Duration> {
    if process.is_some_and(|process| process.trim().parse() != Ok(own)) {
        return None;
    }
    microseconds?.trim().parse().ok().filter(|microseconds| *microseconds > 0).map(Duration::from_micros)
}

/// How often the watchdog is fed: twice in the time after which it bites, as `sd_watchdog_enabled(3)` advises.
fn pace(watchdog: Option<Duration>) -> Duration {
    watchdog.map_or(SLOWEST, |bites| (bites / 2).clamp(FASTEST, SLOWEST))
}

/// The parts that must stay alive, and what each has promised.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    promises: Arc<Mutex<Vec<Promise>>>,
}

/// One part will be heard of before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    pub part: &'static str,
    pub until: Instant,
    number: u64,
}

/// Whether every part keeps its promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Alive,
    /// This part should have been heard of so long ago.
    Silent {
        part: &'static str,
        late: Duration,
    },
}

/// Who is late, and the most; nobody without promises.
#[must_use]
pub fn judge(promises: &[Promise], now: Instant) -> Verdict {
    let late = |promise: &Promise| now.saturating_duration_since(promise.until);
    promises
        .iter()
        .filter(|promise| now > promise.until)
        .max_by_key(|promise| late(promise))
        .map_or(Verdict::Alive, |promise| Verdict::Silent { part: promise.part, late: late(promise) })
}

impl Heartbeat {
    fn promises(&self) -> MutexGuard<'_, Vec<Promise>> {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pulse for `part`, which will be heard of again within `within`.
    #[must_use]
    pub fn pulse(&self, part: &'static str, within: Duration) -> Pulse {
        let mut promises = self.promises();
        let number = promises.iter().map(|promise| promise.number + 1).max().unwrap_or(0);
        promises.push(Promise { part, until: after(within), number });
        drop(promises);
        Pulse { heartbeat: self.clone(), number }
    }

    /// Whether all parts are alive.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        judge(&self.promises(), Instant::now())
    }
}

/// A part's sign of life. Dropped by a part that ends on purpose; a part that panics leaves its last promise behind.
#[derive(Debug)]
pub struct Pulse {
    heartbeat: Heartbeat,
    number: u64,
}

impl Pulse {
    /// Alive, and heard of again within `within`.
    pub fn beat(&self, within: Duration) {
        let until = after(within);
        if let Some(promise) = self.heartbeat.promises().iter_mut().find(|promise| promise.number == self.number) {
            promise.until = until;
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.heartbeat.promises().retain(|promise| promise.number != self.number);
        }
    }
}

/// Longer than any promise is worth: a day from now.
const NEVER: Duration = Duration::from_secs(24 * 60 * 60);

fn after(within: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(within).unwrap_or_else(|| now + NEVER)
}

/// The health of all parts in one line: what does not work first, because the line may be cut.
#[must_use]
pub fn status(parts: &[PartHealth]) -> String {
    let broken: Vec<String> =
        parts.iter().filter(|part| !part.works).map(|part| format!("{}: {}", part.part, part.what)).collect();
    let names: Vec<&str> = parts.iter().filter(|part| part.works).map(|part| part.part.as_str()).collect();
    match (broken.is_empty(), names.is_empty()) {
        (true, _) => format!("All well: {}", names.join(", ")),
        (false, true) => broken.join("; "),
        (false, false) => format!("{}; all well with {}", broken.join("; "), names.join(", ")),
    }
}

/// Feeds the watchdog and keeps the state's line up to date, until the task is dropped. The watchdog is fed only while
/// every promise is kept; who broke one is written to the log, once.
pub async fn keep_told(manager: Manager, heartbeat: Heartbeat, health: Arc<Health>) {
    if !manager.is_there() {
        return;
    }
    let mut ticks = tokio::time::interval(pace(manager.watchdog));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut told, mut blamed) = (String::new(), None);
    loop {
        ticks.tick().await;
        let mut tell = Vec::new();
        match heartbeat.verdict() {
            Verdict::Alive => {
                blamed = None;
                tell.push(Tell::Watchdog);
            }
            Verdict::Silent { part, late } => {
                if blamed.replace(part) != Some(part) {
                    tracing::error!(part, ?late, "not heard of in time; the watchdog is not fed any more");
                }
            }
        }
        let now = status(&health.parts());
        if now != told {
            tell.push(Tell::Status(now.clone()));
            told = now;
        }
        if !tell.is_empty() {
            manager.tell(&tell);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 4096];
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn a_path_and_an_abstract_address_are_both_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let at_path = UnixDatagram::bind(&path).unwrap();
        let manager = Manager::at(path.into_os_string(), None).unwrap();
        manager.tell(&[Tell::Ready, Tell::Status("two\nlines".into())]);
        assert_eq!(heard(&at_path), "READY=1\nSTATUS=two lines");

        let name = format!("reachy-remembers-test-{}", std::process::id());
        let abstract_one = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let manager = Manager::at(format!("@{name}").into(), None).unwrap();
        manager.tell(&[Tell::Stopping]);
        assert_eq!(heard(&abstract_one), "STOPPING=1");
    }

    #[test]
    fn an_address_that_is_none_is_refused_and_a_manager_that_is_gone_holds_nobody_up() {
        assert!(matches!(Manager::at("somewhere".into(), None), Err(NotifyError::Address { .. })));
        let folder = tempfile::tempdir().unwrap();
        let manager = Manager::at(folder.path().join("nobody").into_os_string(), None).unwrap();
        manager.tell(&[Tell::Watchdog]);
    }

    #[test]
    fn the_watchdog_of_another_process_is_not_ours() {
        let usec = || Some("30000000".to_owned());
        assert_eq!(watchdog(usec(), None, 7), Some(Duration::from_secs(30)));
        assert_eq!(watchdog(usec(), Some("7".into()), 7), Some(Duration::from_secs(30)));
        assert_eq!(watchdog(usec(), Some("8".into()), 7), None);
        assert_eq!(watchdog(Some("0".into()), None, 7), None);
        assert_eq!(watchdog(Some("soon".into()), None, 7), None);
        assert_eq!(watchdog(None, None, 7), None);
    }

    #[test]
    fn it_is_fed_twice_before_it_bites() {
        assert_eq!(pace(Some(Duration::from_secs(6))), Duration::from_secs(3));
        assert_eq!(pace(Some(Duration::from_secs(600))), SLOWEST);
        assert_eq!(pace(Some(Duration::from_micros(1))), FASTEST);
        assert_eq!(pace(None), SLOWEST);
    }

    #[test]
    fn the_part_that_is_most_overdue_is_named() {
        let now = Instant::now();
        let promise = |part, seconds: u64, number| Promise { part, until: now + Duration::from_secs(seconds), number };
        let promises = [promise("turns", 10, 0), promise("listening", 2, 1), promise("seeing", 1, 2)];
        assert_eq!(judge(&promises, now), Verdict::Alive);
        assert_eq!(judge(&[], now), Verdict::Alive);
        let late = Duration::from_secs(3);
        assert_eq!(judge(&promises, now + Duration::from_secs(4)), Verdict::Silent { part: "seeing", late });
    }

    #[test]
    fn a_part_that_ends_is_not_missed_and_one_that_panics_is() {
        let heartbeat = Heartbeat::default();
        let pulse = heartbeat.pulse("listening", Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert!(matches!(heartbeat.verdict(), Verdict::Silent { part: "listening", .. }));
        pulse.beat(Duration::from_secs(60));
        assert_eq!(heartbeat.verdict(), Verdict::Alive);
        pulse.beat(Duration::ZERO);
        drop(pulse);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(heartbeat.verdict(), Verdict::Alive);

        let panicking = heartbeat.pulse("seeing", Duration::ZERO);
        let thread = std::thread::spawn(move || {
            let _held = panicking;
            panic!("as a broken part does");
        });
        assert!(thread.join().is_err());
        std::thread::sleep(Duration::from_millis(2));
        assert!(matches!(heartbeat.verdict(), Verdict::Silent { part: "seeing", .. }));
    }

    #[test]
    fn what_is_broken_comes_first_in_the_state_and_the_line_is_bounded() {
        let part = |part: &str, works, what: &str| PartHealth { part: part.into(), works, what: what.into() };
        let parts = [part("brain", true, "asked"), part("voice", false, "no espeak-ng"), part("memory", true, "open")];
        assert_eq!(status(&parts), "voice: no espeak-ng; all well with brain, memory");
        assert_eq!(status(&parts[..1]), "All well: brain");
        assert_eq!(status(&parts[1..2]), "voice: no espeak-ng");
        let long = Tell::Status("ü".repeat(500)).line();
        assert_eq!(long.chars().count(), "STATUS=".len() + LONGEST_STATUS + 1);
    }

    #[tokio::test]
    async fn nothing_is_fed_while_a_promise_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = Manager::at(path.into_os_string(), Some(Duration::from_millis(100))).unwrap();
        let (heartbeat, health) = (Heartbeat::default(), Arc::new(Health::default()));
        let pulse = heartbeat.pulse("turns", Duration::from_secs(60));
        let told = tokio::spawn(keep_told(manager, heartbeat, health));
        tokio::time::sleep(Duration::from_millis(200)).await;
        socket.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        let mut drain = || std::iter::from_fn(|| socket.recv(&mut bytes).ok()).count();
        assert!(drain() >= 2);
        pulse.beat(Duration::ZERO);
        tokio::time::sleep(Duration::from_millis(100)).await;
        drain();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(drain(), 0);
        pulse.beat(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(drain() >= 1);
        told.abort();
    }
}
