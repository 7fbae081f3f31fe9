//! Fetching a shard's snapshot from a Qdrant server, over its documented REST interface.
//!
//! Only the configured address is asked: redirects and proxies are off, and nothing of the memory is sent. First the
//! shard's manifest is read; where it is the one of the last time, nothing else happens. Else the server makes a
//! snapshot (a key that may only read takes the newest that is there), it is fetched within its stated size and its
//! checksum is compared, and the one that was made is deleted again. Whether it may be used is decided by
//! [`super::restore`]. The key is in no log and no error.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::KnowledgeError;
use super::check::MOST_BYTES;
use super::facts::hexadecimal;
use super::snapshot::sorted;
use crate::config::KnowledgeConfig;

/// The snapshot that was fetched and taken, in the memory's folder.
const PULLED: &str = "knowledge.pulled";
/// What is remembered of it, so that nothing is fetched twice.
const STATE: &str = "knowledge.pulled.json";
/// The systemd credential that holds the server's key.
const CREDENTIAL: &str = "knowledge-api-key";
/// To open a connection. Not measured.
const CONNECT: Duration = Duration::from_secs(5);
/// Without a byte for this long a connection counts as broken off. Not measured.
const SILENCE: Duration = Duration::from_secs(30);
/// For everything together; a megabyte at 5 kilobytes a second. Not measured.
const WHOLE: Duration = Duration::from_secs(300);
/// The longest answer that is no snapshot, in bytes.
const LONGEST_ANSWER: usize = 2_000_000;

/// A secret that no log and no error shows.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Where snapshots are fetched from.
#[derive(Clone, Debug)]
pub struct PullSettings {
    /// Base address, as in `https://qdrant.local:6333`.
    pub source: String,
    pub collection: String,
    pub shard: u32,
    pub key: Option<Key>,
    /// `None`: only once.
    pub every: Option<Duration>,
    /// Without a byte for this long a connection counts as broken off.
    pub silence: Duration,
    /// For everything together.
    pub whole: Duration,
}

impl PullSettings {
    /// What the config says; `None` where it names no server.
    ///
    /// # Errors
    /// [`KnowledgeError::Key`] when the key's file cannot be read or is empty.
    pub fn from_config(config: &KnowledgeConfig) -> Result<Option<Self>, KnowledgeError> {
        if config.source.is_empty() {
            return Ok(None);
        }
        let hours = u64::from(config.pull_every_h);
        Ok(Some(Self {
            source: config.source.clone(),
            collection: config.collection.clone(),
            shard: config.shard,
            key: key(&config.api_key_file)?,
            every: (hours > 0).then(|| Duration::from_secs(3_600 * hours)),
            silence: SILENCE,
            whole: WHOLE,
        }))
    }

    fn url(&self, rest: &[&str]) -> Result<Url, PullError> {
        let wrong = |why: String| PullError::Address { source_address: self.source.clone(), why };
        let mut url = Url::parse(&self.source).map_err(|error| wrong(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(PullError::Address {
                source_address: "[knowledge] source".into(),
                why: "a name or password in an address is not used; put the key into `api_key_file`".into(),
            });
        }
        let shard = self.shard.to_string();
        url.path_segments_mut()
            .map_err(|()| wrong("it is no address of a server".into()))?
            .pop_if_empty()
            .extend(["collections", &self.collection, "shards", &shard])
            .extend(rest);
        Ok(url)
    }
}

/// The key in the file, else in the systemd credential, else none.
fn key(file: &Path) -> Result<Option<Key>, KnowledgeError> {
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY")
        .map(|folder| PathBuf::from(folder).join(CREDENTIAL))
        .filter(|path| path.exists());
    let path = if file.as_os_str().is_empty() { credential } else { Some(file.to_owned()) };
    let Some(path) = path else { return Ok(None) };
    let unusable = |why: String| KnowledgeError::Key { path: path.clone(), why };
    let text = crate::config::file::read_text(&path).map_err(|fault| unusable(fault.why))?;
    if text.trim().is_empty() {
        return Err(unusable("it is empty".into()));
    }
    Ok(Some(Key::new(&text)))
}

/// Why nothing was pulled; what was pulled before stays.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The owner must correct it.
    #[error("{source_address} cannot be asked for facts: {why}")]
    Address { source_address: String, why: String },
    /// The owner must correct it.
    #[error("the server refuses the key ({status}): see `api_key_file` in [knowledge]")]
    Denied { status: u16 },
    /// The owner must correct it.
    #[error("the server has no collection `{collection}` with a shard {shard}, or no snapshot of it")]
    Missing { collection: String, shard: u32 },
    /// Try again later.
    #[error("the server with the facts does not answer: {why}")]
    Away { why: String },
    /// Try again later.
    #[error("the server with the facts answered {status}")]
    Status { status: u16 },
    /// Try again later.
    #[error("the server with the facts answered something else than is documented: {why}")]
    Unusable { why: String },
    /// Try again later.
    #[error("the snapshot came broken: {why}")]
    Broken { why: String },
    /// The owner must correct it.
    #[error("the server's snapshot has {bytes} bytes and may have {most}")]
    TooLarge { bytes: u64, most: u64 },
    #[error("{} cannot be written: {source}", path.display())]
    Disk { path: PathBuf, source: std::io::Error },
}

