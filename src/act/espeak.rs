//! espeak-ng as a program of its own, one run a sentence.
//!
//! The text goes in at its standard input and never into the command line, so no sentence can be taken for an option;
//! no shell is involved. A run has a deadline, can be stopped, and is killed with all that it may have started. If the
//! program dies, the sentence is an error and the next one starts a new run.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::voice::{Synthesiser, VoiceError};
use crate::robot::Sound;

/// The longest sentence, in characters; a reply of 300 tokens has about 1,200.
pub const LONGEST_SENTENCE: usize = 4_000;
/// The longest run. 2,000 characters took 0.11 s on x86; the robot's cores are perhaps six times slower (not measured).
const DEADLINE: Duration = Duration::from_secs(20);
/// How often a run looks whether it should stop.
const LOOK: Duration = Duration::from_millis(20);
/// The most sound of one sentence, in bytes: ten minutes at 22.05 kHz and 16 bits. 4,000 characters last about five.
const MOST_SOUND: u64 = 600 * 22_050 * 2;
/// The most of an error message, in bytes.
const MOST_COMPLAINT: u64 = 2_000;

/// A way to run espeak-ng.
#[derive(Clone, Debug)]
pub struct Espeak {
    program: PathBuf,
    voice: String,
    words_per_minute: u32,
    deadline: Duration,
}

impl Espeak {
    /// `program` (a name to be found in PATH, or a path) with a voice that `program --voices` lists.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, voice: &str, words_per_minute: u32) -> Self {
        Self { program: program.into(), voice: voice.to_owned(), words_per_minute, deadline: DEADLINE }
    }

    /// The same with another deadline for a sentence.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The voice's name.
    #[must_use]
    pub fn voice(&self) -> &str {
        &self.voice
    }

    /// The voices that are installed, as `-v` takes them: the column Language of `--voices`.
    ///
    /// # Errors
    /// [`VoiceError`] when the program cannot be run.
    pub fn voices(&self) -> Result<Vec<String>, VoiceError> {
        Ok(self.list("--voices")?.into_iter().map(|voice| voice.language).collect())
    }

    /// Whether the voice is one of those that are listed. The program itself takes any name whose beginning it knows
    /// and speaks with another voice ("en-uk", "en-us+zz"); an owner who mistyped would wonder for long.
    ///
    /// # Errors
    /// [`VoiceError`] when the program cannot be run.
    pub fn knows_its_voice(&self) -> Result<bool, VoiceError> {
        let (name, variant) = match self.voice.split_once('+') {
            Some((name, variant)) => (name, Some(variant)),
            None => (self.voice.as_str(), None),
        };
        let known = self.list("--voices")?.iter().any(|voice| voice.is_called(name))
            || self.list("--voices=mb")?.iter().any(|voice| voice.short_name().eq_ignore_ascii_case(name));
        let Some(variant) = variant.filter(|_| known) else {
            return Ok(known);
        };
        let file = format!("!v/{variant}");
        Ok(self.list("--voices=variant")?.iter().any(|voice| voice.file == file || voice.name == variant))
    }

    fn list(&self, which: &str) -> Result<Vec<Listed>, VoiceError> {
        let mut command = Command::new(&self.program);
        command.arg(which);
        let output = self.run(command, String::new(), &|| false)?;
        Ok(String::from_utf8_lossy(&output.out).lines().skip(1).filter_map(Listed::read).collect())
    }

    fn run(&self, mut command: Command, text: String, stop: &dyn Fn() -> bool) -> Result<Output, VoiceError> {
        let name = self.program.display().to_string();
        // A group of its own, so that killing it ends whatever it started as well.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => VoiceError::ProgramMissing { program: name.clone() },
            _ => VoiceError::Failed { why: format!("{name} could not be started: {error}") },
        })?;
        let mut running = Running { child, ended: false };
        if let Some(mut stdin) = running.child.stdin.take() {
            // On a thread, because a program that does not read would block it; a program that ended early breaks the
            // pipe, which its exit status tells better.
            spawn("voice text", move || drop(stdin.write_all(text.as_bytes())))?;
        }
        let out = reader(running.child.stdout.take(), MOST_SOUND)?;
        let complaint = reader(running.child.stderr.take(), MOST_COMPLAINT)?;
        let deadline = Instant::now() + self.deadline;
        let out = wait(&out, deadline, stop)?;
        if out.len() as u64 >= MOST_SOUND {
            return Err(VoiceError::Failed {
                why: format!("{name} gave more than ten minutes of sound for a sentence"),
            });
        }
        let complaint = wait(&complaint, deadline, stop)?;
        let status = running.finish(deadline, stop)?;
        Ok(Output { out, complaint: String::from_utf8_lossy(&complaint).trim().to_owned(), status })
    }
}

