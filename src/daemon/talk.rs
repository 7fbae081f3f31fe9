//! The loop of the conversation: one thing at a time, be it an utterance, a greeting, or a command that changes what is
//! known of a person.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, watch};

use super::Event;
use super::listening::{Noticed, Shared};
use crate::act::{Mouth, Spoken, TurnId};
use crate::control::Reword;
use crate::listen::Heard;
use crate::listen::whisper::{HearError, Whisper};
use crate::remember::Exchange;
use crate::remember::people::spoken_name;
use crate::robot::Attention;
use crate::think::company::{Company, Deed};
use crate::think::conversation::{Conversation, Said};
use crate::think::turn::{Speak, Step};
use crate::think::visit::Speaker;
use crate::think::{lines, offline};

/// Deeds of the seeing thread that may wait: a greeting each for as many people as come in at once.
pub const COURTESIES: usize = 8;
/// A greeting waits so long at most for somebody who is speaking: then it is out of place.
const OUT_OF_PLACE: Duration = Duration::from_secs(10);
/// Time is told to the company this often.
const TICK: Duration = Duration::from_secs(5);
/// Whether the one who is speaking has finished is looked at this often.
const WAIT_A_MOMENT: Duration = Duration::from_millis(200);

/// What reaches the loop from elsewhere.
pub struct Incoming {
    /// `None` where the robot does not hear.
    pub utterances: Option<mpsc::Receiver<Noticed>>,
    pub whisper: Option<Arc<Whisper>>,
    /// What the seeing thread wants to be done.
    pub courtesies: mpsc::Receiver<Deed>,
    /// Commands that change a name.
    pub rewords: mpsc::Receiver<Reword>,
    pub ending: watch::Receiver<bool>,
}

/// The loop of the conversation.
pub struct Talk<'a> {
    pub shared: &'a Shared,
    pub mouth: &'a Mouth,
    pub conversation: &'a mut Conversation,
    pub company: Option<Company>,
    pub turn: TurnId,
}