/// What is known of the last snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    source: String,
    collection: String,
    shard: u32,
    /// SHA-256 of the shard's manifest when it was fetched.
    manifest: Option<String>,
    checksum: Option<String>,
    etag: Option<String>,
    name: String,
    /// Whether it was taken into use; one that was refused is not fetched again.
    taken: bool,
}

impl State {
    fn read(folder: &Path, settings: &PullSettings) -> Option<Self> {
        let state: Self = serde_json::from_slice(&fs::read(folder.join(STATE)).ok()?).ok()?;
        let same =
            (&state.source, &state.collection, state.shard) == (&settings.source, &settings.collection, settings.shard);
        // Without the file the state says nothing.
        (same && (!state.taken || folder.join(PULLED).exists())).then_some(state)
    }

    fn write(&self, folder: &Path) -> Result<(), PullError> {
        let path = folder.join(STATE);
        let write = || -> std::io::Result<()> {
            let mut file = NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, self)?;
            file.as_file().sync_all()?;
            file.persist(&path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|source| PullError::Disk { path: path.clone(), source })
    }
}

/// The snapshot that was taken from this server before.
pub(super) fn kept(folder: &Path, settings: &PullSettings) -> Option<PathBuf> {
    let path = folder.join(PULLED);
    (State::read(folder, settings).is_some() && path.exists()).then_some(path)
}

/// What a pull came to.
#[derive(Debug)]
pub enum Pulled {
    /// The server has nothing that was not fetched before.
    Unchanged,
    Fetched(Fetched),
}

/// A snapshot that was fetched whole, not judged yet.
#[derive(Debug)]
pub struct Fetched {
    file: NamedTempFile,
    state: State,
}

impl Fetched {
    /// Where it lies until it is kept or dropped.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Keeps it as the one to be restored at every start.
    ///
    /// # Errors
    /// [`PullError::Disk`].
    pub fn keep(self, folder: &Path) -> Result<PathBuf, PullError> {
        let path = folder.join(PULLED);
        let failed = |source| PullError::Disk { path: path.clone(), source };
        self.file.as_file().sync_all().map_err(failed)?;
        self.file.persist(&path).map_err(|error| failed(error.error))?;
        State { taken: true, ..self.state }.write(folder)?;
        Ok(path)
    }

    /// Remembers that this one is of no use, so that it is not fetched again; the one before stays.
    pub fn refuse(self, folder: &Path) {
        if let Err(error) = (State { taken: false, ..self.state }).write(folder) {
            tracing::warn!(%error, "a refused snapshot will be fetched again");
        }
    }
}

/// A snapshot as the server describes it.
#[derive(Debug, Deserialize)]
struct Description {
    name: String,
    size: u64,
    #[serde(default)]
    creation_time: Option<String>,
    #[serde(default)]
    checksum: Option<String>,
}

#[derive(Deserialize)]
struct Answered<T> {
    result: T,
}