impl Synthesiser for Espeak {
    fn synthesise(&self, words: &str, stop: &dyn Fn() -> bool) -> Result<Sound, VoiceError> {
        let characters = words.chars().count();
        if characters > LONGEST_SENTENCE {
            return Err(VoiceError::TooLong { characters, most: LONGEST_SENTENCE });
        }
        let mut command = Command::new(&self.program);
        // -b 1: the text is UTF-8. The values are glued to their options: a voice's name cannot become one.
        command.args(["-b", "1", "--stdin", "--stdout"]);
        command.arg(format!("-v{}", self.voice)).arg(format!("-s{}", self.words_per_minute));
        let output = self.run(command, words.to_owned(), stop)?;
        if !output.status.success() || output.out.is_empty() {
            if output.complaint.contains("does not exist") {
                return Err(VoiceError::UnknownVoice { voice: self.voice.clone() });
            }
            let said = if output.complaint.is_empty() { "it said nothing".into() } else { output.complaint };
            return Err(VoiceError::Failed {
                why: format!("{} ended with {}: {said}", self.program.display(), output.status),
            });
        }
        wav_from_pipe(&output.out)
    }
}

/// One line of `--voices`: "Pty Language Age/Gender VoiceName File (other priority) …".
struct Listed {
    language: String,
    /// Spaces are written as underscores.
    name: String,
    file: String,
    others: Vec<String>,
}

impl Listed {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_whitespace().map(str::to_owned);
        let language = fields.nth(1)?;
        let (name, file) = (fields.nth(1)?, fields.next()?);
        let others = fields.filter_map(|field| field.split_once('(').map(|(_, name)| name.to_owned())).collect();
        Some(Self { language, name, file, others })
    }

    /// What MBROLA's voices are called; their languages are listed whether or not their data is installed.
    fn short_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    fn is_called(&self, name: &str) -> bool {
        let name = name.replace(' ', "_");
        let names = [&self.language, &self.name, &self.file].into_iter().chain(&self.others);
        names.into_iter().any(|known| known.eq_ignore_ascii_case(&name))
    }
}

struct Output {
    out: Vec<u8>,
    complaint: String,
    status: ExitStatus,
}

/// A child that does not outlive its run.
struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    /// Its exit status; both its pipes have ended, so it is about to end as well.
    fn finish(&mut self, deadline: Instant, stop: &dyn Fn() -> bool) -> Result<ExitStatus, VoiceError> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.ended = true;
                    return Ok(status);
                }
                Ok(None) if stop() => return Err(VoiceError::Stopped),
                Ok(None) if Instant::now() >= deadline => return Err(VoiceError::TimedOut),
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(error) => {
                    return Err(VoiceError::Failed { why: format!("waiting for the voice: {error}") });
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let group = rustix::process::Pid::from_child(&self.child);
        if let Err(error) = rustix::process::kill_process_group(group, rustix::process::Signal::KILL) {
            tracing::debug!(%error, "the voice's processes had ended already");
        }
        // Killed, so this does not wait; it takes the process off the system's table.
        if let Err(error) = self.child.wait() {
            tracing::warn!(%error, "the voice's process could not be collected");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), VoiceError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|error| VoiceError::Failed { why: format!("no thread for the voice: {error}") })
}

/// Reads `pipe` to its end, at most `most` bytes, on a thread; an unreadable pipe reads as it was so far.
fn reader(pipe: Option<impl Read + Send + 'static>, most: u64) -> Result<Receiver<Vec<u8>>, VoiceError> {
    let (sender, receiver) = sync_channel(1);
    spawn("voice sound", move || {
        let mut bytes = Vec::new();
        if let Some(Err(error)) = pipe.map(|pipe| pipe.take(most).read_to_end(&mut bytes)) {
            tracing::debug!(%error, "the voice's pipe broke");
        }
        // Nobody waits any more when the run was stopped.
        drop(sender.send(bytes));
    })?;
    Ok(receiver)
}

