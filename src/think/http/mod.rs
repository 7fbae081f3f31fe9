//! The language model at a server in the house, over the OpenAI-compatible chat API.
//!
//! [`HttpBrain`] owns one HTTP client and what it learned about its server (which options it refuses, whether its
//! model is warm). It may be asked by the turn runner and by `doctor`; nothing of the conversation is kept here. When
//! the server dies in mid-answer, what was spoken stays and [`Finish::cut_short`] says so. `body` makes a request,
//! `answer` reads one stream against its deadlines, `gather` puts a stream's fragments together, `events` turns bytes
//! into events, `faults` reads what went wrong, `address` looks names up, `probe` asks what the server can do, `pictures`
//! has pictures put into words.

mod address;
mod answer;
mod aside;
mod body;
mod events;
mod faults;
mod gather;
mod pictures;
mod probe;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use jiff::tz::TimeZone;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::ThinkConfig;

use super::brain::{Brain, BrainError, Delta, Finish, PictureRequest, Request, Usage};

use address::Remembering;
use answer::{Attempt, Pace};
use body::Shape;
use pictures::Sight;
use probe::Learned;
pub use probe::Probe;

/// A model that answered within this time is still loaded. Ollama's own default before it unloads one.
const WARM_FOR: Duration = Duration::from_secs(5 * 60);

/// How often one turn may ask: the first time, without refused options, and once more after an unusable answer.
const MOST_ATTEMPTS: u32 = 3;

/// How long each part of a turn may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To open a connection.
    pub connect: Duration,
    /// From the request to the first token that means something, when the model is loaded. Queueing counts.
    pub first_token_warm: Duration,
    /// The same when the model may have to load first.
    pub first_token_cold: Duration,
    /// Between two tokens. A server's pings are no tokens.
    pub next_token: Duration,
    /// All waiting for the server in one turn; time in which the voice is behind does not count.
    pub turn: Duration,
}

impl Limits {
    /// The limits that the owner set.
    #[must_use]
    pub fn of(config: &ThinkConfig) -> Self {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Self {
            connect: seconds(config.connect_timeout_s),
            first_token_warm: seconds(config.first_token_timeout_s),
            first_token_cold: seconds(config.cold_token_timeout_s),
            next_token: seconds(config.next_token_timeout_s),
            turn: seconds(config.turn_timeout_s),
        }
    }
}

/// What was asked last and how many tokens the server counted, to notice a server that cuts the front off.
#[derive(Clone, Copy, Debug)]
struct Counted {
    bytes: usize,
    prompt_tokens: u32,
}

/// A brain at a server; share it behind an `Arc`.
pub struct HttpBrain {
    client: reqwest::Client,
    names: Remembering,
    /// Without a slash at its end.
    url: String,
    model: String,
    /// Only to keep it out of every sentence.
    key: Option<String>,
    answer_tokens: u32,
    limits: Limits,
    zone: TimeZone,
    /// Bit per entry of [`body::OPTIONAL`] that the server refused.
    left_out: AtomicU8,
    last_answer: Mutex<Option<Instant>>,
    counted: Mutex<Option<Counted>>,
    /// 0: the server was not seen cutting.
    cut_at: AtomicU32,
    sight: Sight,
    learned: Learned,
}

impl HttpBrain {
    /// A brain at `config.url`; `key` is what `config.key_file` holds.
    ///
    /// # Errors
    /// [`BrainError::Misconfigured`] for an address, key or time limit that cannot work.
    pub fn new(config: &ThinkConfig, key: Option<String>) -> Result<Self, BrainError> {
        let url = checked_url(&config.url)?;
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let limits = Limits::of(config);
        let names = Remembering::new(limits.connect);
        let client = client(&limits, key.as_deref(), &names)?;
        if limits.first_token_warm.is_zero() || limits.next_token.is_zero() || limits.turn.is_zero() {
            return Err(misconfigured("the time limits of [think] must be at least 1 second".into()));
        }
        Ok(Self {
            client,
            names,
            url,
            model: config.model.clone(),
            key,
            answer_tokens: config.answer_tokens,
            limits,
            zone: TimeZone::system(),
            left_out: AtomicU8::new(0),
            last_answer: Mutex::new(None),
            counted: Mutex::new(None),
            cut_at: AtomicU32::new(0),
            sight: Sight::default(),
            learned: Learned::default(),
        })
    }