/// Asks the server for what is new. `folder` is the memory's, where the fetched file lies until it is kept.
///
/// # Errors
/// [`PullError`].
pub async fn pull(folder: &Path, settings: &PullSettings) -> Result<Pulled, PullError> {
    let whole = settings.whole;
    let server = Server { client: client(settings)?, settings };
    let late = |_| PullError::Away { why: format!("it took more than {whole:?}") };
    tokio::time::timeout(whole, server.pull(folder)).await.map_err(late)?
}

fn client(settings: &PullSettings) -> Result<Client, PullError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &settings.key {
        let wrong = |_| PullError::Address {
            source_address: settings.source.clone(),
            why: "the key holds characters that no key has".into(),
        };
        let mut value = HeaderValue::from_str(&key.0).map_err(wrong)?;
        value.set_sensitive(true);
        headers.insert("api-key", value);
    }
    Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(settings.silence)
        .redirect(Policy::none())
        .no_proxy()
        .default_headers(headers)
        .user_agent(concat!("reachy-remembers/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| PullError::Unusable { why: deepest(&error) })
}

struct Server<'a> {
    client: Client,
    settings: &'a PullSettings,
}

impl Server<'_> {
    async fn pull(&self, folder: &Path) -> Result<Pulled, PullError> {
        let last = State::read(folder, self.settings);
        let manifest = self.manifest().await?;
        if let (Some(last), Some(_)) = (&last, &manifest)
            && last.manifest == manifest
        {
            return Ok(Pulled::Unchanged);
        }
        let (snapshot, made) = self.newest().await?;
        let fetched = self.fetch(folder, &snapshot, last.as_ref(), manifest).await;
        if made {
            // One that stays there costs the server a megabyte and nobody else anything.
            let name = snapshot.name.as_str();
            if let Err(error) = self.ask(Method::DELETE, &["snapshots", name], &[]).await {
                tracing::debug!(%error, "a snapshot stays on the server");
            }
        }
        fetched
    }

    /// SHA-256 of what the shard consists of; `None` from a server that does not tell.
    async fn manifest(&self) -> Result<Option<String>, PullError> {
        match self.json::<Value>(Method::GET, &["snapshot", "partial", "manifest"]).await {
            Ok(manifest) => Ok(Some(hexadecimal(&Sha256::digest(sorted(manifest).to_string())))),
            Err(PullError::Missing { .. } | PullError::Status { status: 403 | 405 }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// A snapshot of the shard as it is now, and whether it was made for us.
    async fn newest(&self) -> Result<(Description, bool), PullError> {
        match self.json::<Description>(Method::POST, &["snapshots"]).await {
            Ok(made) => return Ok((plain(made)?, true)),
            // A key that may only read.
            Err(PullError::Status { status: 403 | 405 }) => {}
            Err(other) => return Err(other),
        }
        let there = self.json::<Vec<Description>>(Method::GET, &["snapshots"]).await?;
        let newest = there.into_iter().max_by(|a, b| a.creation_time.cmp(&b.creation_time));
        Ok((plain(newest.ok_or_else(|| self.missing())?)?, false))
    }

    async fn fetch(
        &self,
        folder: &Path,
        snapshot: &Description,
        last: Option<&State>,
        manifest: Option<String>,
    ) -> Result<Pulled, PullError> {
        let unchanged = |last: &State| {
            // The manifest is another one and the content is not: from now on the new one is known.
            State { manifest: manifest.clone(), ..last.clone() }.write(folder).map(|()| Pulled::Unchanged)
        };
        if let Some(last) = last
            && last.checksum.is_some()
            && last.checksum == snapshot.checksum
        {
            return unchanged(last);
        }
        if snapshot.size > MOST_BYTES {
            return Err(PullError::TooLarge { bytes: snapshot.size, most: MOST_BYTES });
        }
        let etag = last.filter(|last| last.name == snapshot.name).and_then(|last| last.etag.as_deref());
        let headers: Vec<_> = etag.map(|etag| (header::IF_NONE_MATCH, etag)).into_iter().collect();
        let mut response = self.ask(Method::GET, &["snapshots", &snapshot.name], &headers).await?;
        if response.status() == StatusCode::NOT_MODIFIED
            && let Some(last) = last
        {
            return unchanged(last);
        }
        let etag = response.headers().get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        let file = stream(folder, &mut response, snapshot).await?;
        let PullSettings { source, collection, shard, .. } = self.settings;
        let state = State {
            source: source.clone(),
            collection: collection.clone(),
            shard: *shard,
            manifest,
            checksum: snapshot.checksum.clone(),
            etag,
            name: snapshot.name.clone(),
            taken: false,
        };
        Ok(Pulled::Fetched(Fetched { file, state }))
    }

    fn missing(&self) -> PullError {
        PullError::Missing { collection: self.settings.collection.clone(), shard: self.settings.shard }
    }

    /// The `result` of a JSON answer.
    async fn json<T: for<'de> Deserialize<'de>>(&self, method: Method, rest: &[&str]) -> Result<T, PullError> {
        let mut response = self.ask(method, rest, &[]).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| away(&error))? {
            if body.len() + chunk.len() > LONGEST_ANSWER {
                return Err(PullError::Unusable { why: format!("more than {LONGEST_ANSWER} bytes") });
            }
            body.extend_from_slice(&chunk);
        }
        let answered: Result<Answered<T>, _> = serde_json::from_slice(&body);
        answered.map(|answered| answered.result).map_err(|error| PullError::Unusable { why: error.to_string() })
    }

    /// An answer that is good, or 304.
    async fn ask(
        &self,
        method: Method,
        rest: &[&str],
        headers: &[(header::HeaderName, &str)],
    ) -> Result<Response, PullError> {
        let mut url = self.settings.url(rest)?;
        if method != Method::GET {
            // Answered only when it is done.
            url.set_query(Some("wait=true"));
        }
        let mut request = self.client.request(method, url);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let response = request.send().await.map_err(|error| away(&error))?;
        match response.status() {
            status if status.is_success() || status == StatusCode::NOT_MODIFIED => Ok(response),
            StatusCode::UNAUTHORIZED => Err(PullError::Denied { status: 401 }),
            StatusCode::NOT_FOUND => Err(self.missing()),
            status if status.is_redirection() => {
                Err(PullError::Unusable { why: "it sends us to another address, which is not followed".into() })
            }
            status => Err(PullError::Status { status: status.as_u16() }),
        }
    }
}

/// Writes the body beside the memory, never more than the server said, and compares its checksum.
async fn stream(folder: &Path, response: &mut Response, snapshot: &Description) -> Result<NamedTempFile, PullError> {
    let failed = |source| PullError::Disk { path: folder.to_owned(), source };
    let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    while let Some(chunk) = response.chunk().await.map_err(|error| PullError::Broken { why: deepest(&error) })? {
        bytes += chunk.len() as u64;
        if bytes > snapshot.size {
            return Err(PullError::Broken { why: format!("more comes than the {} bytes it has", snapshot.size) });
        }
        hash.update(&chunk);
        // A chunk is some ten kilobytes, which the system's cache takes at once.
        file.write_all(&chunk).map_err(failed)?;
    }
    if bytes < snapshot.size {
        return Err(PullError::Broken { why: format!("it ended after {bytes} of {} bytes", snapshot.size) });
    }
    let sha256 = hexadecimal(&hash.finalize());
    match &snapshot.checksum {
        Some(checksum) if !checksum.eq_ignore_ascii_case(&sha256) => {
            Err(PullError::Broken { why: "its checksum is another than the server said".into() })
        }
        _ => Ok(file),
    }
}

/// A snapshot's name becomes part of an address, so it must be a file's name.
fn plain(snapshot: Description) -> Result<Description, PullError> {
    let name = &snapshot.name;
    if name.is_empty() || name.len() > 255 || name.starts_with('.') || name.contains(['/', '\\']) {
        return Err(PullError::Unusable { why: "a snapshot's name is no file's name".into() });
    }
    Ok(snapshot)
}

fn away(error: &reqwest::Error) -> PullError {
    PullError::Away { why: deepest(error) }
}

/// The innermost reason, which is the one that an owner can act on. It holds no address and so no secret.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
