//! What the server can do, for `doctor` and for the choice of a brain: cheap questions, no generation.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::think::brain::{BrainError, Request};

use super::HttpBrain;
use super::body::{self, Shape};
use super::events::{body_text, reason};
use super::faults::Fault;

/// To answer a question about itself, beyond the connect limit. A server that is generating still answers these.
/// Not measured.
const QUICK: Duration = Duration::from_secs(2);

/// What a server says about itself. `None` where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub url: String,
    /// The models that it lists.
    pub models: Vec<String>,
    /// Whether the configured model is among them; `None` where it lists none. llama-server serves its one model by
    /// any name.
    pub model_listed: Option<bool>,
    /// Tokens of context that one conversation may fill there.
    pub context_tokens: Option<u32>,
    /// False: tools are silently ignored, and the offline brain must choose them.
    pub supports_tools: Option<bool>,
    /// Whether the model takes pictures.
    pub takes_pictures: Option<bool>,
}

/// What the last probe told, until the server was away.
#[derive(Debug, Default)]
pub(super) struct Learned {
    tools: AtomicU8,
    /// 0: not known.
    context: AtomicU32,
    /// The server has no page that counts tokens.
    counts_nothing: AtomicBool,
}

const UNKNOWN: u8 = 0;
const HAS: u8 = 1;
const LACKS: u8 = 2;

impl Learned {
    fn take(&self, probe: &Probe) {
        // A server that does not say is taken to have tools: most have, and the first turn shows it.
        let tools = if probe.supports_tools == Some(false) { LACKS } else { HAS };
        self.tools.store(tools, Ordering::Release);
        self.context.store(probe.context_tokens.unwrap_or(0), Ordering::Release);
    }

    pub fn context_tokens(&self) -> Option<u32> {
        Some(self.context.load(Ordering::Acquire)).filter(|tokens| *tokens > 0)
    }

    pub fn forget(&self) {
        self.tools.store(UNKNOWN, Ordering::Release);
        self.context.store(0, Ordering::Release);
        self.counts_nothing.store(false, Ordering::Release);
    }
}

impl HttpBrain {
    /// Whether the server ignores tools, as far as [`Self::learn`] or [`Self::probe`] found out. Its answers are then
    /// asked for in words only, and somebody else must choose the tool.
    #[must_use]
    pub fn lacks_tools(&self) -> bool {
        self.learned.tools.load(Ordering::Acquire) == LACKS
    }

    /// Asks the server what it can do, unless that is known. A server that does not answer teaches nothing.
    pub async fn learn(&self) {
        if self.learned.tools.load(Ordering::Acquire) == UNKNOWN
            && let Err(error) = self.probe().await
        {
            tracing::debug!(%error, "the server did not say what it can do");
        }
    }

    /// The tokens of `request` as llama-server counts them, system prompt, tools and template included; `None` at
    /// other servers.
    pub(super) async fn count_tokens(&self, request: &Request) -> Option<u32> {
        if self.learned.counts_nothing.load(Ordering::Acquire) {
            return None;
        }
        let in_words = self.lacks_tools();
        let shape = Shape {
            model: &self.model,
            answer_tokens: self.answer_tokens,
            left_out: self.left_out.load(Ordering::Acquire),
            with_tools: !in_words,
            in_words,
            again: false,
            zone: &self.zone,
        };
        let asking = self
            .client
            .post(format!("{}/chat/completions/input_tokens", self.url))
            .header(CONTENT_TYPE, "application/json")
            .body(body::body(request, &shape).to_string());
        let (status, text) = self.exchange(asking).await.ok()?;
        if matches!(status, 404 | 405 | 501) {
            self.learned.counts_nothing.store(true, Ordering::Release);
        }
        let counted: Value = serde_json::from_str(&text).ok().filter(|_| status == 200)?;
        tokens(counted.get("input_tokens"))
    }

    /// Asks the server what it can do.
    ///
    /// # Errors
    /// [`BrainError`] where nobody answers, the key is refused, or the model is still loading.
    pub async fn probe(&self) -> Result<Probe, BrainError> {
        let listed = self.ask_models().await?;
        // llama.cpp tells more, beside its `/v1`; a server without that page is no fault.
        let root = self.url.strip_suffix("/v1").unwrap_or(&self.url);
        let props = match self.ask(&format!("{root}/props")).await {
            Ok((200, text)) => serde_json::from_str(&text).unwrap_or(Value::Null),
            _ => Value::Null,
        };
        let probe = read(&self.url, &self.model, &listed, &props);
        self.sight.was_told(probe.takes_pictures);
        self.learned.take(&probe);
        Ok(probe)
    }

    /// The list of models; null where the server answers without one.
    pub(super) async fn ask_models(&self) -> Result<Value, BrainError> {
        let (status, text) = self.ask(&format!("{}/models", self.url)).await?;
        let server = self.server();
        match status {
            200 => Ok(serde_json::from_str(&text).unwrap_or(Value::Null)),
            // Somebody answers there; whether the chat is there too, the first turn shows.
            404 | 405 => Ok(Value::Null),
            status => Err(match server.status(status, &text) {
                Fault::Final(error) => error,
                Fault::Options(_, why) | Fault::Again(why) => server.unusable(why),
            }),
        }
    }

    async fn ask(&self, address: &str) -> Result<(u16, String), BrainError> {
        self.exchange(self.client.get(address)).await
    }

    /// A quick question and its whole answer: the status and the body.
    async fn exchange(&self, asking: reqwest::RequestBuilder) -> Result<(u16, String), BrainError> {
        let limit = self.limits.connect.saturating_add(QUICK);
        let away = |why: String| BrainError::Away { url: self.url.clone(), why };
        let asking = async {
            let response = asking.send().await?;
            let status = response.status().as_u16();
            Ok::<_, reqwest::Error>((status, body_text(response).await))
        };
        match timeout(limit, asking).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(away(reason(&error))),
            Err(_) => Err(away(format!("no answer within {limit:?}"))),
        }
    }
}

fn tokens(value: Option<&Value>) -> Option<u32> {
    value.and_then(Value::as_u64).and_then(|tokens| u32::try_from(tokens).ok())
}

fn read(url: &str, model: &str, listed: &Value, props: &Value) -> Probe {
    let entries = listed.get("data").or_else(|| listed.get("models")).and_then(Value::as_array);
    let id = |entry: &Value| entry.get("id").or_else(|| entry.get("name")).and_then(Value::as_str).map(str::to_owned);
    let models: Vec<String> = entries.into_iter().flatten().filter_map(id).collect();
    let own = entries.into_iter().flatten().find(|entry| id(entry).as_deref() == Some(model));
    let context_tokens = tokens(props.pointer("/default_generation_settings/n_ctx"))
        .or_else(|| tokens(props.get("n_ctx")))
        .or_else(|| tokens(own.and_then(|entry| entry.get("max_model_len"))));
    Probe {
        url: url.to_owned(),
        model_listed: (!models.is_empty()).then(|| own.is_some()),
        models,
        context_tokens,
        supports_tools: props.pointer("/chat_template_caps/supports_tools").and_then(Value::as_bool),
        takes_pictures: props.pointer("/modalities/vision").and_then(Value::as_bool),
    }
}
