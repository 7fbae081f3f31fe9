//! The models folder: which model is in use, and what is there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::manifest::{File, ImageFacts, Manifest, Model, Part, Pooling, Role};
use super::part;
use super::record::Record;
use super::{ModelError, Sources};
use crate::config::ModelsConfig;
use crate::remember::embed::Identity;

/// In the config: the first model in the manifest that is there.
const AUTO: &str = "auto";

/// The models that can be used and the folder they are kept in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Library {
    pub(super) manifest: Manifest,
    pub(super) folder: PathBuf,
    pub(super) sources: Sources,
    /// The model that the config names for each role, or [`AUTO`].
    wanted: [(Role, String); 7],
}

/// The text model in use.
#[derive(Clone, Debug)]
pub struct TextModel {
    pub name: String,
    /// `model.safetensors` of a BERT.
    pub weights: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// `config.json`.
    pub config: PathBuf,
    /// Numbers in a vector.
    pub dimension: usize,
    pub pooling: Pooling,
    /// Put before a question, never before a stored text; empty: nothing.
    pub question_prefix: String,
    /// Whether the vector is brought to length 1.
    pub normalise: bool,
    /// Longer texts are cut here, in tokens with the two special ones.
    pub max_tokens: usize,
    /// An exchange counts as found from this score on, 0…1.
    pub exchange_gate: f32,
    /// A frame's sentence counts as found from this score on, 0…1.
    pub frame_gate: f32,
    /// Whether the gates were measured; else they are from the design.
    pub gates_are_measured: bool,
    /// A fact's question counts as found from this score on, 0…1.
    pub fact_gate: f32,
    /// To be written beside every shard.
    pub identity: Identity,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// The speech model in use.
#[derive(Clone, Debug)]
pub struct SpeechModel {
    pub name: String,
    /// A Whisper as whisper.cpp has it.
    pub weights: PathBuf,
    /// Whether it knows no other language.
    pub english_only: bool,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// The voice-activity model in use.
#[derive(Clone, Debug)]
pub struct VoiceActivityModel {
    pub name: String,
    /// Silero as ONNX, 16 kHz.
    pub weights: PathBuf,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// The model that finds objects.
#[derive(Clone, Debug)]
pub struct DetectorModel {
    pub name: String,
    /// YOLOX as ONNX, 416 × 416 pixels, 80 objects.
    pub weights: PathBuf,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// The image model in use.
#[derive(Clone, Debug)]
pub struct ImageModel {
    pub name: String,
    /// `model.safetensors` of a SigLIP 2.
    pub weights: PathBuf,
    /// `tokenizer.json`.
    pub tokenizer: PathBuf,
    /// `config.json`.
    pub config: PathBuf,
    /// `preprocessor_config.json`; what the robot needs of it is in `facts`.
    pub preprocessor: PathBuf,
    pub facts: ImageFacts,
    /// To be written beside every shard.
    pub identity: Identity,
    /// Which model it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// The ONNX Runtime library that was fetched.
#[derive(Clone, Debug)]
pub struct RuntimeLibrary {
    pub name: String,
    /// A shared library for this machine.
    pub library: PathBuf,
    /// Which one it is and why, for the log and for `doctor`.
    pub in_use: String,
}

/// What is known of a model's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Every file has the right SHA-256 and has not changed since it was computed.
    Verified,
    /// Every file has the right size; not all were hashed yet.
    Here,
    /// A file is not there.
    Missing,
    /// A file is there and is not what it must be.
    Damaged,
}

/// One line of a list.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub role: Role,
    pub licence: String,
    pub purpose: String,
    /// All files together, in bytes.
    pub bytes: u64,
    pub state: State,
    /// Whether the robot would use it now.
    pub in_use: bool,
    /// Where the weights came from; `None` when nobody noted it.
    pub from: Option<String>,
    /// What is wrong, in words.
    pub problem: Option<String>,
}

/// What a look at a model's files found.
#[derive(Debug)]
pub(super) struct Found {
    pub state: State,
    pub problem: Option<String>,
    /// The names of the files that are not as they must be.
    pub wanting: Vec<String>,
}

/// How closely a look goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Sizes, and the hashes that are on record.
    Glance,
    /// Hashes whatever is not on record.
    Once,
    /// Hashes everything.
    Again,
}

impl Library {
    /// The models of the program's own manifest, with what the environment and the config say.
    ///
    /// `base_folder`: what relative folders in the config are relative to.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] when the config names a model that does not exist.
    pub fn new(config: &ModelsConfig, base_folder: &Path) -> Result<Self, ModelError> {
        let sources = Sources::from_environment(config, base_folder);
        Self::with(Manifest::embedded()?, sources, config, base_folder)
    }

