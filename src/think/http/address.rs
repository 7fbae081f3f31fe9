//! Names in the house: asked for anew with every connection, and remembered for when nobody answers for them.
//!
//! `laptop.local` is answered over multicast, which few systems without a desktop know how to ask and which a busy or
//! sleeping network loses now and then. So the system is asked first, then, for names in `.local`, the house itself
//! (mDNS); the last address that a name had is tried when neither knows. It may be kept in a file, so that a robot that
//! restarts finds its laptop again. A laptop with a new address is found by the next look-up that succeeds, and every
//! connection makes one.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mdns_sd::{HostnameResolutionEvent, ServiceDaemon};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};

/// The most names that are remembered; the config names one server.
const MOST_NAMES: usize = 8;

/// The most addresses kept of one name; a laptop has one or two networks, each with two kinds of address.
const MOST_ADDRESSES: usize = 8;

/// How much of the connect limit a look-up may take; in the house, the connection itself takes milliseconds. Not
/// measured.
const LOOKUP_SHARE: f64 = 0.75;

/// How long the system is asked alone before the house is asked too, as a share of the whole limit. Not measured: a
/// system that knows the name answers within milliseconds.
const HEAD_START: f64 = 0.25;

/// The port of mDNS (RFC 6762).
const MDNS_PORT: u16 = 5353;

/// The largest file of addresses that is read, in bytes.
const LARGEST_FILE: u64 = 16 * 1024;

