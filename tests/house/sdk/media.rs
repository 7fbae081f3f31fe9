//! Camera, microphone and speaker through the bridge, with a stand-in for the SDK's media: no hardware is needed, and none
//! of the SDK's own media is tested here (`sound` does, for sound).

use super::*;
use reachy_remembers::robot::{MicrophoneRead, Sound};
use reachy_remembers::see::picture;
use std::sync::atomic::{AtomicBool, Ordering};

const STUB: (&str, &str) = ("REACHY_STUB", "echo");

fn stub_folder() -> String {
    project("stub").display().to_string()
}

/// Hears for so long: the samples of the first channel, and when the first one was taken.
pub fn hear(sdk: &Sdk, seconds: f64) -> Vec<f32> {
    let (began, mut heard) = (Instant::now(), Vec::new());
    while began.elapsed().as_secs_f64() < seconds {
        if let MicrophoneRead::Sound { sound, .. } = sdk.hear().unwrap() {
            assert_eq!((sound.rate, sound.channels), (16_000, 2));
            heard.extend(sound.samples.chunks(2).map(|pair| pair[0]));
        }
    }
    heard
}

pub fn tone(hertz: f32, rate: u32, seconds: f32) -> Sound {
    let count = (rate as f32 * seconds) as u32;
    let samples = (0..count).map(|i| 0.3 * (i as f32 * hertz * std::f32::consts::TAU / rate as f32).sin()).collect();
    Sound { samples, rate, channels: 1 }
}

/// Zero crossings upward a second, over what is loud.
pub fn pitch(samples: &[f32]) -> f32 {
    let loud: Vec<f32> = samples.iter().copied().skip_while(|value| value.abs() < 0.05).collect();
    let end = loud.iter().rposition(|value| value.abs() > 0.05).unwrap_or(0);
    let crossings = loud[..end].windows(2).filter(|pair| pair[0] <= 0.0 && pair[1] > 0.0).count();
    crossings as f32 / (end as f32 / 16_000.0)
}

#[test]
fn sound_goes_out_and_in_at_its_pitch_and_stops_at_once_while_the_head_moves() {
    let folder = stub_folder();
    let variables = [STUB, ("PYTHONPATH", folder.as_str())];
    alone("media::sound_goes_out_and_in_at_its_pitch_and_stops_at_once_while_the_head_moves", &variables, |venv| {
        let daemon = Daemon::start(venv);
        let sdk = daemon.body();
        let room = hear(&sdk, 3.0);
        let seconds = room.len() as f64 / 16_000.0;
        assert!((2.7..=3.4).contains(&seconds), "3 s of a room gave {seconds} s");

        std::thread::scope(|scope| {
            let heard = scope.spawn(|| hear(&sdk, 2.0));
            let nod = scope.spawn(|| sdk.gesture(Gesture::Nod));
            let began = Instant::now();
            // As the voice gives it, at another rate than the speaker's.
            sdk.play(&tone(440.0, 22_050, 1.0), &|| false).unwrap();
            let took = began.elapsed();
            assert!((1.0..1.3).contains(&took.as_secs_f64()), "a second of sound took {took:?}");
            nod.join().unwrap().unwrap();
            let pitch = pitch(&heard.join().unwrap());
            println!("a second of 440 Hz took {took:?} beside a nod and came back at {pitch:.1} Hz");
            assert!((pitch - 440.0).abs() < 5.0, "{pitch}");
        });

        let mut waits = Vec::new();
        for round in 0..20 {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let play = scope.spawn(|| sdk.play(&tone(440.0, 16_000, 20.0), &|| stop.load(Ordering::Acquire)));
                std::thread::sleep(Duration::from_millis(300 + round * 7));
                let asked = Instant::now();
                stop.store(true, Ordering::Release);
                play.join().unwrap().unwrap();
                waits.push(asked.elapsed());
            });
        }
        waits.sort();
        println!("silence after a stop: half within {:?}, all within {:?}", waits[10], waits[19]);
        // A machine whose cores a compiler has misses it now and then.
        assert!(waits[14] < Duration::from_millis(50) && waits[19] < Duration::from_secs(1), "{waits:?}");
        hear(&sdk, 0.3);
        let after = hear(&sdk, 0.5);
        assert!(after.iter().all(|sample| sample.abs() < 0.05), "what was stopped goes on");

        let direction = sdk.sound_direction().unwrap();
        assert!((direction.left + 0.43).abs() < 0.01 && direction.speaks, "{direction:?}");
        sdk.attend(reachy_remembers::robot::Attention::Transcribing);
        within(Duration::from_secs(2), "it turns to the voice", || sdk.now().pose.yaw < -0.3);
        sdk.rest();
    });
}

#[test]
fn pictures_come_ten_a_second_and_memory_stays_bounded_even_when_nobody_listens() {
    let folder = stub_folder();
    let variables = [STUB, ("PYTHONPATH", folder.as_str())];
    let name = "media::pictures_come_ten_a_second_and_memory_stays_bounded_even_when_nobody_listens";
    alone(name, &variables, |venv| {
        let daemon = Daemon::start(venv);
        let sdk = daemon.body();
        let mut waits = Vec::new();
        let mut looks = |seconds: f64| {
            let (began, mut numbers) = (Instant::now(), Vec::new());
            while began.elapsed().as_secs_f64() < seconds {
                let asked = Instant::now();
                let shot = sdk.picture().unwrap();
                waits.push(asked.elapsed());
                let rgb = picture::decode(&shot.encoded).unwrap();
                assert_eq!((rgb.width, rgb.height, shot.looked), (1280, 720, Direction::Ahead));
                assert_eq!(rgb.pixels[1280 * 3 * 300..][..3], [60, 60, 200], "blue is on the left, and blue");
                numbers.push(u32::from(rgb.pixels[2]) + 256 * u32::from(rgb.pixels[1]));
            }
            numbers
        };
        // Nobody hears meanwhile.
        looks(8.0);
        let before = memory();
        let numbers = looks(20.0);
        let after = memory();
        waits.sort();
        let (count, half, most) = (numbers.len(), waits[waits.len() / 2], waits[waits.len() - 1]);
        println!(
            "{count} pictures of 1280×720 in 20 s, half within {half:?}, all within {most:?}; memory {} → {} MB",
            before / 1_000_000,
            after / 1_000_000
        );
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "each picture is newer than the last");
        assert!(count >= 180, "{count} pictures");
        assert!(after < before + 15_000_000, "memory grew from {before} to {after}");
        let (began, mut waited) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_millis(300) {
            if let MicrophoneRead::Sound { sound, .. } = sdk.hear().unwrap() {
                waited += sound.millis();
            }
        }
        // Five seconds waited; what came while they were read comes on top.
        assert!((4_900..=5_700).contains(&waited), "{waited} ms waited");
        sdk.rest();
        assert!(matches!(sdk.hear().unwrap(), MicrophoneRead::Ended));
    });
}