    /// The same with another manifest and other sources.
    ///
    /// # Errors
    /// As [`Library::new`].
    pub fn with(
        mut manifest: Manifest,
        sources: Sources,
        config: &ModelsConfig,
        base_folder: &Path,
    ) -> Result<Self, ModelError> {
        manifest.models.retain(Model::is_for_this_machine);
        let wanted = [
            (Role::Text, config.text.clone()),
            (Role::Speech, config.speech.clone()),
            (Role::VoiceActivity, config.voice_activity.clone()),
            (Role::Detector, config.detector.clone()),
            (Role::FaceDetector, config.face_detector.clone()),
            (Role::Face, config.face.clone()),
            (Role::Image, config.image.clone()),
        ];
        for (role, name) in &wanted {
            if name != AUTO && !manifest.of(*role).any(|model| model.name == *name) {
                let mut known: Vec<&str> = manifest.of(*role).map(|model| model.name.as_str()).collect();
                known.insert(0, AUTO);
                let what = format!("{role} model");
                return Err(ModelError::Unknown { what, name: name.clone(), known: known.join(", ") });
            }
        }
        Ok(Self { manifest, folder: base_folder.join(&config.folder), sources, wanted })
    }

    /// Where the files are kept.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The text model in use. Hashes its files if that was never done; otherwise looks at their sizes only. Blocks.
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when no text model can be used.
    pub fn text(&self) -> Result<TextModel, ModelError> {
        let (model, in_use) = self.choose(Role::Text)?;
        let Some(facts) = &model.text else {
            return Err(unsound(model));
        };
        let weights = model.file(Part::Weights).ok_or_else(|| unsound(model))?;
        Ok(TextModel {
            name: model.name.clone(),
            weights: self.path(model, Part::Weights)?,
            tokenizer: self.path(model, Part::Tokenizer)?,
            config: self.path(model, Part::Config)?,
            dimension: facts.dimension,
            pooling: facts.pooling,
            question_prefix: facts.question_prefix.clone(),
            normalise: facts.normalise,
            max_tokens: facts.max_tokens,
            exchange_gate: facts.gates.exchange,
            frame_gate: facts.gates.frame,
            gates_are_measured: facts.gates.measured,
            fact_gate: facts.gates.fact,
            identity: Identity {
                model: model.name.clone(),
                weights: weights.sha256.clone(),
                preprocessing: facts.preprocessing,
                dimension: facts.dimension,
            },
            in_use,
        })
    }

    /// The speech model in use; otherwise as [`Library::text`].
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when no speech model can be used.
    pub fn speech(&self) -> Result<SpeechModel, ModelError> {
        let (model, in_use) = self.choose(Role::Speech)?;
        let Some(facts) = &model.speech else {
            return Err(unsound(model));
        };
        let weights = self.path(model, Part::Weights)?;
        Ok(SpeechModel { name: model.name.clone(), weights, english_only: facts.english_only, in_use })
    }

    /// The voice-activity model in use; otherwise as [`Library::text`].
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when no voice-activity model can be used.
    pub fn voice_activity(&self) -> Result<VoiceActivityModel, ModelError> {
        let (model, in_use) = self.choose(Role::VoiceActivity)?;
        Ok(VoiceActivityModel { name: model.name.clone(), weights: self.path(model, Part::Weights)?, in_use })
    }

    /// The model that finds objects; otherwise as [`Library::text`].
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when none can be used: the robot goes on without.
    pub fn detector(&self) -> Result<DetectorModel, ModelError> {
        let (model, in_use) = self.choose(Role::Detector)?;
        Ok(DetectorModel { name: model.name.clone(), weights: self.path(model, Part::Weights)?, in_use })
    }

