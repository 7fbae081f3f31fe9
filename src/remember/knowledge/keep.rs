//! Keeping the facts up to date: what is restored at a start, and what happens from then on in the background.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use super::build;
use super::facts::Facts;
use super::pull::{self, Fetched, PullError, Pulled};
use super::restore::{self, RestoreError};
use super::snapshot::Label;
use super::{BEFORE, BUILT, Inner, NEW, PART, SHARD, Shard, check};
use crate::remember::folder;

/// How often the files are looked at for a change.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What the background has to know of the start.
#[derive(Default)]
pub struct Kept {
    /// The facts must be embedded.
    build: bool,
    /// The files that were taken or refused, as they were then.
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

impl Kept {
    /// The file is as it should be now.
    fn has_seen(&mut self, file: PathBuf) {
        let now = stamp(&file);
        self.seen.retain(|(path, _)| *path != file);
        self.seen.push((file, now));
    }
}

/// Size and time of a file.
type Stamp = (u64, SystemTime);

fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?))
}

impl Inner {
    /// Restores the newest good snapshot. Blocks. Answers what the owner must read, and what is left to do.
    pub(super) fn restore(&self) -> (Vec<String>, Kept) {
        let mut notes = Vec::new();
        if let Err(error) = self.recover() {
            notes.push(format!("The facts of the last start could not be put back: {error}"));
        }
        let files = self.files();
        let mut kept = Kept { build: false, seen: files.iter().map(|file| (file.clone(), stamp(file))).collect() };
        for file in files.into_iter().filter(|file| file.exists()) {
            match self.install(&file) {
                Ok(label) => {
                    self.tell(&notes, &label, &file);
                    return (notes, kept);
                }
                Err(error) => notes.push(refused(&file, &error)),
            }
        }
        kept.build = !self.fall_back(&mut notes);
        (notes, kept)
    }

    /// The snapshots that go before the facts, in their order.
    fn files(&self) -> Vec<PathBuf> {
        let pulled = self.settings.pull.as_ref().and_then(|settings| pull::kept(&self.settings.folder, settings));
        let named = (!self.settings.snapshot.as_os_str().is_empty()).then(|| self.settings.snapshot.clone());
        pulled.into_iter().chain(named).collect()
    }

    /// The last good shard, or what was built here before. Answers whether nothing is left to be embedded.
    fn fall_back(&self, notes: &mut Vec<String>) -> bool {
        let facts = match self.facts() {
            Ok(facts) => facts,
            Err(error) => {
                notes.push(format!("The facts cannot be read: {error}"));
                if !self.keep_last(notes, |_| true) {
                    self.health.set(PART, false, notes.join(" "));
                    self.set_none(error.to_string());
                }
                return true;
            }
        };
        let is_of_them = |label: &Label| label.facts_sha256.as_ref() == Some(&facts.sha256);
        // A file that was refused leaves the one before it in use, whatever it was made of; without any file, only
        // what was made of these facts is good.
        let refused = !notes.is_empty();
        if self.keep_last(notes, |label| refused || is_of_them(label)) {
            return true;
        }
        let built = self.path(BUILT);
        let is_good = check::check(&built).is_ok_and(|built| built.label.as_ref().is_some_and(is_of_them));
        if is_good && let Ok(label) = self.install(&built) {
            self.tell(notes, &label, &built);
            return true;
        }
        // Old facts are better than none while the new ones are embedded.
        if !self.keep_last(notes, |_| true) {
            self.health.set(PART, false, "the facts are being embedded, which takes some seconds");
        }
        false
    }

    /// Opens the last good shard where it is `good`.
    fn keep_last(&self, notes: &[String], good: impl Fn(&Label) -> bool) -> bool {
        let live = self.path(SHARD);
        if !restore::label(&live).is_some_and(|label| good(&label)) {
            return false;
        }
        let mut shard = self.shard.write().unwrap_or_else(PoisonError::into_inner);
        match self.open_live(&mut shard) {
            Ok(Some(label)) => {
                drop(shard);
                self.tell(notes, &label, &live);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::info!(%error, "the facts of the last start are not taken");
                false
            }
        }
    }

