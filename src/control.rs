//! The Unix socket on which commands ask the running service; the folder's owner alone may open it (0600).
//!
//! A command never opens a live shard: merely trying would damage it. It asks here instead, one JSON line each way.
//! When nobody listens, the command may take the folder's lock and open the shard itself.

mod people;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use uuid::Uuid;

use crate::clock::Clock;
use crate::health::{Health, PartHealth};
use crate::remember::{Exchange, Memory, People, Query, Recalled, SeenFrame, Stats, TimeRange, journal};
use crate::robot::Direction;
use crate::think::tools::About;
use crate::think::when::{self, When};
pub use people::{PersonCard, PersonChange, PersonEntry, PersonReport, Reword, Window};

const SOCKET: &str = "control.sock";
/// The longest request or answer, in bytes; a search answers with some kilobytes.
const LONGEST_LINE: u64 = 4 * 1024 * 1024;
/// A command waits this long for its answer. A search takes milliseconds; the model may have to load first.
const PATIENCE: Duration = Duration::from_secs(30);
/// And this long where the whole memory is read or built anew. Not measured on the robot: 10,000 pictures are 600 MB, and
/// slow SD cards write some megabytes a second.
const LONG_PATIENCE: Duration = Duration::from_secs(30 * 60);

/// What a command asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    Health,
    MemoryStats,
    MemorySearch {
        question: String,
        /// A person's words for a time, as in "this morning".
        #[serde(default)]
        when: Option<String>,
    },
    /// What was said and seen in a time, in order.
    MemoryShow {
        /// A person's words for a time; none: everything.
        #[serde(default)]
        when: Option<String>,
    },
    /// One frame's picture, by the identity that [`Response::MemoryShow`] gave.
    FramePicture {
        id: Uuid,
    },
    /// Everybody who is known.
    PeopleList,
    PersonShow {
        name: String,
    },
    /// What a change would do.
    PersonWould {
        change: PersonChange,
    },
    PersonChange {
        change: PersonChange,
    },
}

impl Request {
    /// How long its answer may take.
    fn patience(&self) -> Duration {
        match self {
            Self::PersonShow { .. } | Self::PersonWould { .. } | Self::PersonChange { .. } => LONG_PATIENCE,
            _ => PATIENCE,
        }
    }
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Response {
    Health {
        parts: Vec<PartHealth>,
    },
    MemoryStats(Stats),
    MemorySearch(SearchAnswer),
    MemoryShow {
        entries: Vec<Entry>,
    },
    FramePicture {
        jpeg: String,
    },
    People {
        people: Vec<PersonEntry>,
    },
    Person(PersonCard),
    PersonReport(PersonReport),
    /// It could not; the sentence says why.
    CouldNot {
        why: String,
    },
}

/// A search's answer as commands print it. "Nothing found" is an empty list; "could not look" is
/// [`Response::CouldNot`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchAnswer {
    pub memories: Vec<FoundMemory>,
    /// The question named nothing to look for, so the time alone chose the memories.
    pub by_time_alone: bool,
    /// How many memories were compared or lay in the time that was asked about.
    pub searched: Option<usize>,
    /// The best score that did not pass the gate.
    pub best_below_gate: Option<f32>,
    pub gate: f32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundMemory {
    pub text: String,
    pub speaker: Option<String>,
    /// Unix seconds.
    pub said_at: i64,
    pub score: Option<f32>,
    /// Still in the conversation, not in the memory yet.
    pub just_said: bool,
}

/// One memory in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Unix seconds.
    pub at: i64,
    pub what: Happened,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happened {
    Said {
        speaker: Option<String>,
        heard: String,
        answered: String,
    },
    Seen {
        id: Uuid,
        looked: Direction,
        sentence: String,
        labels: Vec<String>,
        names: Vec<String>,
        caption: Option<String>,
    },
}

/// Answers requests: in the service behind the socket, and in a command that has the folder for itself.
#[derive(Clone)]
pub struct Desk {
    pub memory: Result<Memory, String>,
    /// The memory's folder, whose journal holds what is still in the window.
    pub folder: PathBuf,
    pub clock: Clock,
    pub health: Arc<Health>,
    /// `None`: nobody was ever introduced.
    pub people: Result<Option<People>, String>,
    /// Where the conversation changes its window and journal; `None` where this process has no conversation, and the
    /// journal is a file that nobody else has open.
    pub window: Option<Window>,
}

impl Desk {
    /// Answers one request.
    pub async fn answer(&self, request: Request) -> Response {
        let could_not = |why: String| Response::CouldNot { why };
        let about_people = match request {
            Request::PeopleList => self.people_list().await,
            Request::PersonShow { name } => self.person_show(&name).await,
            Request::PersonWould { change } => self.person_would(&change).await,
            Request::PersonChange { change } => self.person_change(change).await,
            other => return self.answer_about_memory(other).await,
        };
        about_people.unwrap_or_else(could_not)
    }