    /// Tells times in `zone` instead of the machine's own.
    #[must_use]
    pub fn in_zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// Uses `limits` instead of the config's whole seconds.
    ///
    /// # Errors
    /// [`BrainError::Misconfigured`] when no client can be made with them.
    pub fn with_limits(mut self, limits: Limits) -> Result<Self, BrainError> {
        self.names = self.names.within(limits.connect);
        self.client = client(&limits, self.key.as_deref(), &self.names)?;
        self.limits = limits;
        Ok(self)
    }

    /// Keeps the server's last address in `file`, so that a restart finds it while its name is not answered for.
    #[must_use]
    pub fn remembering_in(mut self, file: PathBuf) -> Self {
        self.names.keep_in(file);
        self
    }

    /// The prompt size, in tokens, at which the server was seen to cut the conversation's front off silently: its
    /// count shrank although more was sent. The window's budget must stay below it.
    #[must_use]
    pub fn server_cut_at(&self) -> Option<u32> {
        Some(self.cut_at.load(Ordering::Acquire)).filter(|tokens| *tokens > 0)
    }

    /// The limit to the first token now: the cold one unless the model answered a moment ago.
    fn first_token_limit(&self) -> Duration {
        let last = self.last_answer.lock().map_or(None, |last| *last);
        match last {
            Some(last) if last.elapsed() < WARM_FOR => self.limits.first_token_warm,
            _ => self.limits.first_token_cold,
        }
    }

    fn set_warm(&self, warm: bool) {
        if let Ok(mut last) = self.last_answer.lock() {
            *last = warm.then(Instant::now);
        }
    }

    /// A server that was away or asleep may come back with another model.
    fn learn_from<T>(&self, outcome: &Result<T, BrainError>) {
        if matches!(outcome, Err(BrainError::Away { .. } | BrainError::Waking { .. } | BrainError::TimedOut { .. })) {
            self.set_warm(false);
        }
        if matches!(outcome, Err(BrainError::Away { .. } | BrainError::Waking { .. })) {
            self.sight.forget();
            self.learned.forget();
        }
    }

    /// Notices a server that silently drops the conversation's front (Ollama does).
    fn watch_count(&self, bytes: usize, usage: Option<Usage>) {
        let Some(prompt_tokens) = usage.map(|usage| usage.prompt_tokens).filter(|tokens| *tokens > 0) else { return };
        let Ok(mut counted) = self.counted.lock() else { return };
        if let Some(before) = *counted
            && bytes > before.bytes
            && prompt_tokens < before.prompt_tokens
        {
            self.cut_at.store(before.prompt_tokens, Ordering::Release);
            tracing::warn!(
                before = before.prompt_tokens,
                after = prompt_tokens,
                "the server counts fewer tokens although more was sent: it cuts the conversation's front off"
            );
        }
        *counted = Some(Counted { bytes, prompt_tokens });
    }

    async fn answer(&self, request: &Request, deltas: &mpsc::Sender<Delta>) -> Result<Finish, BrainError> {
        let mut pace = Pace::new(self.limits.turn);
        let mut again_without_tools = false;
        let mut asked_again = false;
        let mut last_why = String::new();
        let in_words = self.lacks_tools();
        for _ in 0..MOST_ATTEMPTS {
            let left_out = self.left_out.load(Ordering::Acquire);
            let shape = Shape {
                model: &self.model,
                answer_tokens: self.answer_tokens,
                left_out,
                with_tools: !again_without_tools && !in_words,
                in_words,
                again: asked_again,
                zone: &self.zone,
            };
            let body = body::body(request, &shape).to_string();
            let bytes = body.len();
            match self.attempt(request, body, deltas, &mut pace).await? {
                Attempt::Done(finish) => {
                    self.set_warm(true);
                    if !again_without_tools {
                        self.watch_count(bytes, finish.usage);
                    }
                    return Ok(finish);
                }
                Attempt::WithoutOptions(mask, why) => {
                    last_why = why;
                    if mask & !left_out == 0 {
                        break;
                    }
                    self.left_out.fetch_or(mask, Ordering::AcqRel);
                }
                Attempt::Again(why) => {
                    tracing::warn!(%why, "the server's answer was unusable");
                    last_why = why;
                    if std::mem::replace(&mut asked_again, true) {
                        break;
                    }
                    // A server that calls tools although words were asked for stops when it knows of none.
                    again_without_tools = !request.tools_allowed;
                }
            }
        }
        Err(BrainError::Unusable { url: self.url.clone(), why: last_why })
    }
}

impl Brain for HttpBrain {
    fn name(&self) -> String {
        format!("http {}", self.model)
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        async move {
            let outcome = self.answer(request, &deltas).await;
            self.learn_from(&outcome);
            outcome
        }
        .boxed()
    }