    /// A process that died between the two renames of a swap left the old shard aside.
    fn recover(&self) -> Result<(), folder::FolderError> {
        let (live, before) = (self.path(SHARD), self.path(BEFORE));
        if before.exists() && !live.exists() { folder::rename(&before, &live) } else { Ok(()) }
    }

    fn tell(&self, notes: &[String], label: &Label, from: &Path) {
        let state = format!("{} facts from {}", label.facts, from.display());
        match notes.last() {
            Some(note) => self.health.set(PART, false, format!("{state}. {note}")),
            None => self.health.set(PART, true, state),
        }
    }

    /// Embeds the facts and takes them into use. Blocks for seconds.
    fn build(&self) {
        let outcome = self.facts().map_err(|error| error.to_string()).and_then(|facts| self.build_of(&facts));
        match outcome {
            Ok(label) => self.tell(&[], &label, &self.path(BUILT)),
            Err(why) => {
                self.health.set(PART, false, format!("the facts could not be embedded: {why}"));
                self.set_none(why);
            }
        }
    }

    fn build_of(&self, facts: &Facts) -> Result<Label, String> {
        self.workshop().room(&self.settings.folder, build::MOST_BUILT).map_err(|error| error.to_string())?;
        let built = self.path(BUILT);
        build::build(facts, self.embedder.as_ref(), &built, &mut |_| {}).map_err(|error| error.to_string())?;
        self.install(&built).map_err(|error| error.to_string())
    }

    /// Takes a file that has changed since it was last looked at. Blocks.
    fn look_again(&self, kept: &mut Kept) {
        for file in self.files() {
            let now = stamp(&file);
            let before = kept.seen.iter().find(|(path, _)| *path == file).map(|(_, before)| *before);
            kept.has_seen(file.clone());
            if now.is_none() {
                continue;
            }
            // One that is as it was goes before those after it.
            if before == Some(now) {
                return;
            }
            match self.install(&file) {
                Ok(label) => self.tell(&[], &label, &file),
                Err(error) => {
                    let note = refused(&file, &error);
                    tracing::warn!("{note}");
                    self.health.set(PART, false, note);
                }
            }
            return;
        }
    }
}

fn refused(file: &Path, error: &RestoreError) -> String {
    format!("The facts in {} were not taken: {error}. The last good ones stay in use.", file.display())
}

