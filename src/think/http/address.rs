//! Names in the house: asked for anew with every connection, and remembered for when nobody answers for them.
//!
//! `laptop.local` is looked up over multicast, which a busy or sleeping network loses now and then. The last address
//! that a name had is then tried; if the laptop has a new one, the next look-up that succeeds finds it.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use tokio::time::timeout;

/// The most names that are remembered; the config names one server.
const MOST_NAMES: usize = 8;

/// Looks names up with the system's own resolver, for half of the connect limit at most.
#[derive(Clone)]
pub(super) struct Remembering {
    limit: Duration,
    known: Arc<Mutex<HashMap<String, Vec<SocketAddr>>>>,
}

impl Remembering {
    pub fn new(connect: Duration) -> Self {
        Self { limit: connect / 2, known: Arc::default() }
    }

    /// What a look-up came to, or what an earlier one did.
    fn settle(&self, name: &str, found: io::Result<Vec<SocketAddr>>) -> io::Result<Vec<SocketAddr>> {
        let Ok(mut known) = self.known.lock() else { return found };
        match found {
            Ok(addresses) if !addresses.is_empty() => {
                if known.len() < MOST_NAMES || known.contains_key(name) {
                    known.insert(name.to_owned(), addresses.clone());
                }
                Ok(addresses)
            }
            other => match known.get(name) {
                Some(addresses) => Ok(addresses.clone()),
                None => other.and_then(|_| Err(io::Error::other(format!("nobody in the house is called {name}")))),
            },
        }
    }
}

impl Resolve for Remembering {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            // The port is the request's own; 0 here means just that.
            let found = match timeout(this.limit, lookup_host((name.as_str(), 0))).await {
                Ok(found) => found.map(Iterator::collect),
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the name {} was not found within {:?}", name.as_str(), this.limit),
                )),
            };
            let addresses = this.settle(name.as_str(), found)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Vec<SocketAddr> {
        vec![address.parse().unwrap()]
    }

    #[test]
    fn a_name_that_does_not_resolve_for_a_moment_keeps_its_last_address() {
        let names = Remembering::new(Duration::from_secs(2));
        let lost = || Err(io::Error::other("no answer"));
        assert!(names.settle("laptop.local", lost()).is_err());
        assert!(names.settle("laptop.local", Ok(Vec::new())).unwrap_err().to_string().contains("laptop.local"));
        names.settle("laptop.local", Ok(at("10.0.0.7:0"))).unwrap();
        assert_eq!(names.settle("laptop.local", lost()).unwrap(), at("10.0.0.7:0"));
        assert_eq!(names.settle("laptop.local", Ok(at("10.0.0.9:0"))).unwrap(), at("10.0.0.9:0"));
        assert_eq!(names.settle("laptop.local", lost()).unwrap(), at("10.0.0.9:0"), "the new address, not the old one");
        assert!(names.settle("other.local", lost()).is_err());
    }
}
