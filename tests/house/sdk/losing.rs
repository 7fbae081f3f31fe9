//! A daemon that stands still, dies, or comes back.

use super::*;

/// A loss is known within this.
const NOTICED: Duration = Duration::from_secs(2);
/// It is connected again this soon after the daemon works again: a try every second or so, and one that may hang in the
/// SDK's ten seconds for a handshake.
const AGAIN: Duration = Duration::from_secs(20);

#[test]
fn a_daemon_that_stops_dies_and_restarts_is_noticed_within_two_seconds_and_found_again() {
    alone("losing::a_daemon_that_stops_dies_and_restarts_is_noticed_within_two_seconds_and_found_again", &[], |venv| {
        let mut daemon = Daemon::start(venv);
        let sdk = daemon.body();
        sdk.look(Direction::Left).unwrap();

        for seconds in [3, 15] {
            daemon.signal(Signal::STOP);
            let lost = within(NOTICED, "standing still is noticed", || sdk.state().is_err());
            let error = sdk.look(Direction::Right).unwrap_err().to_string();
            assert!(error.contains("not connected") || error.contains("lost"), "{error}");
            std::thread::sleep(Duration::from_secs(seconds));
            daemon.signal(Signal::CONT);
            let found = within(AGAIN, "it is found again", || sdk.state().is_ok());
            println!("stopped for {seconds} s: noticed after {lost:?}, found again after {found:?}");
            sdk.look(Direction::Right).unwrap();
            assert!((sdk.now().pose.yaw + 0.785).abs() < 0.04, "{:?}", sdk.now().pose);
            sdk.look(Direction::Left).unwrap();
        }

        daemon.signal(Signal::KILL);
        let lost = within(NOTICED, "death is noticed", || sdk.state().is_err());
        println!("killed: noticed after {lost:?}: {}", sdk.state().unwrap_err());
        let before = Instant::now();
        assert!(sdk.gesture(Gesture::Nod).is_err() && sdk.picture().is_err());
        assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());
        daemon.restart();
        let found = within(STARTS_WITHIN, "the new one is found", || sdk.state().is_ok());
        println!("the new daemon was found {found:?} after it was started");
        // The new robot was asleep; ours goes back to where it looked.
        within(Duration::from_secs(5), "it looks where it looked", || (sdk.now().pose.yaw - 0.785).abs() < 0.04);
        sdk.gesture(Gesture::Nod).unwrap();

        daemon.post("/api/daemon/restart", "");
        // It may be back sooner than anybody can notice; what counts is that the head moves afterwards.
        let (began, mut gone) = (Instant::now(), None);
        while gone.is_none() && began.elapsed() < NOTICED * 3 {
            gone = sdk.state().is_err().then(|| began.elapsed());
            std::thread::sleep(Duration::from_millis(20));
        }
        let found = within(STARTS_WITHIN, "it is found again", || sdk.state().is_ok());
        println!("restarted by its own page: gone after {gone:?}, found after {found:?}");
        sdk.look(Direction::Right).unwrap();
        within(Duration::from_secs(5), "it looks right", || (sdk.now().pose.yaw + 0.785).abs() < 0.04);
        sdk.look(Direction::Left).unwrap();

        daemon.post("/api/daemon/stop?goto_sleep=false", "");
        let lost = within(NOTICED, "a stopped robot is noticed", || sdk.state().is_err());
        println!("stopped by its own page: noticed after {lost:?}");
        within(AGAIN, "the reason is told", || sdk.state().is_err_and(|why| why.contains("state stopped")));
        daemon.signal(Signal::KILL);
        daemon.restart();
        within(STARTS_WITHIN, "the new one is found", || sdk.state().is_ok());
        sdk.look(Direction::Ahead).unwrap();
        sdk.rest();
    });
}