/// Runs until nobody holds the knowledge any more.
pub async fn keep(inner: Weak<Inner>, mut kept: Kept) {
    if std::mem::take(&mut kept.build) {
        blocking(&inner, |inner| inner.build()).await;
    }
    let mut next_pull = Some(Instant::now());
    loop {
        let Some(settings) = inner.upgrade().map(|inner| inner.settings.clone()) else { return };
        if let Some(from) = &settings.pull
            && next_pull.is_some_and(|next| next <= Instant::now())
        {
            next_pull = from.every.map(|every| Instant::now() + every);
            let pulled = pull::pull(&settings.folder, from).await;
            if let Some(Some(taken)) = blocking(&inner, |inner| inner.take_pulled(pulled)).await {
                kept.has_seen(taken);
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
        let looked = blocking(&inner, move |inner| {
            inner.look_again(&mut kept);
            kept
        });
        match looked.await {
            Some(looked) => kept = looked,
            None => return,
        }
    }
}

impl Inner {
    /// Where the snapshot is kept that was taken, if one was.
    fn take_pulled(&self, pulled: Result<Pulled, PullError>) -> Option<PathBuf> {
        let fetched = match pulled {
            Ok(Pulled::Unchanged) => return None,
            Ok(Pulled::Fetched(fetched)) => fetched,
            Err(error) => {
                tracing::warn!(%error, "the facts could not be pulled");
                let facts = matches!(*self.shard.read().unwrap_or_else(PoisonError::into_inner), Shard::Open(_));
                self.health.set(PART, facts, format!("{error}; the last good facts stay in use"));
                return None;
            }
        };
        match self.install_pulled(fetched) {
            Ok((label, path)) => {
                self.tell(&[], &label, &path);
                Some(path)
            }
            Err(why) => {
                tracing::warn!("{why}");
                self.health.set(PART, false, why);
                None
            }
        }
    }

    /// Takes a fetched snapshot into use. It is kept before it is, so that the next start does not go back behind it.
    fn install_pulled(&self, fetched: Fetched) -> Result<(Label, PathBuf), String> {
        let _turn = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = match self.workshop().prepare(fetched.path(), &self.path(NEW)) {
            Ok(prepared) => prepared,
            Err(error) => {
                fetched.refuse(&self.settings.folder);
                return Err(refused(Path::new("the server's snapshot"), &error));
            }
        };
        let path = fetched.keep(&self.settings.folder).map_err(|error| error.to_string())?;
        let label = self.swap(prepared).map_err(|error| refused(&path, &error))?;
        Ok((label, path))
    }
}

/// Runs what blocks away from the threads that serve connections; `None` when nobody holds the knowledge any more.
async fn blocking<T: Send + 'static>(
    inner: &Weak<Inner>,
    work: impl FnOnce(&Inner) -> T + Send + 'static,
) -> Option<T> {
    let inner = inner.upgrade()?;
    tokio::task::spawn_blocking(move || work(&inner)).await.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, RwLock};

    use super::*;
    use crate::health::Health;
    use crate::remember::embed::EmbedText;
    use crate::remember::embed::stand_in::StandIn;
    use crate::remember::knowledge::Settings;
    use crate::remember::knowledge::rivals::Rivals;

    fn write(path: &Path, text: &str) {
        let words = format!(
            "[[fact]]\nkey = \"tea\"\ntext = \"{text}\"\nquestions = [\"Where is the tea?\", \"Is there tea?\", \"Tea?\"]"
        );
        let facts = Facts::parse(&words, "").unwrap();
        build::build(&facts, &StandIn::new(), path, &mut |_| {}).unwrap();
    }

    fn told(inner: &Inner) -> String {
        let question = StandIn::new().question("Where is the tea?").unwrap();
        inner.recall("", question).unwrap().facts.remove(0).text
    }

    #[test]
    fn a_snapshot_that_changes_is_taken_and_one_that_becomes_bad_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = folder.path().join("file");
        let settings = Settings {
            folder: folder.path().to_owned(),
            facts: PathBuf::new(),
            snapshot: snapshot.clone(),
            gate: 0.6,
            limit: 1,
            min_free_bytes: 0,
            search_threads: 1,
            pull: None,
        };
        let inner = Inner {
            settings,
            embedder: Arc::new(StandIn::new()),
            rivals: Rivals::default(),
            shard: RwLock::new(Shard::None { why: String::new() }),
            changing: Mutex::new(()),
            health: Arc::new(Health::default()),
        };
        write(&snapshot, "On the shelf.");
        let (notes, mut kept) = inner.restore();
        assert!(notes.is_empty() && told(&inner) == "On the shelf.", "{notes:?}");
        write(&snapshot, "In the cupboard.");
        inner.look_again(&mut kept);
        assert_eq!(told(&inner), "In the cupboard.");
        std::fs::write(&snapshot, b"nonsense").unwrap();
        inner.look_again(&mut kept);
        assert_eq!(told(&inner), "In the cupboard.");
        assert!(inner.health.parts()[0].what.contains("were not taken"));
        // Not tried again until it changes once more.
        inner.health.set(PART, true, "as before");
        inner.look_again(&mut kept);
        assert_eq!(inner.health.parts()[0].what, "as before");
    }
}
