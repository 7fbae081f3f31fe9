//! The simulated microphone's sound: recordings from WAV files between stretches of a quiet room.
//!
//! Pure but for opening the recordings. Time is not its business: it is asked for the next chunk and gives it.

use std::collections::VecDeque;
use std::path::Path;

use super::super::Sound;
use crate::robot::day::DayError;

/// Length of one chunk, in milliseconds: two voice-activity frames, well under the tenth of a second that
/// [`super::super::Robot::hear`] may take.
pub(super) const CHUNK_MS: u32 = 64;
/// Quiet before a recording, in milliseconds: as long as the endpointer's pre-roll, so that it is filled.
pub(super) const LEAD_MS: u32 = 300;
/// Quiet after a recording, in milliseconds: well over the silence that ends an utterance (600).
pub(super) const TAIL_MS: u32 = 1_500;
/// The longest recording, in seconds. An utterance is at most 28 s; a noise may be longer.
const LONGEST_RECORDING_S: u32 = 600;
/// Rate of the quiet room before anything was played: the robot's own microphones give 16 kHz.
const ROOM_RATE: u32 = 16_000;
/// Peak of the room's noise. Uniform noise has an RMS of its peak over √3, so this is −70 dBFS: 0.000316 × √3.
const ROOM_PEAK: f32 = 0.000_548;

/// One stretch of what the room sounds like.
enum Stretch {
    Quiet { frames: u64 },
    Recording { samples: Vec<f32>, position: usize },
}

/// Whether the next chunk is of a quiet room or of somebody speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Quiet,
    Speech,
    /// Everything that was queued has been given.
    Nothing,
}

/// The queue of stretches.
pub(super) struct Microphone {
    stretches: VecDeque<Stretch>,
    rate: u32,
    channels: u16,
    noise: u32,
}

impl Microphone {
    /// A microphone whose noise is the same in every run; other seeds give other noise.
    pub(super) fn new(seed: u32) -> Self {
        // Xorshift must not begin at 0.
        let noise = seed.wrapping_mul(0x9E37_79B9) | 1;
        Self { stretches: VecDeque::new(), rate: ROOM_RATE, channels: 1, noise }
    }

    /// Queues a recording between its lead and its tail.
    pub(super) fn record(&mut self, sound: Sound) {
        (self.rate, self.channels) = (sound.rate, sound.channels);
        self.quiet(LEAD_MS);
        self.stretches.push_back(Stretch::Recording { samples: sound.samples, position: 0 });
        self.quiet(TAIL_MS);
    }

    /// Queues a quiet room.
    pub(super) fn quiet(&mut self, millis: u32) {
        let frames = u64::from(millis) * u64::from(self.rate) / 1_000;
        self.stretches.push_back(Stretch::Quiet { frames });
    }

    pub(super) fn next(&self) -> Next {
        match self.stretches.front() {
            Some(Stretch::Quiet { .. }) => Next::Quiet,
            Some(Stretch::Recording { .. }) => Next::Speech,
            None => Next::Nothing,
        }
    }

    /// The next chunk: [`CHUNK_MS`] long, or shorter where a stretch ends. `deaf` turns all of it to zeros.
    pub(super) fn chunk(&mut self, deaf: bool) -> Option<Sound> {
        let frames = (u64::from(CHUNK_MS) * u64::from(self.rate) / 1_000).max(1);
        let channels = usize::from(self.channels);
        let (mut samples, over) = match self.stretches.front_mut()? {
            Stretch::Quiet { frames: left } => {
                let now = frames.min(*left);
                *left -= now;
                let over = *left == 0;
                let count = usize::try_from(now).unwrap_or(0) * channels;
                ((0..count).map(|_| room(&mut self.noise)).collect::<Vec<f32>>(), over)
            }
            Stretch::Recording { samples, position } => {
                let end = (*position + usize::try_from(frames).unwrap_or(1) * channels).min(samples.len());
                let chunk = samples.get(*position..end).unwrap_or(&[]).to_vec();
                *position = end;
                (chunk, end == samples.len())
            }
        };
        if over {
            self.stretches.pop_front();
        }
        if deaf {
            samples.fill(0.0);
        }
        Some(Sound { samples, rate: self.rate, channels: self.channels })
    }
}

/// The next sample of the room's noise.
fn room(state: &mut u32) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    (*state as f32 / u32::MAX as f32 * 2.0 - 1.0) * ROOM_PEAK
}

