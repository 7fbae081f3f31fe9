//! One turn: from what somebody said to what the robot said, with at most [`TOOL_ROUNDS`] tool calls between.
//!
//! One call a round; after the last round the brain must answer in words. Sentences are spoken while the rest is still
//! being generated. A brain that fails before its first sentence and its first tool is replaced for this turn; one that
//! fails later leaves what was spoken. A turn never ends in silence.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::brain::{Brain, BrainError, Delta, Finish, Message, PictureRequest, Request, Usage};
use super::hands::{Done, Hands, Look, Moment, Pictures};
use super::lines;
use super::sentences::Sentences;
use super::tools::{Tool, ToolCall, ToolResult};
use crate::act::Spoken;
use crate::remember::Exchange;

/// Tool calls that one turn may make before it must answer in words; the reference robot behaves so.
pub const TOOL_ROUNDS: usize = 2;
/// Deltas that may wait for a slow voice before the stream itself waits.
const DELTAS: usize = 64;

/// Where the sentences of a turn go.
pub trait Speak: Send {
    /// Takes a sentence; returns as soon as it is queued.
    fn speak(&mut self, sentence: String) -> BoxFuture<'_, ()>;

    /// Waits until every sentence was spoken, or somebody stopped them; tells which really were.
    fn finished(&mut self) -> BoxFuture<'_, Spoken>;
}

/// What happens in a turn, for transcripts and logs, as it happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This brain is asked.
    Asked {
        brain: String,
    },
    Called {
        tool: Tool,
    },
    /// What the tool answered, and how long it took.
    Answered {
        tool: Tool,
        result: ToolResult,
        took: Duration,
    },
    /// A sentence goes to the voice, this long after the turn began.
    Saying {
        sentence: String,
        after: Duration,
    },
    /// A fault that the person is told about, or that only the log needs.
    Trouble {
        what: String,
    },
}

/// Told every [`Step`]; must not block.
pub type Witness<'a> = &'a (dyn Fn(Step) + Send + Sync);

/// What a turn needs besides the brain.
pub struct Turn<'a> {
    pub system: &'a str,
    pub hands: &'a Hands,
    pub witness: Witness<'a>,
    pub now: Timestamp,
    /// The name of the one who speaks, where it is certain.
    pub speaker: Option<String>,
    /// The window's exchanges that a search may find as just said.
    pub just_said: Vec<Exchange>,
    pub began: Instant,
}

/// How a turn went, before the voice has finished.
#[derive(Debug, Default)]
pub struct Answer {
    /// Sentences of the answer itself, in order; fixed lines are not among them.
    pub sentences: Vec<String>,
    /// Whether `remember` was called: the answer was read out of memory, or says that memory has none.
    pub from_memory: bool,
    /// Whether any tool ran; nothing may be replayed then.
    pub acted: bool,
    pub usage: Option<Usage>,
    /// The answer broke off.
    pub cut_short: bool,
    /// The look that the answer is about.
    pub look: Option<Look>,
}

impl Answer {
    /// Whether another brain may start this turn over.
    #[must_use]
    pub fn untouched(&self) -> bool {
        self.sentences.is_empty() && !self.acted
    }
}

/// One round's outcome.
struct Round {
    call: Option<ToolCall>,
    refused: Option<BadCall>,
    finish: Finish,
}

/// A call that could not be used, and why.
struct BadCall {
    id: String,
    name: String,
    why: String,
}

