//! How the body is, in the health report: asked once a second until the process ends.

use std::sync::Arc;
use std::time::Duration;

use crate::health::Health;
use crate::robot::Robot;

/// A body that is lost is known to itself within two seconds, and to the health report a second later.
const EVERY: Duration = Duration::from_secs(1);

/// Starts to ask. The answer is what the body knows already, so nothing waits for it.
pub(super) fn watch(robot: Arc<dyn Robot>, health: Arc<Health>) {
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match robot.state() {
                Ok(what) => health.set("robot", true, what),
                Err(why) => health.set("robot", false, why),
            }
        }
    });
}
