//! The conversation: the one owner of the window and its journal, and of the turns that fill them.
//!
//! One turn runs at a time. After it, the exchange is in the journal on the disk; when the window is over its budget
//! the oldest half moves into the memory and leaves the window only when it is stored. If this dies, the journal still
//! holds what the memory does not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use super::brain::{Brain, BrainError, Message, Request};
use super::brains::{Brains, Choice};
use super::hands::{Hands, Look};
use super::interrupt::Interrupt;
use super::lines;
use super::name;
use super::turn::{self, Answer, Speak, Step, Turn, Witness};
use super::window::{self, Kept, Limits, Window};
use crate::act::Motion;
use crate::remember::journal::{Journal, JournalError, Left};
use crate::remember::{Exchange, Memory, TimeRange};

/// The laptop may take this long to read a name: the person waits for an answer. Not measured.
const NAME_WITHIN: Duration = Duration::from_secs(8);

/// What somebody said, heard or typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    pub text: String,
    pub speaker: Option<String>,
    pub at: Timestamp,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReport {
    /// What stays in the history: only what was really spoken.
    pub exchange: Exchange,
    /// The answer was read out of memory, and is never stored back.
    pub from_memory: bool,
    pub interrupted: bool,
    /// Why the voice is mute, where it is.
    pub mute: Option<String>,
    /// Exchanges that moved from the window into the memory after this turn.
    pub moved: Moved,
}

/// What became of the window's oldest half.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// Left the window.
    pub left_window: usize,
    /// Of those, written into the memory (the others were read out of it).
    pub stored: usize,
    /// They had to leave and could not be stored, so they stayed; tried again after the next turn.
    pub kept_because: Option<String>,
}

/// The running conversation.
pub struct Conversation {
    hands: Hands,
    brains: Brains,
    system: String,
    window: Window,
    /// `None` when its file cannot be written: the conversation goes on, and a crash would lose the window.
    journal: Option<Journal>,
    /// Exchanges of an earlier process that could not be stored yet.
    left_over: Vec<Exchange>,
    /// True once the process is ending: a running answer is dropped, what was heard is still written down.
    ending: watch::Receiver<bool>,
    /// Somebody speaks over the robot: the running answer is dropped.
    interrupt: Interrupt,
    /// Who was asked last.
    brain: Option<Arc<dyn Brain>>,
}

impl Conversation {
    #[must_use]
    pub fn new(
        hands: Hands,
        brains: Brains,
        system: String,
        limits: Limits,
        journal: Option<Journal>,
        ending: watch::Receiver<bool>,
    ) -> Self {
        Self {
            hands,
            brains,
            system,
            window: Window::new(limits),
            journal,
            left_over: Vec::new(),
            ending,
            interrupt: Interrupt::default(),
            brain: None,
        }
    }

    /// Stores what an earlier process left in its journal. Answers how many exchanges that were.
    pub async fn take_up(&mut self, left: Left) -> Moved {
        self.left_over = left.exchanges;
        self.store_left_over().await
    }

    /// What stops a running answer.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The body's motion, which the tools share.
    #[must_use]
    pub fn motion(&self) -> Arc<Motion> {
        Arc::clone(&self.hands.motion)
    }

    /// The exchanges in the window, oldest first.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Runs one turn to its end: the answer was spoken, the exchange is in the journal, the window is in its budget.
    pub async fn turn(&mut self, said: Said, mouth: &mut dyn Speak, witness: Witness<'_>) -> TurnReport {
        let answer = self.answer(&said, mouth, witness).await;
        let spoken = mouth.finished().await;
        // A mute robot's answer was still given, in text.
        let given = |sentence: &&String| spoken.mute.is_some() || spoken.sentences.contains(sentence);
        let words: Vec<String> = answer.sentences.iter().filter(given).cloned().collect();
        let exchange = Exchange { heard: said.text, said: words.join(" "), speaker: said.speaker, said_at: said.at };
        // A look stays out of the conversation: what was said about it belongs to the picture.
        let with_the_picture = match &answer.look {
            Some(look) => self.caption(look, &exchange, witness).await,
            None => false,
        };
        if !with_the_picture {
            let kept = Kept { exchange: exchange.clone(), from_memory: answer.from_memory };
            self.write_down(&kept, witness);
            self.window.add(kept, answer.usage);
            self.measure(answer.usage.is_some()).await;
        }
        let moved = self.make_room().await;
        TurnReport {
            exchange,
            from_memory: answer.from_memory,
            interrupted: spoken.interrupted,
            mute: spoken.mute,
            moved,
        }
    }

    /// Keeps an exchange that no brain had a part in: a greeting's reply, a name that was given.
    pub async fn note(&mut self, exchange: Exchange, witness: Witness<'_>) -> Moved {
        let kept = Kept { exchange, from_memory: false };
        self.write_down(&kept, witness);
        self.window.add(kept, None);
        self.make_room().await
    }

