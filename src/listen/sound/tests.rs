use std::f32::consts::TAU;

use super::*;

fn tone(hz: f32, rate: u32, channels: u16, seconds: f32) -> Sound {
    let frames = (rate as f32 * seconds) as usize;
    let samples = (0..frames)
        .flat_map(|n| {
            let sample = 0.5 * (TAU * hz * n as f32 / rate as f32).sin();
            std::iter::repeat_n(sample, usize::from(channels))
        })
        .collect();
    Sound { samples, rate, channels }
}

/// The pitch, from the upward zero crossings.
fn pitch(samples: &[f32]) -> f32 {
    let crossings: Vec<f32> = samples
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0] < 0.0 && pair[1] >= 0.0)
        .map(|(at, pair)| at as f32 + pair[0] / (pair[0] - pair[1]))
        .collect();
    let periods = (crossings.len() - 1) as f32;
    RATE as f32 * periods / (crossings[crossings.len() - 1] - crossings[0])
}

fn wav(spec: hound::WavSpec, samples: &[i32]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    for &sample in samples {
        match spec.sample_format {
            SampleFormat::Int => writer.write_sample(sample).unwrap(),
            SampleFormat::Float => writer.write_sample(sample as f32 / 100.0).unwrap(),
        }
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

fn spec(bits: u16, format: SampleFormat, channels: u16, rate: u32) -> hound::WavSpec {
    hound::WavSpec { channels, sample_rate: rate, bits_per_sample: bits, sample_format: format }
}

#[test]
fn a_tone_comes_back_at_its_pitch_and_level() {
    for rate in [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000, 192_000, 8_001, 191_999] {
        for channels in [1, 2, 6] {
            let converted = to_16k_mono(&tone(440.0, rate, channels, 0.5)).unwrap();
            assert!(converted.len().abs_diff(8_000) <= 1, "{rate} Hz: {}", converted.len());
            let middle = &converted[1000..7000];
            assert!((pitch(middle) - 440.0).abs() < 0.5, "{rate} Hz: {}", pitch(middle));
            let peak = middle.iter().copied().fold(0.0, f32::max);
            assert!((peak - 0.5).abs() < 0.01, "{rate} Hz, {channels} channels: {peak}");
        }
    }
}

#[test]
fn the_converted_sound_starts_when_the_sound_starts() {
    for rate in [8_000_u32, 44_100, 48_000, 192_000] {
        let mut click = Sound { samples: vec![0.0; rate as usize], rate, channels: 1 };
        click.samples[rate as usize / 2] = 1.0;
        let converted = to_16k_mono(&click).unwrap();
        let loudest = (0..converted.len()).max_by(|&a, &b| converted[a].total_cmp(&converted[b])).unwrap();
        assert!(loudest.abs_diff(8_000) <= 2, "{rate} Hz: {loudest}");
    }
}

#[test]
fn a_tone_over_8_khz_does_not_fold_back() {
    let converted = to_16k_mono(&tone(11_000.0, 48_000, 1, 0.5)).unwrap();
    let peak = converted[1000..7000].iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
    assert!(peak < 0.001, "{peak}");
}

#[test]
fn chunks_of_any_size_give_the_same_as_the_whole() {
    let sound = tone(300.0, 44_100, 2, 0.7);
    let whole = to_16k_mono(&sound).unwrap();
    for chunk in [2, 14, 882, 10_000] {
        let mut converter = Converter::new(44_100, 2).unwrap();
        for round in 0..2 {
            let mut parts = Vec::new();
            for samples in sound.samples.chunks(chunk) {
                parts.extend(converter.push(&Sound { samples: samples.to_vec(), rate: 44_100, channels: 2 }).unwrap());
            }
            parts.extend(converter.flush().unwrap());
            assert_eq!(parts, whole, "chunks of {chunk}, round {round}");
        }
    }
}

#[test]
fn every_sane_wav_format_is_decoded() {
    for (bits, full) in [(8_u16, 128.0_f32), (16, 32_768.0), (24, 8_388_608.0), (32, 2_147_483_648.0)] {
        let sound = decode_wav(&wav(spec(bits, SampleFormat::Int, 2, 48_000), &[100, -100, 50, 0])).unwrap();
        assert_eq!(sound.samples, [100.0 / full, -100.0 / full, 50.0 / full, 0.0], "{bits} bits");
        assert_eq!((sound.rate, sound.channels), (48_000, 2));
    }
    let sound = decode_wav(&wav(spec(32, SampleFormat::Float, 1, 22_050), &[50, -25])).unwrap();
    assert_eq!(sound.samples, [0.5, -0.25]);
}

#[test]
fn a_wav_from_a_pipe_has_no_length_and_is_read_to_its_end() {
    let mut bytes = wav(spec(16, SampleFormat::Int, 1, 22_050), &[1, 2, 3]);
    for length in [0xFFFF_FFFF_u32, 0x7FFF_F000, 0x7FFF_F000 - 36] {
        let at = data_chunk(&bytes).unwrap();
        bytes[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
        assert_eq!(decode_wav(&bytes).unwrap().samples.len(), 3, "{length:x}");
    }
}

#[test]
fn a_wav_without_samples_is_empty() {
    let bytes = wav(spec(16, SampleFormat::Int, 1, 16_000), &[]);
    assert!(matches!(decode_wav(&bytes), Err(SoundError::Empty)));
}

#[test]
fn a_broken_wav_is_refused_at_every_length() {
    let bytes = wav(spec(16, SampleFormat::Int, 1, 16_000), &[7; 64]);
    for length in 0..bytes.len() {
        assert!(decode_wav(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
    assert!(matches!(decode_wav(&bytes[..bytes.len() - 10]), Err(SoundError::Truncated { promised: 64, .. })));
    assert!(matches!(decode_wav(b"this is a text, not a sound"), Err(SoundError::Corrupt { .. })));
}

#[test]
fn absurd_headers_are_refused() {
    let good = wav(spec(16, SampleFormat::Int, 1, 16_000), &[7; 64]);
    let with = |at: usize, field: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + field.len()].copy_from_slice(field);
        decode_wav(&bytes)
    };
    assert!(with(22, &0_u16.to_le_bytes()).is_err(), "no channels");
    assert!(with(24, &0_u32.to_le_bytes()).is_err(), "no rate");
    assert!(with(40, &0xFFFF_FFF0_u32.to_le_bytes()).is_err(), "four gigabytes");
    let rate = Sound { samples: vec![0.0], rate: 0, channels: 1 };
    assert!(matches!(to_16k_mono(&rate), Err(SoundError::Rate { rate: 0 })));
    let channels = Sound { samples: vec![0.0], rate: 16_000, channels: 0 };
    assert!(matches!(to_16k_mono(&channels), Err(SoundError::Channels { channels: 0 })));
    let ragged = Sound { samples: vec![0.0; 3], rate: 16_000, channels: 2 };
    assert!(matches!(to_16k_mono(&ragged), Err(SoundError::Ragged { .. })));
    let long = Sound { samples: vec![0.0; 8_000 * 602], rate: 8_000, channels: 1 };
    assert!(matches!(to_16k_mono(&long), Err(SoundError::TooLong { seconds: 602 })));
}

#[test]
fn a_sample_that_is_no_number_is_refused_and_the_stream_goes_on() {
    let mut converter = Converter::new(16_000, 1).unwrap();
    for bad in [f32::NAN, f32::INFINITY, -1e30] {
        let sound = Sound { samples: vec![0.0, bad], rate: 16_000, channels: 1 };
        assert!(matches!(converter.push(&sound), Err(SoundError::NoSound { index: 1, .. })));
    }
    let good = Sound { samples: vec![0.25], rate: 16_000, channels: 1 };
    assert_eq!(converter.push(&good).unwrap(), [0.25]);
}

#[test]
fn one_sample_is_enough_and_none_is_empty() {
    let one = Sound { samples: vec![0.5], rate: 48_000, channels: 1 };
    assert!(to_16k_mono(&one).unwrap().len() <= 1);
    let none = Sound { samples: vec![], rate: 48_000, channels: 1 };
    assert!(matches!(to_16k_mono(&none), Err(SoundError::Empty)));
}

#[test]
fn another_format_needs_another_converter() {
    let mut converter = Converter::new(48_000, 2).unwrap();
    let sound = Sound { samples: vec![0.0], rate: 48_000, channels: 1 };
    assert!(matches!(converter.push(&sound), Err(SoundError::OtherFormat { .. })));
}