impl Turn<'_> {
    /// Runs the rounds with one brain. `messages` end with what the person said. What was spoken or done before an
    /// error stands in `answer`.
    ///
    /// # Errors
    /// [`BrainError`] of the round that failed.
    pub async fn run(
        &self,
        brain: &dyn Brain,
        mut messages: Vec<Message>,
        mouth: &mut dyn Speak,
        answer: &mut Answer,
    ) -> Result<(), BrainError> {
        (self.witness)(Step::Asked { brain: brain.name() });
        let mut earlier: Option<Tool> = None;
        for round in 0..=TOOL_ROUNDS {
            let request = Request {
                system: self.system.to_owned(),
                messages: messages.clone(),
                tools_allowed: round < TOOL_ROUNDS,
                now: self.now,
            };
            let outcome = self.round(brain, &request, mouth, answer).await?;
            answer.usage = outcome.finish.usage.or(answer.usage);
            answer.cut_short |= outcome.finish.cut_short;
            match (outcome.call, outcome.refused) {
                (Some(call), _) if request.tools_allowed => {
                    let Done { result, pictures, look } = if earlier.as_ref() == Some(&call.tool) {
                        let why = "you have just asked exactly that; answer in words now".to_owned();
                        ToolResult::Refused { why }.into()
                    } else {
                        self.act(&call.tool, brain, answer).await
                    };
                    answer.look = look.or(answer.look.take());
                    if let Some(pictures) = pictures
                        && self.describe(brain, &messages, pictures, mouth, answer).await?
                    {
                        return Ok(());
                    }
                    earlier = Some(call.tool.clone());
                    let name = call.tool.name().to_owned();
                    messages.push(Message::Assistant { text: String::new(), calls: vec![call.clone()] });
                    messages.push(Message::Tool { call_id: call.id, name, result });
                }
                // A call that could not be used is asked for again; it leaves no trace in the conversation's history.
                (None, Some(BadCall { id, name, why })) if request.tools_allowed => {
                    messages.push(Message::Tool { call_id: id, name, result: ToolResult::Refused { why } });
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    async fn act(&self, tool: &Tool, brain: &dyn Brain, answer: &mut Answer) -> Done {
        (self.witness)(Step::Called { tool: tool.clone() });
        let began = Instant::now();
        answer.acted = true;
        let just_said = self.just_said.clone();
        let moment =
            Moment { now: self.now, speaker: self.speaker.clone(), just_said, shows_pictures: brain.sees_pictures() };
        let done = self.finish_even_if_dropped(tool.clone(), moment).await;
        answer.from_memory |= matches!(tool, Tool::Remember(_));
        (self.witness)(Step::Answered { tool: tool.clone(), result: done.result.clone(), took: began.elapsed() });
        done
    }

    /// A tool that has begun is run to its end although the turn may be dropped: else the head would stay turned.
    async fn finish_even_if_dropped(&self, tool: Tool, moment: Moment) -> Done {
        let hands = self.hands.clone();
        let name = tool.name();
        let run = tokio::spawn(async move { hands.run(&tool, &moment).await });
        run.await.unwrap_or_else(|_| {
            ToolResult::Refused { why: format!("`{name}` stopped in the middle; say that it did not work") }.into()
        })
    }

    /// Shows the brain pictures in a request of their own, beside the conversation. Answers whether it spoke; where it
    /// did not, the words of the tool's result have to do.
    async fn describe(
        &self,
        brain: &dyn Brain,
        messages: &[Message],
        Pictures { kind, pictures }: Pictures,
        mouth: &mut dyn Speak,
        answer: &mut Answer,
    ) -> Result<bool, BrainError> {
        let question = messages.iter().rev().find_map(|message| match message {
            Message::User { text, .. } => Some(text.clone()),
            _ => None,
        });
        let request = PictureRequest { kind, pictures, question: question.unwrap_or_default(), now: self.now };
        let before = answer.sentences.len();
        let (sender, deltas) = mpsc::channel(DELTAS);
        let outcome = self.listen(brain.describe(&request, sender), deltas, mouth, answer).await;
        let spoke = answer.sentences.len() > before;
        match outcome {
            Ok(round) => {
                answer.cut_short |= round.finish.cut_short;
                Ok(spoke)
            }
            Err(error) if spoke => Err(error),
            Err(error) => {
                (self.witness)(Step::Trouble { what: error.to_string() });
                Ok(false)
            }
        }
    }

    /// One generation: its text goes to the voice sentence by sentence, its first call is kept.
    async fn round(
        &self,
        brain: &dyn Brain,
        request: &Request,
        mouth: &mut dyn Speak,
        answer: &mut Answer,
    ) -> Result<Round, BrainError> {
        let (sender, deltas) = mpsc::channel(DELTAS);
        self.listen(brain.generate(request, sender), deltas, mouth, answer).await
    }

    async fn listen(
        &self,
        generation: BoxFuture<'_, Result<Finish, BrainError>>,
        mut deltas: mpsc::Receiver<Delta>,
        mouth: &mut dyn Speak,
        answer: &mut Answer,
    ) -> Result<Round, BrainError> {
        tokio::pin!(generation);
        let mut splitter = Sentences::new();
        let (mut call, mut refused, mut finish) = (None, None, None);
        loop {
            tokio::select! {
                biased;
                delta = deltas.recv() => match delta {
                    Some(Delta::Text(text)) => {
                        for sentence in splitter.push(&text) {
                            self.say(sentence, mouth, answer).await;
                        }
                    }
                    Some(Delta::Call(first)) if call.is_none() => call = Some(first),
                    Some(Delta::Call(_)) => {}
                    Some(Delta::BadCall { id, name, why, .. }) => refused = Some(BadCall { id, name, why }),
                    None if finish.is_some() => break,
                    // Every sender is gone and the generation has not ended yet: only its end is left to wait for.
                    None => { finish = Some(generation.as_mut().await); break; }
                },
                ended = &mut generation, if finish.is_none() => finish = Some(ended),
            }
        }
        if let Some(rest) = splitter.finish() {
            self.say(rest, mouth, answer).await;
        }
        match finish {
            Some(Ok(finish)) => Ok(Round { call, refused, finish }),
            Some(Err(error)) => Err(error),
            None => Err(BrainError::Interrupted),
        }
    }

    async fn say(&self, sentence: String, mouth: &mut dyn Speak, answer: &mut Answer) {
        answer.sentences.push(sentence.clone());
        self.say_fixed(sentence, mouth).await;
    }

    /// Says a sentence that is no part of the answer.
    pub async fn say_fixed(&self, sentence: String, mouth: &mut dyn Speak) {
        say_fixed(self.witness, self.began, sentence, mouth).await;
    }
}

async fn say_fixed(witness: Witness<'_>, began: Instant, sentence: String, mouth: &mut dyn Speak) {
    witness(Step::Saying { sentence: sentence.clone(), after: began.elapsed() });
    mouth.speak(sentence).await;
}

/// The end of a turn, begun at `began`, that nobody takes over: a fixed line where nothing, or only a part, was said.
pub async fn close(
    error: Option<&BrainError>,
    mouth: &mut dyn Speak,
    answer: &mut Answer,
    witness: Witness<'_>,
    began: Instant,
) {
    if let Some(error) = error {
        answer.cut_short = true;
        if matches!(error, BrainError::Interrupted) {
            return;
        }
        witness(Step::Trouble { what: error.to_string() });
    }
    if answer.sentences.is_empty() {
        say_fixed(witness, began, lines::NO_ANSWER.to_owned(), mouth).await;
    } else if error.is_some() {
        say_fixed(witness, began, lines::BROKE_OFF.to_owned(), mouth).await;
    }
}
