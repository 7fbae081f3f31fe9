//! Stopping the running answer from elsewhere: somebody speaks over the robot.
//!
//! Only the turn that runs at that moment is stopped; the next one is not touched. A tool that has begun goes on to its
//! end.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A handle that stops the running answer. Clones stop the same one.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Notify>);

impl Interrupt {
    /// Stops the turn that runs now, if one does. Does not block.
    pub fn stop(&self) {
        self.0.notify_waiters();
    }

    /// Ends when [`Interrupt::stop`] is called after this call.
    pub fn stopped(&self) -> Notified<'_> {
        self.0.notified()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_who_waited_before_is_stopped() {
        let interrupt = Interrupt::default();
        interrupt.stop();
        let running = interrupt.stopped();
        interrupt.clone().stop();
        assert!(running.now_or_never().is_some(), "the running turn goes on");
        assert!(interrupt.stopped().now_or_never().is_none(), "the next turn is stopped too");
    }
}
