//! Head, antennas and body of the simulated robot in the SDK's own daemon.

use super::*;
use reachy_remembers::robot::RobotError;

fn is_at(sdk: &Sdk, pose: Pose) -> bool {
    let now = sdk.now().pose;
    let apart = (now - pose).axes();
    // 2 mm and 2°: breathing is part of it.
    apart[..3].iter().all(|way| way.abs() < 0.005) && apart[3..].iter().all(|turn| turn.abs() < 0.04)
}

#[test]
fn head_antennas_and_body_reach_their_poses_and_what_does_not_is_an_error() {
    alone("moving::head_antennas_and_body_reach_their_poses_and_what_does_not_is_an_error", &[], |venv| {
        let daemon = Daemon::start(venv);
        let sdk = daemon.body();
        assert!(sdk.state().unwrap().contains("SDK 1."));
        within(Duration::from_secs(4), "it gets up by itself", || is_at(&sdk, AHEAD));

        for (direction, side) in [(Direction::Left, 1.0), (Direction::Right, -1.0)] {
            let began = Instant::now();
            sdk.look(direction).unwrap();
            println!("a look took {:?}", began.elapsed());
            assert!(is_at(&sdk, Pose { yaw: side * 0.785, body: side * 0.26, ..AHEAD }), "{:?}", sdk.now().pose);
        }
        sdk.gesture(Gesture::LookAhead).unwrap();

        for gesture in Gesture::ALL {
            let Some(sequence) = gesture.sequence() else { continue };
            let began = Instant::now();
            let over = std::sync::atomic::AtomicBool::new(false);
            let (sdk, over) = (&sdk, &over);
            let most = std::thread::scope(|scope| {
                let watch = scope.spawn(move || {
                    let mut most: f64 = 0.0;
                    while !over.load(std::sync::atomic::Ordering::Acquire) {
                        let apart = (sdk.now().pose - AHEAD).axes();
                        most = apart[3..].iter().fold(most, |most, turn| most.max(turn.abs()));
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    most
                });
                sdk.gesture(gesture).unwrap();
                over.store(true, std::sync::atomic::Ordering::Release);
                watch.join().unwrap()
            });
            assert!(most > 0.1, "{gesture:?} did not show: {most}");
            assert!(began.elapsed().as_secs_f64() < sequence.seconds() + 0.6, "{gesture:?}: {:?}", began.elapsed());
            // Its last pose is known a tenth of a second later.
            within(Duration::from_secs(1), "it ends where it began", || is_at(sdk, AHEAD));
        }
        switched_off_motors_are_switched_on(&daemon, &sdk);
        a_body_that_another_program_moves_is_an_error(&daemon, &sdk);

        let began = Instant::now();
        sdk.rest();
        println!("the head lay after {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(4));
        let lying = daemon.get("/api/state/full");
        println!("{}", lying.lines().last().unwrap_or_default());
        assert!(lying.contains("\"control_mode\":\"disabled\""), "{lying}");
    });
}

fn switched_off_motors_are_switched_on(daemon: &Daemon, sdk: &Sdk) {
    daemon.post("/api/motors/set_mode/disabled", "");
    let known = within(Duration::from_secs(3), "motors off are known", || !sdk.now().motors_on);
    let began = Instant::now();
    sdk.look(Direction::Left).unwrap();
    println!("motors off: known after {known:?}, on again and looked after {:?}", began.elapsed());
    assert!(sdk.now().motors_on && is_at(sdk, Pose { yaw: 0.785, body: 0.26, ..AHEAD }));
    sdk.look(Direction::Ahead).unwrap();
}

fn a_body_that_another_program_moves_is_an_error(daemon: &Daemon, sdk: &Sdk) {
    let elsewhere =
        r#"{"head_pose":{"x":0,"y":0,"z":0,"roll":0,"pitch":0.1,"yaw":-0.6},"duration":4.0,"interpolation":"minjerk"}"#;
    daemon.post("/api/move/goto", elsewhere);
    let error = sdk.look(Direction::Left).unwrap_err();
    println!("{error}");
    assert!(matches!(&error, RobotError::Failed { part: "motion", why } if why.contains("another program")), "{error}");
    // Afterwards it is ours again.
    std::thread::sleep(Duration::from_secs(4));
    sdk.look(Direction::Ahead).unwrap();
}