impl Talk<'_> {
    /// Runs until the microphone's script ends or the process does.
    pub async fn until_the_end(&mut self, mut incoming: Incoming) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut polite: VecDeque<(Instant, Deed)> = VecDeque::new();
        let mut ending = incoming.ending.clone();
        loop {
            tokio::select! {
                biased;
                _ = ending.wait_for(|ending| *ending) => return,
                Some(reword) = incoming.rewords.recv() => self.reword(reword).await,
                noticed = next(&mut incoming.utterances) => {
                    let Some(noticed) = noticed else {
                        if !self.shared.deaf.load(Ordering::Acquire) {
                            return;
                        }
                        // Deaf, and still there: it sees, greets, and commands reach the memory.
                        incoming.utterances = None;
                        continue;
                    };
                    if let Some(whisper) = &incoming.whisper {
                        self.hear(noticed, whisper).await;
                    }
                    self.shared.robot.attend(Attention::Idle);
                }
                Some(deed) = incoming.courtesies.recv(), if polite.len() < COURTESIES => {
                    polite.push_back((Instant::now(), deed));
                }
                () = tokio::time::sleep(WAIT_A_MOMENT), if !polite.is_empty() => {}
                _ = ticks.tick() => {
                    if let Some(company) = &self.company {
                        let deeds = company.tick().await;
                        self.carry_out(deeds).await;
                    }
                }
            }
            if !self.shared.hears_speech.load(Ordering::Acquire) {
                while let Some((since, deed)) = polite.pop_front() {
                    if since.elapsed() < OUT_OF_PLACE {
                        self.carry_out(vec![deed]).await;
                    }
                }
            }
        }
    }

    async fn reword(&mut self, Reword { change, done }: Reword) {
        if let Some(company) = &self.company {
            company.changes(&change).await;
        }
        let changed = Cell::new(0);
        let reword = |exchange: Exchange| {
            let after = change.exchange(&exchange);
            changed.set(changed.get() + usize::from(after.as_ref() != Some(&exchange)));
            after
        };
        let outcome = self.conversation.change(&reword).map_err(|error| error.to_string());
        // Who asked may have given up.
        drop(done.send(outcome.map(|()| changed.get())));
    }

    async fn hear(&mut self, Noticed { utterance, at }: Noticed, whisper: &Whisper) {
        let diary = Arc::clone(&self.shared.diary);
        let seconds = utterance.samples.len() as f64 / f64::from(crate::listen::RATE);
        let heard = match whisper.transcribe(utterance).await {
            Ok(heard) => heard,
            Err(HearError::Rejected(why)) => return diary(&Event::NotHeard { why: why.to_string() }),
            Err(error) => {
                self.shared.health.set("hearing", false, error.to_string());
                return diary(&Event::Trouble { what: error.to_string() });
            }
        };
        self.shared.health.set("hearing", true, "understands what is said");
        diary(&Event::Heard { heard: heard.clone(), seconds, after: at.elapsed() });
        self.shared.robot.attend(Attention::Thinking);
        let Some(company) = self.company.clone() else { return self.answer(heard, None).await };
        let mut speaker = None;
        let mut introduced = false;
        for deed in company.hear(heard.started_at, &heard.text).await {
            match deed {
                Deed::WordsAre { speaker: who } => speaker = Some(who),
                Deed::ReadName { words } => introduced |= self.read_name(&company, &words, &heard).await,
                other => self.carry_out(vec![other]).await,
            }
        }
        // A reply to the name question was answered by it, unless it asks something itself.
        if !introduced || offline::asks(&heard.text) {
            self.answer(heard, speaker).await;
        }
        let deeds = company.answered().await;
        self.carry_out(deeds).await;
    }

    /// Reads the name out of a reply; answers whether somebody was introduced by it.
    async fn read_name(&mut self, company: &Company, words: &str, heard: &Heard) -> bool {
        let name = self.conversation.read_name(words).await;
        let mut introduced = false;
        for deed in company.name_read(name).await {
            match deed {
                Deed::Met { name, since, until } => {
                    let line = lines::pleased_to_meet(spoken_name(&name));
                    (self.shared.diary)(&Event::Met { name: name.clone(), line: line.clone() });
                    self.say_line(line.clone()).await;
                    let exchange = Exchange {
                        heard: heard.text.clone(),
                        said: line,
                        speaker: Some(name.clone()),
                        said_at: heard.started_at,
                    };
                    let diary = Arc::clone(&self.shared.diary);
                    self.conversation.note(exchange, &|step| diary(&Event::Step(step))).await;
                    self.name_words(&name, since, until).await;
                    introduced = true;
                }
                other => self.carry_out(vec![other]).await,
            }
        }
        introduced
    }

    async fn answer(&mut self, heard: Heard, speaker: Option<Speaker>) {
        self.turn += 1;
        let began = Instant::now();
        let mut voice = TurnVoice { shared: self.shared, mouth: self.mouth, turn: self.turn };
        let said = Said { text: heard.text, speaker: speaker.map(|who| who.name), at: heard.started_at };
        let (health, diary) = (Arc::clone(&self.shared.health), Arc::clone(&self.shared.diary));
        let witness = |step| {
            if let Step::Asked { brain } = &step {
                health.set("brain", true, format!("{brain} was asked last"));
            }
            diary(&Event::Step(step));
        };
        let report = self.conversation.turn(said, &mut voice, &witness).await;
        match &report.mute {
            Some(why) => self.shared.health.set("voice", false, why.clone()),
            None => self.shared.health.set("voice", true, "speaks"),
        }
        diary(&Event::TurnEnded { report, took: began.elapsed(), at: self.shared.clock.now() });
    }

    /// Greets, asks, and says what went wrong.
    async fn carry_out(&mut self, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Greet { name } => {
                    let line = lines::greeting(spoken_name(&name));
                    (self.shared.diary)(&Event::Greeted { name, line: line.clone() });
                    self.say_line(line).await;
                }
                Deed::AskName => {
                    (self.shared.diary)(&Event::AskedName { line: lines::ASK_NAME.to_owned() });
                    self.say_line(lines::ASK_NAME.to_owned()).await;
                }
                Deed::Met { name, since, until } => self.name_words(&name, since, until).await,
                Deed::Trouble { what } => (self.shared.diary)(&Event::Trouble { what }),
                // These belong to an utterance, and are dealt with there.
                Deed::ReadName { .. } | Deed::WordsAre { .. } => {}
            }
        }
    }

    async fn name_words(&mut self, name: &str, since: jiff::Timestamp, until: jiff::Timestamp) {
        if let Err(why) = self.conversation.name_words(name, since, until).await {
            (self.shared.diary)(&Event::Trouble {
                what: format!("what {name} said before was not marked as theirs: {why}"),
            });
        }
    }

    /// Says a sentence that is no answer.
    async fn say_line(&mut self, line: String) {
        self.turn += 1;
        let mut voice = TurnVoice { shared: self.shared, mouth: self.mouth, turn: self.turn };
        voice.speak(line).await;
        let spoken = voice.finished().await;
        if let Some(why) = spoken.mute {
            self.shared.health.set("voice", false, why);
        }
        self.shared.robot.attend(Attention::Idle);
    }
}

/// The next utterance; never one where the robot does not hear.
async fn next(utterances: &mut Option<mpsc::Receiver<Noticed>>) -> Option<Noticed> {
    match utterances {
        Some(utterances) => utterances.recv().await,
        None => std::future::pending().await,
    }
}

/// The voice of one turn.
struct TurnVoice<'a> {
    shared: &'a Shared,
    mouth: &'a Mouth,
    turn: TurnId,
}

impl Speak for TurnVoice<'_> {
    fn speak(&mut self, sentence: String) -> BoxFuture<'_, ()> {
        async move {
            self.shared.speaking.store(true, Ordering::Release);
            self.shared.robot.attend(Attention::Speaking);
            if let Err(error) = self.mouth.speak(self.turn, sentence).await {
                self.shared.health.set("voice", false, error.to_string());
            }
        }
        .boxed()
    }

    fn finished(&mut self) -> BoxFuture<'_, Spoken> {
        async move {
            let spoken = self
                .mouth
                .finished(self.turn)
                .await
                .unwrap_or_else(|error| Spoken { mute: Some(error.to_string()), ..Spoken::default() });
            self.shared.speaking.store(false, Ordering::Release);
            spoken
        }
        .boxed()
    }
}