    /// Reads the name in the reply to "What is your name?": the laptop does where it answers in time, else the robot
    /// itself. `None` where there is none, or it is doubtful.
    pub async fn read_name(&self, reply: &str) -> Option<String> {
        if let Some(brain) = self.brains.beside() {
            let asked = name::name_request(reply);
            match tokio::time::timeout(NAME_WITHIN, brain.aside(asked.system, &asked.user)).await {
                Ok(Ok(answer)) => return name::parse_reply(&answer, reply),
                Ok(Err(error)) => tracing::warn!(%error, "the laptop did not read the name"),
                Err(_) => tracing::warn!("the laptop took too long to read the name"),
            }
        }
        name::read(reply)
    }

    /// The exchanges without a speaker that began from `since` to `until` are `name`'s, in the window and in the memory.
    ///
    /// # Errors
    /// A sentence that says what could not be changed; the rest was.
    pub async fn name_words(&mut self, name: &str, since: Timestamp, until: Timestamp) -> Result<(), String> {
        let theirs = |mut exchange: Exchange| {
            if exchange.speaker.is_none() && (since..=until).contains(&exchange.said_at) {
                exchange.speaker = Some(name.to_owned());
            }
            Some(exchange)
        };
        let window = self.change(&theirs).map_err(|error| error.to_string());
        let Ok(memory) = &self.hands.memory else { return window };
        let range = Some(TimeRange { from: since, to: until });
        let stored = memory.exchanges(range).await.map_err(|error| error.to_string())?;
        let unnamed: Vec<_> = stored.iter().filter(|said| said.speaker.is_none()).map(Exchange::id).collect();
        if !unnamed.is_empty() {
            memory.name_speaker(unnamed, name).await.map_err(|error| error.to_string())?;
        }
        window
    }

    /// Changes every exchange that is not in the memory yet, or lets it go where `change` gives none; the journal holds
    /// nothing else when this returns.
    ///
    /// # Errors
    /// [`JournalError`] when the journal could not be written anew: it still holds what was there before.
    pub fn change(&mut self, change: &dyn Fn(Exchange) -> Option<Exchange>) -> Result<(), JournalError> {
        self.window.change(change);
        self.left_over = std::mem::take(&mut self.left_over).into_iter().filter_map(change).collect();
        self.rewrite_journal()
    }

    async fn answer(&mut self, said: &Said, mouth: &mut dyn Speak, witness: Witness<'_>) -> Answer {
        let Choice { mut brain, mut is_laptop, announcement } = self.brains.choose();
        let mut announcement = announcement;
        let (began, mut made_room) = (Instant::now(), false);
        // Messages of the window's front that this turn's brain is not shown.
        let mut left_out = 0;
        let mut answer = Answer::default();
        let interrupt = self.interrupt.clone();
        let mut interrupted = std::pin::pin!(interrupt.stopped());
        loop {
            let mut messages = self.window.messages();
            messages.drain(..left_out.min(messages.len()));
            messages.push(Message::User { text: said.text.clone(), speaker: said.speaker.clone(), at: said.at });
            let turn = Turn {
                system: &self.system,
                hands: &self.hands,
                witness,
                now: self.hands.clock.now(),
                speaker: said.speaker.clone(),
                just_said: self.window.just_said(),
                began,
            };
            if let Some(line) = announcement.take() {
                turn.say_fixed(line, mouth).await;
            }
            let Some(asked) = brain.clone() else {
                turn.say_fixed(lines::NO_BRAIN.to_owned(), mouth).await;
                return answer;
            };
            self.brain = Some(Arc::clone(&asked));
            let mut ending = self.ending.clone();
            let outcome = tokio::select! {
                outcome = turn.run(asked.as_ref(), messages, mouth, &mut answer) => outcome,
                Ok(_) = ending.wait_for(|ending| *ending) => Err(BrainError::Interrupted),
                () = &mut interrupted => Err(BrainError::Interrupted),
            };
            let error = match outcome {
                Ok(()) => {
                    turn::close(None, mouth, &mut answer, witness, began).await;
                    return answer;
                }
                Err(error) => error,
            };
            if answer.untouched() && matches!(error, BrainError::TooLong { .. }) && !made_room {
                witness(Step::Trouble { what: error.to_string() });
                made_room = true;
                if self.move_oldest_half().await.left_window == 0 {
                    // They cannot be stored now and stay in the window; this turn is answered without them.
                    left_out = self.window.messages().len().div_ceil(2);
                }
                continue;
            } else if answer.untouched()
                && is_laptop
                && let Some(other) = self.brains.take_over(&error)
            {
                witness(Step::Trouble { what: error.to_string() });
                (brain, is_laptop, announcement) = (other.brain, other.is_laptop, other.announcement);
                continue;
            }
            turn::close(Some(&error), mouth, &mut answer, witness, began).await;
            return answer;
        }
    }

