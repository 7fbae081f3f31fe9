//! What time it is: the system's clock, or a scripted one that a simulated day moves forward.
//!
//! Every part that needs the time is given a [`Clock`]; decisions themselves are functions of a [`Timestamp`] that
//! they are handed. Stored times are unix seconds (UTC); only sentences for a person use the time zone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// A cheap handle on the time; clones share one scripted clock.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Milliseconds since the unix epoch.
    Scripted(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock in the machine's time zone.
    #[must_use]
    pub fn system() -> Self {
        Self { source: Source::System, zone: TimeZone::system() }
    }

    /// The machine's clock, told in `zone`.
    #[must_use]
    pub fn system_in(zone: TimeZone) -> Self {
        Self { source: Source::System, zone }
    }

    /// A clock that stands at `start` until somebody moves it with [`Clock::set`] or [`Clock::advance`].
    #[must_use]
    pub fn scripted(start: Timestamp, zone: TimeZone) -> Self {
        Self { source: Source::Scripted(Arc::new(AtomicI64::new(start.as_millisecond()))), zone }
    }

    /// Now, to the millisecond.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::System => Timestamp::now(),
            Source::Scripted(millis) => {
                Timestamp::from_millisecond(millis.load(Ordering::Acquire)).unwrap_or(Timestamp::UNIX_EPOCH)
            }
        }
    }

    /// Now, in the house's time zone.
    #[must_use]
    pub fn now_here(&self) -> Zoned {
        self.now().to_zoned(self.zone.clone())
    }

    /// The house's time zone.
    #[must_use]
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Moves a scripted clock forward to `to`; never backward, and never the system's clock.
    pub fn set(&self, to: Timestamp) {
        if let Source::Scripted(millis) = &self.source {
            millis.fetch_max(to.as_millisecond(), Ordering::AcqRel);
        }
    }

    /// Moves a scripted clock forward by `by`; does nothing to the system's clock.
    pub fn advance(&self, by: SignedDuration) {
        if let Source::Scripted(millis) = &self.source {
            let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX).max(0);
            millis.fetch_add(by, Ordering::AcqRel);
        }
    }
}