    async fn answer_about_memory(&self, request: Request) -> Response {
        let could_not = |why: String| Response::CouldNot { why };
        let memory = match (&request, &self.memory) {
            (Request::Health, _) => return Response::Health { parts: self.health.parts() },
            (_, Ok(memory)) => memory,
            (_, Err(why)) => return could_not(why.clone()),
        };
        match request {
            Request::Health => Response::Health { parts: self.health.parts() },
            Request::MemoryStats => {
                memory.stats().await.map_or_else(|error| could_not(error.to_string()), Response::MemoryStats)
            }
            Request::MemoryShow { when } => match self.show(memory, when.as_deref()).await {
                Ok(entries) => Response::MemoryShow { entries },
                Err(why) => could_not(why),
            },
            Request::FramePicture { id } => match memory.pictures(vec![id]).await {
                Ok(frames) => match frames.first() {
                    Some(frame) => Response::FramePicture { jpeg: STANDARD.encode(&frame.jpeg) },
                    None => could_not("there is no such picture".into()),
                },
                Err(error) => could_not(error.to_string()),
            },
            Request::MemorySearch { question, when } => match self.search(memory, question, when).await {
                Ok(answer) => Response::MemorySearch(answer),
                Err(why) => could_not(why),
            },
            _ => could_not("that is nothing that the memory is asked".into()),
        }
    }

    /// What is still in the conversation's window, or was when its process ended.
    fn just_said(&self) -> Vec<Exchange> {
        journal::peek(&self.folder)
    }

    /// A person's words for a time as a range.
    fn range(&self, words: &str) -> Result<TimeRange, String> {
        match when::resolve(words, &self.clock.now_here()) {
            When::Range(range) => Ok(range),
            When::WhileAway | When::Unknown => {
                Err(format!("`{words}` is no time that I understand; try \"today\", \"yesterday\" or \"this morning\""))
            }
        }
    }

    async fn show(&self, memory: &Memory, when: Option<&str>) -> Result<Vec<Entry>, String> {
        let when = when.map(|words| self.range(words)).transpose()?;
        let mut said = memory.exchanges(when).await.map_err(|error| error.to_string())?;
        let stored: Vec<Uuid> = said.iter().map(Exchange::id).collect();
        said.extend(self.just_said().into_iter().filter(|exchange| {
            !stored.contains(&exchange.id()) && when.is_none_or(|range| range.contains(exchange.said_at))
        }));
        let seen = memory.frames(when).await.map_err(|error| error.to_string())?;
        let said = said.into_iter().map(|exchange| Entry {
            at: exchange.said_at.as_second(),
            what: Happened::Said { speaker: exchange.speaker, heard: exchange.heard, answered: exchange.said },
        });
        let seen = seen.into_iter().map(|frame| Entry {
            at: frame.seen_at.as_second(),
            what: Happened::Seen {
                id: frame.id(),
                looked: frame.looked,
                sentence: frame.sentence,
                labels: frame.labels,
                names: frame.names,
                caption: frame.caption,
            },
        });
        let mut entries: Vec<Entry> = said.chain(seen).collect();
        entries.sort_by_key(|entry| entry.at);
        Ok(entries)
    }