fn wait(receiver: &Receiver<Vec<u8>>, deadline: Instant, stop: &dyn Fn() -> bool) -> Result<Vec<u8>, VoiceError> {
    loop {
        if stop() {
            return Err(VoiceError::Stopped);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(bytes) => return Ok(bytes),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Err(VoiceError::TimedOut),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(VoiceError::Failed { why: "the voice's reader ended".into() });
            }
        }
    }
}

/// Sound from a WAV stream that was written into a pipe. Its lengths are made up, because the writer did not know them
/// yet: everything after the `data` header is sound.
fn wav_from_pipe(bytes: &[u8]) -> Result<Sound, VoiceError> {
    let broken = |what: &str| VoiceError::Failed { why: format!("the voice's sound {what}") };
    let number = |bytes: &[u8], at: usize, length: usize| {
        let field = bytes.get(at..at + length)?;
        Some(field.iter().rev().fold(0u32, |number, byte| number << 8 | u32::from(*byte)))
    };
    if bytes.get(..4) != Some(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return Err(broken("is no WAV stream"));
    }
    let mut rest = bytes.get(12..).unwrap_or(&[]);
    let mut format = None;
    while let (Some(id), Some(length)) = (rest.get(..4), number(rest, 4, 4)) {
        let body = rest.get(8..).unwrap_or(&[]);
        if id == b"data" {
            let (rate, channels) = format.ok_or_else(|| broken("has no format"))?;
            let samples = body.as_chunks::<2>().0.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32_768.0);
            return Ok(Sound { samples: samples.collect(), rate, channels });
        }
        if id == b"fmt " {
            let field = |at, length| number(body, at, length).ok_or_else(|| broken("has half a format"));
            let (kind, channels, rate, bits) = (field(0, 2)?, field(2, 2)?, field(4, 4)?, field(14, 2)?);
            let channels = u16::try_from(channels).unwrap_or(0);
            if kind != 1 || bits != 16 || !(1..=8).contains(&channels) || !(4_000..=192_000).contains(&rate) {
                return Err(broken(&format!("has kind {kind}, {channels} channels, {rate} Hz, {bits} bits")));
            }
            format = Some((rate, channels));
        }
        // Chunks are padded to even lengths.
        let step = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(usize::from(length % 2 == 1));
        rest = body.get(step..).unwrap_or(&[]);
    }
    Err(broken("holds no samples"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(data_length: u32, samples: &[i16]) -> Vec<u8> {
        let mut bytes = b"RIFF\x24\xf0\xff\x7fWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        bytes.extend(22_050u32.to_le_bytes());
        bytes.extend(44_100u32.to_le_bytes());
        bytes.extend(b"\x02\0\x10\0data");
        bytes.extend(data_length.to_le_bytes());
        bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
        bytes
    }

    #[test]
    fn a_listed_voice_is_known_by_all_its_names() {
        let line = " 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)";
        let voice = Listed::read(line).unwrap();
        for name in ["en-gb", "en", "EN-GB", "English (Great Britain)", "gmw/en"] {
            assert!(voice.is_called(name), "{name}");
        }
        assert!(!voice.is_called("en-uk"));
        let line = " 5  en-gb-x-gbclan  --/M      English_(Lancaster) gmw/en-GB-x-gbclan   (en-gb 3)(en 5)";
        assert_eq!(Listed::read(line).unwrap().others, ["en-gb", "en"]);
        assert!(Listed::read(" 1  ar  --/M  arabic-mbrola-1  mb/mb-ar1").unwrap().short_name() == "mb-ar1");
        assert!(Listed::read("").is_none());
    }

    #[test]
    fn made_up_lengths_in_a_piped_header_lose_nothing() {
        for length in [0, 2, 0x7fff_f000, u32::MAX] {
            let sound = wav_from_pipe(&stream(length, &[0, 16_384, -32_768])).unwrap();
            assert_eq!(sound, Sound { samples: vec![0.0, 0.5, -1.0], rate: 22_050, channels: 1 });
        }
    }

    #[test]
    fn a_stream_that_is_cut_off_or_no_sound_is_an_error_and_never_a_panic() {
        let whole = stream(4, &[1, 2]);
        for end in 0..44 {
            assert!(wav_from_pipe(&whole[..end]).is_err(), "{end} bytes");
        }
        assert_eq!(wav_from_pipe(&whole[..47]).unwrap().samples.len(), 1, "half a sample is dropped");
        let mut compressed = whole;
        compressed[20] = 85;
        assert!(wav_from_pipe(&compressed).is_err());
    }
}
