//! What the server can do, for `doctor` and for the choice of a brain: cheap questions, no generation.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::think::brain::BrainError;

use super::HttpBrain;
use super::events::{body_text, reason};
use super::faults::{Fault, Server};

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

impl HttpBrain {
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
        Ok(probe)
    }

    /// The list of models; null where the server answers without one.
    pub(super) async fn ask_models(&self) -> Result<Value, BrainError> {
        let (status, text) = self.ask(&format!("{}/models", self.url)).await?;
        let server = Server { url: &self.url, model: &self.model, key: self.key.as_deref() };
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
        let limit = self.limits.connect.saturating_add(QUICK);
        let away = |why: String| BrainError::Away { url: self.url.clone(), why };
        let asking = async {
            let response = self.client.get(address).send().await?;
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

fn read(url: &str, model: &str, listed: &Value, props: &Value) -> Probe {
    let entries = listed.get("data").or_else(|| listed.get("models")).and_then(Value::as_array);
    let id = |entry: &Value| entry.get("id").or_else(|| entry.get("name")).and_then(Value::as_str).map(str::to_owned);
    let models: Vec<String> = entries.into_iter().flatten().filter_map(id).collect();
    let own = entries.into_iter().flatten().find(|entry| id(entry).as_deref() == Some(model));
    let tokens = |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|tokens| u32::try_from(tokens).ok());
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