/// One way to find a name's addresses; the port in them is 0.
pub(super) trait Lookup: Send + Sync {
    fn find(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// The system's own resolver.
pub(super) struct SystemLookup;

impl Lookup for SystemLookup {
    fn find(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let name = name.to_owned();
        async move { Ok(lookup_host((name, 0)).await?.collect()) }.boxed()
    }
}

/// Asks the house by multicast. Its thread and sockets live as long as one question.
pub(super) struct HouseLookup {
    pub port: u16,
}

/// Ends the thread of a question, answered or dropped.
struct Asking(ServiceDaemon);

impl Drop for Asking {
    fn drop(&mut self) {
        // A full or closed queue means that it is ending already.
        let _ = self.0.shutdown();
    }
}

impl Lookup for HouseLookup {
    fn find(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let (host, port) = (format!("{}.", name.trim_end_matches('.')), self.port);
        async move {
            let daemon = ServiceDaemon::new_with_port(port).map_err(io::Error::other)?;
            let asking = Asking(daemon);
            // Whoever asked has a limit of its own.
            let events = asking.0.resolve_hostname(&host, None).map_err(io::Error::other)?;
            while let Ok(event) = events.recv_async().await {
                match event {
                    HostnameResolutionEvent::AddressesFound(_, found) => {
                        return Ok(in_order(found.iter().map(mdns_sd::ScopedIp::to_ip_addr)));
                    }
                    HostnameResolutionEvent::SearchTimeout(_) | HostnameResolutionEvent::SearchStopped(_) => break,
                    _ => {}
                }
            }
            Err(io::Error::new(io::ErrorKind::NotFound, format!("nobody in the house answers for {host}")))
        }
        .boxed()
    }
}

/// IPv4 first: a link-local IPv6 address needs to be told the network, which a URL cannot.
fn in_order(found: impl Iterator<Item = IpAddr>) -> Vec<SocketAddr> {
    let usable = |ip: &IpAddr| match ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let mut addresses: Vec<SocketAddr> = found.filter(usable).map(|ip| SocketAddr::new(ip, 0)).collect();
    addresses.sort();
    addresses.truncate(MOST_ADDRESSES);
    addresses
}

/// Looks names up, for [`LOOKUP_SHARE`] of the connect limit at most, and remembers what it found.
#[derive(Clone)]
pub(super) struct Remembering {
    limit: Duration,
    system: Arc<dyn Lookup>,
    house: Arc<dyn Lookup>,
    known: Arc<Mutex<Known>>,
}

/// The addresses that names had last.
#[derive(Default)]
struct Known {
    names: BTreeMap<String, Vec<IpAddr>>,
    file: Option<PathBuf>,
}

impl Remembering {
    pub fn new(connect: Duration) -> Self {
        Self::with(connect, Arc::new(SystemLookup), Arc::new(HouseLookup { port: MDNS_PORT }))
    }

    fn with(connect: Duration, system: Arc<dyn Lookup>, house: Arc<dyn Lookup>) -> Self {
        Self { limit: connect.mul_f64(LOOKUP_SHARE), system, house, known: Arc::default() }
    }

    /// The same memory of names under another connect limit.
    pub fn within(&self, connect: Duration) -> Self {
        Self { limit: connect.mul_f64(LOOKUP_SHARE), ..self.clone() }
    }

    /// Keeps the addresses in `file` too, and takes up what it holds. A file that cannot be read is passed over: it only
    /// spares a look-up.
    pub fn keep_in(&mut self, file: PathBuf) {
        let small = std::fs::metadata(&file).is_ok_and(|about| about.is_file() && about.len() <= LARGEST_FILE);
        let text = if small { std::fs::read_to_string(&file).unwrap_or_default() } else { String::new() };
        let names: BTreeMap<String, Vec<IpAddr>> = serde_json::from_str(&text).unwrap_or_default();
        let names = names.into_iter().take(MOST_NAMES).collect();
        if let Ok(mut known) = self.known.lock() {
            *known = Known { names, file: Some(file) };
        }
    }

    /// What a look-up came to, or what an earlier one did.
    fn settle(&self, name: &str, found: io::Result<Vec<SocketAddr>>) -> io::Result<Vec<SocketAddr>> {
        let Ok(mut known) = self.known.lock() else { return found };
        match found {
            Ok(addresses) if !addresses.is_empty() => {
                let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).take(MOST_ADDRESSES).collect();
                let is_new = known.names.get(name) != Some(&ips);
                if is_new && (known.names.len() < MOST_NAMES || known.names.contains_key(name)) {
                    known.names.insert(name.to_owned(), ips);
                    known.save();
                }
                Ok(addresses)
            }
            other => match known.names.get(name) {
                Some(ips) => Ok(ips.iter().map(|ip| SocketAddr::new(*ip, 0)).collect()),
                None => other.and_then(|_| Err(io::Error::other(format!("nobody in the house is called {name}")))),
            },
        }
    }

    async fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let system = self.system.find(name);
        if !name.trim_end_matches('.').to_lowercase().ends_with(".local") {
            return system.await;
        }
        let mut system = std::pin::pin!(system);
        tokio::select! {
            found = &mut system => {
                if let Ok(addresses) = found && !addresses.is_empty() {
                    return Ok(addresses);
                }
                return self.house.find(name).await;
            }
            () = sleep(self.limit.mul_f64(HEAD_START)) => {}
        }
        let mut house = self.house.find(name);
        tokio::select! {
            found = &mut system => match found {
                Ok(addresses) if !addresses.is_empty() => Ok(addresses),
                _ => house.await,
            },
            found = &mut house => match found {
                Ok(addresses) if !addresses.is_empty() => Ok(addresses),
                _ => system.await,
            },
        }
    }

    async fn addresses(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let found = match timeout(self.limit, self.find(name)).await {
            Ok(found) => found,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the name {name} was not found within {:?}", self.limit),
            )),
        };
        let (this, name) = (self.clone(), name.to_owned());
        // The file is written only when an address changed, but then it blocks.
        tokio::task::spawn_blocking(move || this.settle(&name, found)).await.map_err(io::Error::other)?
    }
}

impl Known {
    fn save(&self) {
        let Some(file) = &self.file else { return };
        let written = serde_json::to_vec(&self.names).map_err(io::Error::other).and_then(|bytes| {
            let beside = file.with_extension("new");
            std::fs::write(&beside, bytes)?;
            std::fs::rename(&beside, file)
        });
        if let Err(error) = written {
            tracing::warn!(%error, file = %file.display(), "the laptop's address was not written down");
        }
    }
}

impl Resolve for Remembering {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            // The port is the request's own; 0 here means just that.
            let addresses = this.addresses(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
