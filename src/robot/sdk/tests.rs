//! The body without Python: what it says, and that nothing waits for what will not come.

use super::*;
use crate::see::picture;

fn nowhere() -> Sdk {
    let settings = Settings { venv: "/nowhere/at/all".into(), ..Settings::default() };
    let sdk = Sdk::start(settings, Clock::system());
    assert!(sdk.ready(Duration::from_secs(10)).is_err());
    sdk
}

#[test]
fn without_python_every_part_says_so_and_the_room_is_silent() {
    let sdk = nowhere();
    let state = sdk.state().unwrap_err();
    assert!(state.contains("silent room") && state.contains("/nowhere/at/all"), "{state}");
    let began = Instant::now();
    let sound = Sound { samples: vec![0.1; 1_600], rate: 16_000, channels: 1 };
    for error in [
        sdk.hear().unwrap_err(),
        sdk.picture().unwrap_err(),
        sdk.play(&sound, &|| false).unwrap_err(),
        sdk.gesture(Gesture::Nod).unwrap_err(),
        sdk.look(Direction::Left).unwrap_err(),
        sdk.set_volume(50).unwrap_err(),
        sdk.wake().unwrap_err(),
    ] {
        assert!(matches!(&error, RobotError::Missing { why, .. } if why.contains("[robot] venv")), "{error}");
    }
    assert_eq!(sdk.sound_direction(), None);
    sdk.attend(Attention::Transcribing);
    sdk.gaze([0.1, 0.1, 0.2, 0.2]);
    sdk.rest();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(matches!(sdk.hear(), Ok(MicrophoneRead::Ended)));
}

#[test]
fn a_cameras_pixels_come_out_of_the_eye_as_they_went_in_but_red_first() {
    let bgr: Vec<u8> = (0..64 * 48 * 3).map(|byte| (byte % 251) as u8).collect();
    let rgb = picture::decode(&as_ppm(64, 48, &bgr)).unwrap();
    assert_eq!((rgb.width, rgb.height), (64, 48));
    for (rgb, bgr) in rgb.pixels.chunks(3).zip(bgr.chunks(3)) {
        assert_eq!([rgb[2], rgb[1], rgb[0]], bgr);
    }
}

#[test]
fn a_torn_or_absurd_ppm_is_a_fault_of_the_picture() {
    let whole = as_ppm(64, 48, &[7; 64 * 48 * 3]);
    for broken in
        [&whole[..whole.len() - 1], b"P6\n", b"P6\n64 48\n65535\n", b"P6\n99999999999 48\n255\n", b"P6\n4 4\n255\n"]
    {
        assert!(picture::decode(broken).is_err(), "{:?}", String::from_utf8_lossy(&broken[..broken.len().min(20)]));
    }
}

#[test]
fn a_live_picture_costs_less_as_plain_pixels_than_as_a_jpeg() {
    // Waves, as the compression of noise or of one colour would say nothing.
    let bgr: Vec<u8> = (0..1280 * 720)
        .flat_map(|at| {
            let (x, y) = ((at % 1280) as f32, (at / 1280) as f32);
            [(x / 40.0).sin(), (y / 25.0).cos(), ((x + y) / 60.0).sin()].map(|wave| (wave * 100.0 + 128.0) as u8)
        })
        .collect();
    let timed = |what: &mut dyn FnMut()| {
        let mut took: Vec<Duration> = (0..9)
            .map(|_| {
                let began = Instant::now();
                what();
                began.elapsed()
            })
            .collect();
        took.sort();
        took[4]
    };
    let plain = timed(&mut || drop(picture::decode(&as_ppm(1280, 720, &bgr)).unwrap()));
    let jpeg = picture::decode(&as_ppm(1280, 720, &bgr)).unwrap().to_jpeg_at(80).unwrap();
    let decoded = timed(&mut || drop(picture::decode(&jpeg).unwrap()));
    println!("1280×720: plain {plain:?}, a JPEG only to be read {decoded:?}");
    assert!(plain < decoded, "{plain:?} against {decoded:?}");
}
