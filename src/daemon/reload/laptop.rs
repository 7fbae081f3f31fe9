//! The laptop's address and patience, changed between two answers.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::{Commit, Part};
use crate::config::Config;
use crate::daemon::parts;
use crate::health::Health;
use crate::think::brain::Brain;
use crate::think::brains::LaptopSeat;

/// The part that puts the newly configured laptop on `seat`. The server is not asked whether it is there: one that is
/// away is no mistake in the config. `own` stands in while it is away.
#[must_use]
pub fn laptop_part(seat: LaptopSeat, own: Option<Arc<dyn Brain>>, zone: TimeZone, health: Arc<Health>) -> Part {
    Part::new(
        |old, new| old.think != new.think,
        move |new: &Config| {
            let laptop = parts::asked_first(new, zone.clone(), own.clone()).map_err(|error| error.to_string())?;
            let retry_after = Duration::from_secs(u64::from(new.think.retry_after_s));
            let (seat, health) = (seat.clone(), Arc::clone(&health));
            Ok(Box::new(move || {
                health.set("laptop", true, parts::laptop_line(laptop.as_deref()));
                seat.give_to(laptop, retry_after);
            }) as Commit)
        },
    )
}