/// The whole of a WAV file: whole-number samples of 8 to 32 bits, or 32-bit floats, at any rate.
pub(super) fn open_recording(path: &Path) -> Result<Sound, DayError> {
    let refuse = |why: String| DayError::Unreadable { path: path.to_owned(), why };
    let broken = |error: hound::Error| refuse(format!("is no WAV file that can be played: {error}"));
    let mut reader = hound::WavReader::open(path).map_err(broken)?;
    let spec = reader.spec();
    if !(4_000..=192_000).contains(&spec.sample_rate) || !(1..=8).contains(&spec.channels) {
        return Err(refuse(format!(
            "has {} samples a second and {} channels; 4000 to 192000 and 1 to 8 can be played",
            spec.sample_rate, spec.channels
        )));
    }
    let seconds = reader.duration() / spec.sample_rate;
    if reader.duration() == 0 || seconds > LONGEST_RECORDING_S {
        return Err(refuse(format!(
            "lasts {seconds} s; a recording lasts longer than nothing and at most {LONGEST_RECORDING_S} s"
        )));
    }
    let samples: Result<Vec<f32>, hound::Error> = match spec.sample_format {
        hound::SampleFormat::Float => reader.samples::<f32>().collect(),
        hound::SampleFormat::Int => {
            let full = 2f32.powi(i32::from(spec.bits_per_sample) - 1);
            reader.samples::<i32>().map(|sample| sample.map(|value| value as f32 / full)).collect()
        }
    };
    let samples = samples.map_err(broken)?;
    if samples.iter().any(|sample| !sample.is_finite()) {
        return Err(refuse("holds samples that are no numbers".into()));
    }
    Ok(Sound { samples, rate: spec.sample_rate, channels: spec.channels })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(microphone: &mut Microphone) -> Vec<Sound> {
        std::iter::from_fn(|| microphone.chunk(false)).collect()
    }

    #[test]
    fn a_recording_comes_whole_between_lead_and_tail() {
        let samples: Vec<f32> = (0..44_100).map(|i| (i as f32 * 0.01).sin()).collect();
        let mut microphone = Microphone::new(1);
        microphone.record(Sound { samples: samples.clone(), rate: 22_050, channels: 2 });
        assert_eq!(microphone.next(), Next::Quiet);
        let chunks = all(&mut microphone);
        assert!(chunks.iter().all(|chunk| chunk.millis() <= 100 && chunk.rate == 22_050 && chunk.channels == 2));
        let heard: Vec<f32> = chunks.iter().flat_map(|chunk| chunk.samples.clone()).collect();
        let lead = 22_050 * 300 / 1_000 * 2;
        assert_eq!(&heard[lead..lead + samples.len()], samples.as_slice());
        assert_eq!(heard.len(), samples.len() + lead + 22_050 * 1_500 / 1_000 * 2);
        assert_eq!(microphone.next(), Next::Nothing);
    }

    #[test]
    fn a_quiet_room_is_quiet_but_not_dead_and_the_same_every_time() {
        let quiet = |seed| {
            let mut microphone = Microphone::new(seed);
            microphone.quiet(1_000);
            all(&mut microphone).into_iter().flat_map(|chunk| chunk.samples).collect::<Vec<f32>>()
        };
        let room = quiet(7);
        let rms = (room.iter().map(|sample| sample * sample).sum::<f32>() / room.len() as f32).sqrt();
        let decibels = 20.0 * rms.log10();
        assert!((-71.0..-69.0).contains(&decibels), "{decibels}");
        assert_eq!(room, quiet(7));
        assert_ne!(room, quiet(8));
    }

    #[test]
    fn a_deaf_microphone_gives_zeros_and_keeps_time() {
        let mut microphone = Microphone::new(1);
        microphone.quiet(64);
        let chunk = microphone.chunk(true).unwrap();
        assert_eq!(chunk.millis(), 64);
        assert!(chunk.samples.iter().all(|sample| *sample == 0.0));
    }

    #[test]
    fn recordings_of_every_kind_come_out_between_minus_one_and_one() {
        let folder = tempfile::tempdir().unwrap();
        for (bits, format) in [
            (8, hound::SampleFormat::Int),
            (16, hound::SampleFormat::Int),
            (24, hound::SampleFormat::Int),
            (32, hound::SampleFormat::Float),
        ] {
            let path = folder.path().join(format!("{bits}.wav"));
            let spec = hound::WavSpec { channels: 1, sample_rate: 8_000, bits_per_sample: bits, sample_format: format };
            let mut writer = hound::WavWriter::create(&path, spec).unwrap();
            for _ in 0..100 {
                match format {
                    hound::SampleFormat::Float => writer.write_sample(0.5f32).unwrap(),
                    hound::SampleFormat::Int => writer.write_sample(1i32 << (bits - 2)).unwrap(),
                }
            }
            writer.finalize().unwrap();
            let sound = open_recording(&path).unwrap();
            assert_eq!((sound.rate, sound.channels, sound.samples.len()), (8_000, 1, 100));
            assert!(sound.samples.iter().all(|sample| (sample - 0.5).abs() < 1e-6), "{bits} bits");
        }
    }

    #[test]
    fn a_file_that_is_no_recording_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wav");
        for content in [&b""[..], b"RIFF", b"not a sound at all, but long enough for a header of forty-four bytes"] {
            std::fs::write(&path, content).unwrap();
            let error = open_recording(&path).unwrap_err().to_string();
            assert!(error.contains("a.wav") && error.contains("WAV"), "{error}");
        }
        assert!(open_recording(folder.path()).is_err());
    }
}