    async fn search(&self, memory: &Memory, question: String, when: Option<String>) -> Result<SearchAnswer, String> {
        let now = self.clock.now_here();
        let when = match when.as_deref() {
            Some(words) => Some(self.range(words)?),
            None => match when::find_in(&question, &now) {
                Some((When::Range(range), _)) => Some(range),
                _ => None,
            },
        };
        let (about, direction, just_said) = (About::Any, None, self.just_said());
        let query = Query { text: question, about, when, direction, just_said, now: now.timestamp() };
        let recalled = memory.recall(query).await.map_err(|error| error.to_string())?;
        let gate = memory.exchange_gate();
        let found = |memories: Vec<crate::remember::Remembered>| {
            memories
                .into_iter()
                .map(|memory| FoundMemory {
                    text: memory.text,
                    speaker: memory.exchange.speaker,
                    said_at: memory.exchange.said_at.as_second(),
                    score: memory.score,
                    just_said: memory.just_said,
                })
                .collect()
        };
        let empty =
            SearchAnswer { memories: Vec::new(), by_time_alone: false, searched: None, best_below_gate: None, gate };
        Ok(match recalled {
            Recalled::Found { memories } => SearchAnswer { memories: found(memories), ..empty },
            Recalled::Sampled { memories, of } => {
                SearchAnswer { memories: found(memories), by_time_alone: true, searched: Some(of), ..empty }
            }
            Recalled::Seen { frames, .. } => {
                SearchAnswer { memories: frames.into_iter().map(found_frame).collect(), ..empty }
            }
            Recalled::Person(known) => SearchAnswer { memories: found(known.exchanges), ..empty },
            Recalled::NeverMet { .. } => empty,
            Recalled::Away(away) => SearchAnswer {
                memories: away.frames.into_iter().map(found_frame).collect(),
                by_time_alone: true,
                searched: Some(away.of),
                ..empty
            },
            // Facts are no memory; this asks the memory alone.
            Recalled::Facts { .. } => empty,
            Recalled::Nothing { searched, best } => {
                SearchAnswer { searched: Some(searched), best_below_gate: best, ..empty }
            }
        })
    }
}

fn found_frame(seen: SeenFrame) -> FoundMemory {
    FoundMemory {
        text: seen.frame.words(),
        speaker: None,
        said_at: seen.frame.seen_at.as_second(),
        score: seen.score,
        just_said: false,
    }
}

/// Why the socket could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("the control socket {} cannot be made: {source}", path.display())]
    Bind { path: PathBuf, source: io::Error },
    #[error("the running service did not answer on {}: {why}", path.display())]
    NoAnswer { path: PathBuf, why: String },
}

/// Opens the socket in the memory's folder. Only the holder of the folder's lock may call this: what stands there is
/// then left over from a process that is gone, and is replaced.
///
/// # Errors
/// [`ControlError::Bind`].
pub fn bind(folder: &Path) -> Result<UnixListener, ControlError> {
    let path = folder.join(SOCKET);
    let fail = |source| ControlError::Bind { path: path.clone(), source };
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let listener = UnixListener::bind(&path).map_err(fail)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

/// Answers on the socket until the task is dropped. A caller that sends nonsense is told so; one that says nothing is
/// dropped after [`PATIENCE`].
pub async fn serve(listener: UnixListener, desk: Desk) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let desk = desk.clone();
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, desk).await {
                        tracing::debug!(%error, "a command went away");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the control socket failed to accept");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

async fn converse(stream: UnixStream, desk: Desk) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    tokio::time::timeout(PATIENCE, BufReader::new(read.take(LONGEST_LINE)).read_line(&mut line)).await??;
    let response = match serde_json::from_str::<Request>(&line) {
        Ok(request) => tokio::time::timeout(request.patience(), desk.answer(request)).await?,
        Err(error) => Response::CouldNot { why: format!("the request was not understood: {error}") },
    };
    let mut answer = serde_json::to_vec(&response)?;
    answer.push(b'\n');
    tokio::time::timeout(PATIENCE, write.write_all(&answer)).await?
}

/// Asks the service that runs on `folder`; `None` where none does.
///
/// # Errors
/// [`ControlError::NoAnswer`] when somebody listens and does not answer.
pub async fn ask(folder: &Path, request: &Request) -> Result<Option<Response>, ControlError> {
    let path = folder.join(SOCKET);
    let no_answer = |why: String| ControlError::NoAnswer { path: path.clone(), why };
    let stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(no_answer(error.to_string())),
    };
    let exchange = async {
        let (read, mut write) = stream.into_split();
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        write.write_all(&line).await?;
        let mut answer = String::new();
        BufReader::new(read.take(LONGEST_LINE)).read_line(&mut answer).await?;
        serde_json::from_str(&answer).map_err(io::Error::from)
    };
    match tokio::time::timeout(request.patience(), exchange).await {
        Ok(Ok(response)) => Ok(Some(response)),
        Ok(Err(error)) => Err(no_answer(error.to_string())),
        Err(_) => Err(no_answer(format!("nothing came within {:?}", request.patience()))),
    }
}