    /// The image model in use; otherwise as [`Library::text`]. Hashing it the first time takes seconds.
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when none can be used: the robot goes on without.
    pub fn image(&self) -> Result<ImageModel, ModelError> {
        let (model, in_use) = self.choose(Role::Image)?;
        let Some(facts) = &model.image else {
            return Err(unsound(model));
        };
        let weights = model.file(Part::Weights).ok_or_else(|| unsound(model))?;
        Ok(ImageModel {
            name: model.name.clone(),
            weights: self.path(model, Part::Weights)?,
            tokenizer: self.path(model, Part::Tokenizer)?,
            config: self.path(model, Part::Config)?,
            preprocessor: self.path(model, Part::Preprocessor)?,
            facts: facts.clone(),
            identity: Identity {
                model: model.name.clone(),
                weights: weights.sha256.clone(),
                preprocessing: facts.preprocessing,
                dimension: facts.dimension,
            },
            in_use,
        })
    }

    /// The ONNX Runtime library that was fetched for this machine; otherwise as [`Library::text`].
    ///
    /// # Errors
    /// [`ModelError::NotHere`] when there is none: the program's own engine runs instead.
    pub fn runtime(&self) -> Result<RuntimeLibrary, ModelError> {
        let (model, in_use) = self.choose(Role::Runtime)?;
        Ok(RuntimeLibrary { name: model.name.clone(), library: self.path(model, Part::Library)?, in_use })
    }

    /// Every model with what is known of its files, without hashing them.
    ///
    /// # Errors
    /// [`ModelError::Unreadable`] when the folder cannot be looked into.
    pub fn list(&self) -> Result<Vec<Row>, ModelError> {
        self.rows(Look::Glance)
    }

    /// The same after hashing every file that is there. Blocks, about a second for 100 MB on the robot (not measured).
    ///
    /// # Errors
    /// [`ModelError::Unreadable`] when a file cannot be read.
    pub fn verify(&self) -> Result<Vec<Row>, ModelError> {
        self.rows(Look::Again)
    }

    fn rows(&self, look: Look) -> Result<Vec<Row>, ModelError> {
        let mut rows = Vec::new();
        for role in Role::ALL {
            let mut taken = false;
            for model in self.manifest.of(role) {
                let found = self.look(model, look)?;
                let usable = matches!(found.state, State::Verified | State::Here);
                let in_use = usable && !taken && self.may_use(model);
                taken |= in_use;
                let from = model
                    .file(Part::Weights)
                    .or_else(|| model.file(Part::Library))
                    .and_then(|file| Record::read(&self.folder_of(model)).from(&file.name).map(str::to_owned));
                rows.push(Row {
                    name: model.name.clone(),
                    role,
                    licence: model.licence.clone(),
                    purpose: model.purpose.clone(),
                    bytes: model.bytes(),
                    state: found.state,
                    in_use,
                    from: from.filter(|_| usable),
                    problem: found.problem,
                });
            }
        }
        Ok(rows)
    }

    /// Whether the config lets this model play its role.
    pub(super) fn may_use(&self, model: &Model) -> bool {
        let wanted = self.wanted_for(model.role);
        wanted == AUTO || wanted == model.name
    }

    fn wanted_for(&self, role: Role) -> &str {
        self.wanted.iter().find(|(other, _)| *other == role).map_or(AUTO, |(_, name)| name)
    }

    /// The first model that may be used and is whole, and the line that says which and why.
    pub(super) fn choose(&self, role: Role) -> Result<(&Model, String), ModelError> {
        let mut passed_over: Vec<(&str, Option<String>)> = Vec::new();
        for model in self.manifest.of(role).filter(|model| self.may_use(model)) {
            let found = self.look(model, Look::Once)?;
            if found.state == State::Verified {
                let named = self.wanted_for(role) != AUTO;
                return Ok((model, in_use_line(role, &model.name, named, passed_over.first())));
            }
            passed_over.push((&model.name, found.problem));
        }
        let told = passed_over.iter().map(|(name, problem)| match problem {
            Some(problem) => format!("{name}: {problem}"),
            None => format!("{name} is not here"),
        });
        let mut why = told.collect::<Vec<_>>().join("; ");
        if why.is_empty() {
            why = format!("there is none for this kind of machine ({})", std::env::consts::ARCH);
        }
        Err(ModelError::NotHere { role, folder: self.folder.clone(), why })
    }