    /// Fits the window to the brain that answered. Where a turn was not counted, or its count (which has tools' results
    /// in it) would move something, the brain is asked for an exact one.
    async fn measure(&mut self, counted: bool) {
        let Some(brain) = self.brain.clone() else { return };
        self.window.fit(brain.prompt_room());
        if counted && !self.window.over_budget() {
            return;
        }
        let request = Request {
            system: self.system.clone(),
            messages: self.window.messages(),
            tools_allowed: true,
            now: self.hands.clock.now(),
        };
        if let Some(tokens) = brain.count(&request).await {
            self.window.measured(tokens);
        }
    }

    /// Keeps what was said about a look with its picture; answers whether it is there.
    async fn caption(&self, look: &Look, exchange: &Exchange, witness: Witness<'_>) -> bool {
        let Ok(memory) = &self.hands.memory else { return false };
        if exchange.said.is_empty() {
            return false;
        }
        // What only says again what the detector found adds nothing to the frame's own sentence.
        if exchange.said == look.sentence {
            return true;
        }
        match memory.caption(look.frame, exchange.said.clone()).await {
            Ok(()) => true,
            Err(error) => {
                let what = format!("what was said about the picture is not kept with it: {error}");
                witness(Step::Trouble { what });
                false
            }
        }
    }

    /// Puts what will be stored of the exchange in the journal.
    fn write_down(&mut self, kept: &Kept, witness: Witness<'_>) {
        if let Some(exchange) = kept.storable()
            && let Some(journal) = &mut self.journal
            && let Err(error) = tokio::task::block_in_place(|| journal.add(&exchange))
        {
            witness(Step::Trouble { what: error.to_string() });
        }
    }

    /// Moves the oldest half, again and again, until the window is in its budget or a store fails.
    async fn make_room(&mut self) -> Moved {
        let mut all = self.store_left_over().await;
        while self.window.over_budget() {
            let moved = self.move_oldest_half().await;
            all.left_window += moved.left_window;
            all.stored += moved.stored;
            if moved.left_window == 0 {
                all.kept_because = moved.kept_because;
                break;
            }
        }
        all
    }

    async fn move_oldest_half(&mut self) -> Moved {
        let batch = self.window.oldest_half();
        self.store(batch).await
    }

    /// Stores a batch from the window's front; it leaves the window and the journal only when it is stored.
    async fn store(&mut self, batch: Vec<Kept>) -> Moved {
        let storable = window::storable(&batch);
        let stored = storable.len();
        if let Err(why) = store(&self.hands.memory, storable).await {
            let why = match self.journal {
                Some(_) => why,
                None => format!("{why}; and there is no journal, so a crash would lose them"),
            };
            return Moved { kept_because: Some(why), ..Moved::default() };
        }
        self.window.leave(batch.len());
        self.shorten_journal();
        Moved { left_window: batch.len(), stored, kept_because: None }
    }

    async fn store_left_over(&mut self) -> Moved {
        if self.left_over.is_empty() {
            return Moved::default();
        }
        let stored = self.left_over.len();
        match store(&self.hands.memory, self.left_over.clone()).await {
            Ok(()) => {
                self.left_over.clear();
                self.shorten_journal();
                Moved { stored, ..Moved::default() }
            }
            Err(why) => Moved { kept_because: Some(why), ..Moved::default() },
        }
    }

    /// What has reached the memory leaves the journal. If that fails the old one stays, which stores nothing twice.
    fn shorten_journal(&mut self) {
        if let Err(error) = self.rewrite_journal() {
            tracing::warn!(%error, "the journal of the conversation was not shortened");
        }
    }

    /// Writes the journal anew from what is not in the memory yet.
    fn rewrite_journal(&mut self) -> Result<(), JournalError> {
        let open: Vec<Exchange> = self
            .left_over
            .iter()
            .cloned()
            .chain(window::storable(&self.window.kept().cloned().collect::<Vec<_>>()))
            .collect();
        match &mut self.journal {
            Some(journal) => tokio::task::block_in_place(|| journal.replace(&open)),
            None => Ok(()),
        }
    }

    /// The end: everything in the window goes into the memory.
    pub async fn close(&mut self) -> Moved {
        let mut all = self.store_left_over().await;
        let batch: Vec<Kept> = self.window.kept().cloned().collect();
        let moved = self.store(batch).await;
        all.left_window += moved.left_window;
        all.stored += moved.stored;
        all.kept_because = moved.kept_because.or(all.kept_because);
        all
    }
}

async fn store(memory: &Result<Memory, String>, exchanges: Vec<Exchange>) -> Result<(), String> {
    match memory {
        Ok(memory) => memory.store(exchanges).await.map_err(|error| error.to_string()),
        Err(why) => Err(why.clone()),
    }
}
