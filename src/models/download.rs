//! One file over HTTP: resumed where it broke off, hashed as it comes, never more than its size.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{self, HeaderMap};
use reqwest::{Client, Response, StatusCode};
use tokio::sync::mpsc;

use super::part::{self, Target, Written};
use super::sources::Token;
use super::{ModelError, Progress, SourceError};

/// To open a connection; a hub that is not there must not hold up the fetch. Not measured.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Without a byte for this long a connection counts as broken off. Not measured.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// A file is gone on with this many times in one fetch. Not measured.
const ATTEMPTS: u32 = 5;
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Chunks (of at most some ten kilobytes) that may wait for the disk.
const WAITING_CHUNKS: usize = 32;

/// What makes the connections.
pub(super) fn client() -> Result<Client, ModelError> {
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_TIMEOUT)
        .user_agent(concat!("reachy-remembers/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| ModelError::Client { why: deepest(&error) })
}

/// How one attempt ended, when it did not bring the file.
enum Broken {
    /// Worth going on from what is there.
    Off(String),
    /// Not worth another attempt at this source.
    For(SourceError),
}

impl From<SourceError> for Broken {
    fn from(error: SourceError) -> Self {
        Self::For(error)
    }
}

/// Brings `address` to `target`, under its final name and with the right hash.
///
/// The token goes to the first server only: a redirect to another one drops it.
pub(super) async fn download(
    client: &Client,
    address: &str,
    token: Option<&Token>,
    target: &Target,
    progress: &mut dyn Progress,
) -> Result<(), SourceError> {
    let folder = target.path.parent().unwrap_or(Path::new("."));
    part::check_room(folder, &target.file, target.size.saturating_sub(target.kept()))?;
    let mut resumed_wrongly = false;
    let mut attempts = 0;
    loop {
        let start = resume_point(target);
        attempts += 1;
        let why = match attempt(client, address, token, target, start, progress).await {
            Ok(written) => match finish(target, written).await {
                // A part from another version of the file can only be noticed here; a whole download cannot be better.
                Err(SourceError::Hash { .. }) if start > 0 && !resumed_wrongly => {
                    resumed_wrongly = true;
                    continue;
                }
                done => return done,
            },
            Err(Broken::For(error)) => return Err(error),
            Err(Broken::Off(why)) => why,
        };
        if attempts == ATTEMPTS {
            let (file, got, size) = (target.file.clone(), target.kept(), target.size);
            return Err(SourceError::Cut { file, got, size, attempts, why });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How much of the part can be gone on from; what cannot is thrown away.
fn resume_point(target: &Target) -> u64 {
    let kept = target.kept();
    if kept > target.size {
        target.discard();
        return 0;
    }
    kept
}

async fn finish(target: &Target, written: Written) -> Result<(), SourceError> {
    let target = target.clone();
    blocking(move || target.finish(&written)).await?
}

async fn attempt(
    client: &Client,
    address: &str,
    token: Option<&Token>,
    target: &Target,
    start: u64,
    progress: &mut dyn Progress,
) -> Result<Written, Broken> {
    if start == target.size {
        return write(target, start, None, progress).await;
    }
    let response = request(client, address, token, target, start).await?;
    let start = accepted_start(&response, target, start)?;
    if let Some(rest) = response.content_length()
        && start + rest != target.size
    {
        let error = SourceError::Size { file: target.file.clone(), found: start + rest, size: target.size };
        return Err(error.into());
    }
    remember_version(target, start, response.headers())?;
    let written = write(target, start, Some(response), progress).await?;
    if written.bytes < target.size {
        return Err(Broken::Off(format!("it ended after {} bytes", written.bytes)));
    }
    Ok(written)
}

async fn request(
    client: &Client,
    address: &str,
    token: Option<&Token>,
    target: &Target,
    start: u64,
) -> Result<Response, Broken> {
    let mut request = client.get(address);
    if let Some(token) = token {
        request = request.bearer_auth(&token.0);
    }
    if start > 0 {
        request = request.header(header::RANGE, format!("bytes={start}-"));
        if let Ok(version) = fs::read_to_string(&target.etag) {
            request = request.header(header::IF_RANGE, version);
        }
    }
    request.send().await.map_err(|error| {
        // Without an answer within the time of silence there is nobody, even if something took the connection.
        if error.is_connect() || error.is_timeout() {
            Broken::For(SourceError::Unreachable { why: deepest(&error) })
        } else if error.is_builder() || error.is_redirect() {
            Broken::For(SourceError::Address { why: deepest(&error.without_url()) })
        } else {
            Broken::Off(deepest(&error))
        }
    })
}

/// From which byte on the answer brings the file: where we asked for, or 0 when the server sends it whole.
fn accepted_start(response: &Response, target: &Target, asked: u64) -> Result<u64, Broken> {
    let (file, code) = (target.file.clone(), response.status());
    let status = code.as_u16();
    match code {
        StatusCode::OK => Ok(0),
        StatusCode::PARTIAL_CONTENT if asked > 0 && range_start(response.headers()) == Some(asked) => Ok(asked),
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if asked > 0 => {
            target.discard();
            Err(Broken::Off("it did not go on where we stopped".into()))
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(SourceError::Missing { file }.into()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(SourceError::Denied { file, status }.into()),
        StatusCode::TOO_MANY_REQUESTS => Err(Broken::Off("it asks us to wait".into())),
        _ if code.is_server_error() => Err(Broken::Off(format!("status {status}"))),
        _ => Err(SourceError::Status { file, status }.into()),
    }
}

/// The first byte of `Content-Range: bytes 5-9/10`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

/// Keeps the server's name for this version beside the part, so that only the same version is gone on with.
fn remember_version(target: &Target, start: u64, headers: &HeaderMap) -> Result<(), SourceError> {
    if start > 0 {
        return Ok(());
    }
    target.discard();
    let version = headers.get(header::ETAG).and_then(|version| version.to_str().ok());
    match version.filter(|version| !version.starts_with("W/")) {
        Some(version) => fs::write(&target.etag, version).map_err(|error| target.disk(error)),
        None => Ok(()),
    }
}

/// Passes the answer to a thread that hashes and writes; what came before a break stays in the part.
async fn write(
    target: &Target,
    start: u64,
    response: Option<Response>,
    progress: &mut dyn Progress,
) -> Result<Written, Broken> {
    let (sender, mut receiver) = mpsc::channel(WAITING_CHUNKS);
    let writing = {
        let target = target.clone();
        tokio::task::spawn_blocking(move || target.append(start, &mut receiver))
    };
    let mut broken = None;
    if let Some(mut response) = response {
        let mut bytes = start;
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(error) => {
                    broken = Some(Broken::Off(deepest(&error)));
                    break;
                }
            };
            bytes += chunk.len() as u64;
            if bytes > target.size {
                let error = SourceError::Size { file: target.file.clone(), found: bytes, size: target.size };
                broken = Some(error.into());
                break;
            }
            // A writer that has stopped says why below.
            if sender.send(chunk).await.is_err() {
                break;
            }
            progress.at(bytes);
        }
    }
    drop(sender);
    let written = writing.await.map_err(|error| SourceError::Local(ModelError::Client { why: error.to_string() }))?;
    match broken {
        Some(Broken::For(error)) => {
            target.discard();
            Err(Broken::For(error))
        }
        Some(off) => Err(off),
        None => Ok(written?),
    }
}

/// Runs what blocks away from the threads that serve connections.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ModelError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| ModelError::Client { why: error.to_string() })
}

/// The innermost reason, which is the one that an owner can act on.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