    fn aside<'a>(&'a self, system: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, BrainError>> {
        async move {
            let outcome = self.answer_aside(system, text).await;
            self.learn_from(&outcome);
            outcome
        }
        .boxed()
    }

    fn count<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<u32>> {
        self.count_tokens(request).boxed()
    }

    /// A server that cut the front off a prompt takes no longer one, whatever its context is said to be.
    fn prompt_room(&self) -> Option<u32> {
        let context = self.learned.context_tokens().map(|tokens| tokens.saturating_sub(self.answer_tokens));
        context.into_iter().chain(self.server_cut_at()).min()
    }

    fn sees_pictures(&self) -> bool {
        !self.sight.is_blind()
    }

    fn describe<'a>(
        &'a self,
        request: &'a PictureRequest,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        async move {
            let outcome = self.look_at(request, deltas).await;
            self.learn_from(&outcome);
            outcome
        }
        .boxed()
    }

    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>> {
        self.ask_models().map(|answer| answer.map(|_| ())).boxed()
    }
}

fn misconfigured(sentence: String) -> BrainError {
    BrainError::Misconfigured { sentence }
}

/// The base address without a slash at its end.
fn checked_url(url: &str) -> Result<String, BrainError> {
    let refuse = |why: &str| {
        misconfigured(format!("`url` in [think] {why}; it should look like \"http://laptop.local:8080/v1\""))
    };
    let parsed = reqwest::Url::parse(url.trim()).map_err(|why| refuse(&format!("is no address ({why})")))?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err(refuse("must begin with http:// or https://"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(refuse("must not hold a password (put the key into `key_file`)"));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refuse("must end before any ? or #"));
    }
    let trimmed = parsed.as_str().trim_end_matches('/');
    Ok(trimmed.strip_suffix("/chat/completions").unwrap_or(trimmed).to_owned())
}

fn client(limits: &Limits, key: Option<&str>, names: &Remembering) -> Result<reqwest::Client, BrainError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            misconfigured(
                "the file at `key_file` in [think] holds characters that no key has; it should hold one line".into(),
            )
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    reqwest::Client::builder()
        .default_headers(headers)
        // A server in the house is never behind a proxy.
        .no_proxy()
        .connect_timeout(limits.connect)
        .dns_resolver(Arc::new(names.clone()))
        // No connection outlives its answer: one to a laptop that fell asleep would hang until the first-token limit,
        // where a new one fails within the connect limit. A new one costs a round trip in the house.
        .pool_max_idle_per_host(0)
        // A redirect would carry the conversation to an address that nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|why| misconfigured(format!("no HTTP client could be made: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(url: &str, key: Option<&str>) -> Result<HttpBrain, BrainError> {
        HttpBrain::new(&ThinkConfig { url: url.into(), ..ThinkConfig::default() }, key.map(str::to_owned))
    }

    fn why_not(url: &str, key: Option<&str>) -> String {
        match made(url, key) {
            Ok(_) => panic!("{url} was taken"),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn an_address_is_taken_with_or_without_its_usual_ends() {
        for url in ["http://a.local:8080/v1", "http://a.local:8080/v1/", "http://a.local:8080/v1/chat/completions"] {
            assert_eq!(made(url, None).map(|brain| brain.url).unwrap(), "http://a.local:8080/v1");
        }
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_with_an_example() {
        for url in ["", "laptop.local:8080", "ftp://laptop/v1", "http://me:secret@laptop/v1", "http://laptop/v1?a=b"] {
            let why = why_not(url, None);
            assert!(why.contains("[think]") && why.contains("http://laptop.local:8080/v1"), "{why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn a_broken_key_is_refused_without_showing_it() {
        let why = why_not("http://a/v1", Some("top\nsecret"));
        assert!(why.contains("key_file") && !why.contains("secret"), "{why}");
    }

    #[test]
    fn a_limit_of_zero_seconds_is_refused() {
        let config = ThinkConfig { url: "http://a/v1".into(), next_token_timeout_s: 0, ..ThinkConfig::default() };
        assert!(HttpBrain::new(&config, None).is_err());
    }

    #[test]
    fn a_count_that_shrinks_although_more_was_sent_shows_a_server_that_cuts() {
        let brain = made("http://a/v1", None).unwrap();
        let usage = |prompt_tokens| Some(Usage { prompt_tokens, completion_tokens: 1 });
        brain.watch_count(1000, usage(400));
        brain.watch_count(2000, usage(800));
        brain.watch_count(1200, usage(500));
        assert_eq!(brain.server_cut_at(), None, "less was sent");
        brain.watch_count(2400, usage(450));
        assert_eq!(brain.server_cut_at(), Some(500));
    }
}