    pub(super) fn folder_of(&self, model: &Model) -> PathBuf {
        self.folder.join(&model.name)
    }

    pub(super) fn path(&self, model: &Model, part: Part) -> Result<PathBuf, ModelError> {
        model.file(part).map(|file| self.folder_of(model).join(&file.name)).ok_or_else(|| unsound(model))
    }

    /// Looks at a model's files; what is hashed is put on record.
    pub(super) fn look(&self, model: &Model, look: Look) -> Result<Found, ModelError> {
        let folder = self.folder_of(model);
        let before = Record::read(&folder);
        let mut record = before.clone();
        let mut found = Found { state: State::Verified, problem: None, wanting: Vec::new() };
        for file in &model.files {
            let (state, problem) = look_at(&folder, file, &mut record, look)?;
            if matches!(state, State::Missing | State::Damaged) {
                found.wanting.push(file.name.clone());
                found.problem = found.problem.or(problem);
            }
            found.state = worse(found.state, state);
        }
        if found.wanting.len() == model.files.len() && found.state == State::Missing {
            found.problem = None;
        }
        if record != before
            && let Err(error) = record.write(&folder)
        {
            tracing::debug!(%error, model = model.name, "what was hashed could not be noted; it is hashed again next time");
        }
        Ok(found)
    }
}

fn look_at(folder: &Path, file: &File, record: &mut Record, look: Look) -> Result<(State, Option<String>), ModelError> {
    let path = folder.join(&file.name);
    let unreadable = |source| ModelError::Unreadable { path: path.clone(), source };
    let now = match fs::metadata(&path) {
        Ok(now) => now,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok((State::Missing, Some(format!("{} is not here", file.name))));
        }
        Err(error) => return Err(unreadable(error)),
    };
    if !now.is_file() || now.len() != file.size {
        let problem = format!("{} has {} bytes instead of {}", file.name, now.len(), file.size);
        return Ok((State::Damaged, Some(problem)));
    }
    let known = record.hash_of(&file.name, &now).filter(|_| look != Look::Again).map(str::to_owned);
    let hash = match (known, look) {
        (Some(hash), _) => hash,
        (None, Look::Glance) => return Ok((State::Here, None)),
        (None, Look::Once | Look::Again) => {
            let hash = part::hash_file(&path).map_err(unreadable)?.sha256;
            record.note(&file.name, &now, &hash, None);
            hash
        }
    };
    if hash == file.sha256 {
        return Ok((State::Verified, None));
    }
    Ok((State::Damaged, Some(format!("{} has the wrong SHA-256", file.name))))
}

fn worse(one: State, other: State) -> State {
    let badness = |state| match state {
        State::Verified => 0,
        State::Here => 1,
        State::Missing => 2,
        State::Damaged => 3,
    };
    if badness(other) > badness(one) { other } else { one }
}

/// `first_choice`: the preferred model, where another one had to be taken, and what is wrong with it (`None`: not here).
fn in_use_line(role: Role, name: &str, named: bool, first_choice: Option<&(&str, Option<String>)>) -> String {
    match first_choice {
        Some((first, problem)) => {
            let problem = match problem {
                Some(problem) => format!("cannot be used because {problem}"),
                None => "is not here".to_owned(),
            };
            format!("{role}: {name} (the first choice, {first}, {problem}: `reachy-remembers models fetch {first}`)")
        }
        None if named => format!("{role}: {name} (named in the config)"),
        None => format!("{role}: {name}"),
    }
}

/// The manifest's checks rule this out; said instead of assumed.
pub(super) fn unsound(model: &Model) -> ModelError {
    ModelError::Manifest { line: 1, why: format!("{} lacks a section or a file that its role needs", model.name) }
}

#[cfg(test)]
mod tests;
