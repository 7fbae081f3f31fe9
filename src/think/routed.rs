//! Two brains as one, for a server that ignores tools: the robot's own brain chooses the tool, the server words the
//! answer.
//!
//! Some servers take `tools` and drop them without a word; their models then deny what is in the memory. The server is
//! asked once what it can do, and again after it was away; one that has tools is left alone. Owns nothing but the two.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::brain::{Brain, BrainError, Delta, Finish, Message, PictureRequest, Request};
use super::http::HttpBrain;

/// Deltas of the router's answer that may wait; they are taken at once.
const CHOSEN: usize = 4;

/// A server, and the brain that chooses tools for it when it must.
pub struct Routed {
    server: Arc<HttpBrain>,
    /// `None`: without a text model there is nobody to choose, and the server answers as well as it can.
    router: Option<Arc<dyn Brain>>,
}

impl Routed {
    /// `router` is asked for tools only, never for words.
    #[must_use]
    pub fn new(server: Arc<HttpBrain>, router: Option<Arc<dyn Brain>>) -> Self {
        Self { server, router }
    }

    /// The first call that the router makes; `None` where it would answer in words, or fails.
    async fn chosen(&self, router: &dyn Brain, request: &Request) -> Option<Delta> {
        let (sender, mut receiver) = mpsc::channel(CHOSEN);
        let collect = async {
            let mut call = None;
            while let Some(delta) = receiver.recv().await {
                if call.is_none() && matches!(delta, Delta::Call(_)) {
                    call = Some(delta);
                }
            }
            call
        };
        let (outcome, call) = tokio::join!(router.generate(request, sender), collect);
        if let Err(error) = outcome {
            tracing::warn!(%error, "no tool was chosen for the laptop, which knows none");
        }
        call
    }

    async fn answer(&self, request: &Request, deltas: mpsc::Sender<Delta>) -> Result<Finish, BrainError> {
        self.server.learn().await;
        let first_round = matches!(request.messages.last(), Some(Message::User { .. }));
        if self.server.lacks_tools()
            && request.tools_allowed
            && first_round
            && let Some(router) = &self.router
            && let Some(call) = self.chosen(router.as_ref(), request).await
        {
            deltas.send(call).await.map_err(|_| BrainError::Interrupted)?;
            return Ok(Finish::default());
        }
        self.server.generate(request, deltas).await
    }
}

impl Brain for Routed {
    fn name(&self) -> String {
        match &self.router {
            Some(router) if self.server.lacks_tools() => {
                format!("{} with tools chosen by {}", self.server.name(), router.name())
            }
            _ => self.server.name(),
        }
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        self.answer(request, deltas).boxed()
    }

    fn sees_pictures(&self) -> bool {
        self.server.sees_pictures()
    }

    fn describe<'a>(
        &'a self,
        request: &'a PictureRequest,
        deltas: mpsc::Sender<Delta>,
    ) -> BoxFuture<'a, Result<Finish, BrainError>> {
        self.server.describe(request, deltas)
    }

    fn aside<'a>(&'a self, system: &'a str, text: &'a str) -> BoxFuture<'a, Result<String, BrainError>> {
        self.server.aside(system, text)
    }

    fn count<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Option<u32>> {
        self.server.count(request)
    }

    fn prompt_room(&self) -> Option<u32> {
        self.server.prompt_room()
    }

    fn reachable(&self) -> BoxFuture<'_, Result<(), BrainError>> {
        self.server.reachable()
    }
}
