//! Running the three tools: the memory, the camera and the body, each with its own way to fail.
//!
//! A tool never fails the turn: what went wrong is a [`ToolResult`] that the brain is told.

mod people;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use uuid::Uuid;

use super::brain::{DatedPicture, MOST_PICTURES, PictureKind};
use super::company::Company;
use super::told;
use super::tools::{About, RememberArguments, Tool, ToolResult};
use super::when::{self, When};
use crate::act::{Motion, Movement};
use crate::clock::Clock;
use crate::remember::knowledge::{Answer, Knowledge};
use crate::remember::stores;
use crate::remember::{Exchange, Frame, HowSeen, Memory, Query, Recalled, SeenFrame};
use crate::robot::{Direction, Gesture, Picture, Robot, RobotError};
use crate::see::eye::Seen;
use crate::see::sight::Sight;
use crate::see::told as seen_told;

/// What the tools work with. Shared by the turns of one conversation.
#[derive(Clone)]
pub struct Hands {
    /// The memory, or why there is none.
    pub memory: Result<Memory, String>,
    /// What the robot was taught, or why it was taught nothing.
    pub knowledge: Result<Knowledge, String>,
    pub robot: Arc<dyn Robot>,
    pub motion: Arc<Motion>,
    /// The eye, or why there is none.
    pub sight: Result<Sight, String>,
    /// Who is in the room, or why nobody is recognised, as a clause.
    pub company: Result<Company, String>,
    /// True while the head is turned for a look, so that the seeing thread does not take that for a change.
    pub head_turned: Arc<AtomicBool>,
    pub clock: Clock,
}

/// The moment of a turn that a tool runs in.
pub struct Moment {
    /// When the turn began; what was seen since is the present, not a memory.
    pub now: Timestamp,
    /// The name of the one who asks, where it is certain.
    pub speaker: Option<String>,
    /// The exchanges that are still in the window.
    pub just_said: Vec<Exchange>,
    /// Whether the brain can be shown pictures.
    pub shows_pictures: bool,
}

/// What a tool came to.
#[derive(Debug)]
pub struct Done {
    pub result: ToolResult,
    /// Pictures that say more than the result's words.
    pub pictures: Option<Pictures>,
    /// The look that was kept; what is said about it becomes its caption.
    pub look: Option<Look>,
}

/// A look on purpose, as it was kept.
#[derive(Clone, Debug)]
pub struct Look {
    pub frame: Uuid,
    /// What the detector found, as a sentence of now.
    pub sentence: String,
}

/// Pictures for a brain that sees.
#[derive(Debug)]
pub struct Pictures {
    pub kind: PictureKind,
    pub pictures: Vec<DatedPicture>,
}

impl From<ToolResult> for Done {
    fn from(result: ToolResult) -> Self {
        Self { result, pictures: None, look: None }
    }
}

impl Hands {
    /// Runs one tool.
    pub async fn run(&self, tool: &Tool, moment: &Moment) -> Done {
        match tool {
            Tool::Remember(arguments) => self.remember(arguments, moment).await,
            Tool::Camera { direction } => self.look(*direction, moment).await,
            Tool::Move { gesture } => self.gesture(*gesture).await.into(),
        }
    }

    async fn remember(&self, arguments: &RememberArguments, moment: &Moment) -> Done {
        let could_not = |why: String| Done::from(ToolResult::CouldNotLook { why });
        if arguments.about == About::Taught {
            return match self.taught(&arguments.query).await {
                Ok(answer) => ToolResult::Recalled(answer.recalled()).into(),
                Err(why) => could_not(why),
            };
        }
        let here = moment.now.to_zoned(self.clock.zone().clone());
        let words = arguments.when.as_deref().filter(|words| !words.trim().is_empty());
        let resolved = words.map(|words| when::resolve(words, &here));
        let (asks_away, mut since) = (resolved == Some(When::WhileAway), None);
        let when = match resolved {
            Some(When::Range(range)) => Some(range),
            Some(When::WhileAway) => {
                since = self.away_since(moment).await;
                match (since, when::resolve("today", &here)) {
                    (Some(since), _) => Some(people::range(since, moment.now)),
                    // Nobody known asks: the day is what can be told.
                    (None, When::Range(range)) => Some(range),
                    (None, When::WhileAway | When::Unknown) => None,
                }
            }
            Some(When::Unknown) => {
                let why = format!(
                    "the time “{}” was not understood; call `remember` again without `when`, or with words such as \
                     \"yesterday\" or \"on Monday\", and say that you searched another time",
                    words.unwrap_or_default()
                );
                return ToolResult::Refused { why }.into();
            }
            None => None,
        };
        let query = Query {
            text: arguments.query.clone(),
            about: arguments.about,
            when,
            direction: arguments.direction,
            just_said: moment.just_said.clone(),
            now: moment.now,
        };
        let recalled = match arguments.about {
            About::Said | About::Taught => self.recalled(query).await,
            _ if asks_away => self.while_away(query, since, moment).await,
            About::Me => self.of_person(query, moment).await,
            About::Seen | About::Any => self.of_seen(query).await,
        };
        let recalled = match recalled {
            Ok(recalled) => recalled,
            Err(why) => return could_not(why),
        };
        let pictures = match (&recalled, &self.memory) {
            (Recalled::Seen { frames, how }, Ok(memory)) if moment.shows_pictures => {
                self.pictures(memory, frames, *how, moment.now).await
            }
            _ => None,
        };
        Done { result: ToolResult::Recalled(recalled), pictures, look: None }
    }

    async fn of_person(&self, query: Query, moment: &Moment) -> Result<Recalled, String> {
        match self.about_person(&query, moment).await? {
            Some(recalled) => Ok(recalled),
            // Whoever was seen.
            None => self.of_seen(Query { about: About::Seen, ..query }).await,
        }
    }

    async fn of_seen(&self, query: Query) -> Result<Recalled, String> {
        if query.about == About::Seen
            && let Some(recalled) = self.seen_person(&query).await?
        {
            return Ok(recalled);
        }
        self.recalled(query).await
    }

    /// What the memory answers, and what the robot was taught where that was asked for too. A store that cannot be
    /// searched is passed over only where the other one has an answer.
    async fn recalled(&self, query: Query) -> Result<Recalled, String> {
        let asks_facts = query.about == About::Any
            && stores::facts_may_answer(query.when, query.direction)
            && self.knowledge.is_ok();
        let question = query.text.clone();
        let memory = match &self.memory {
            Ok(memory) => memory.recall(query).await.map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        if !asks_facts || question.trim().is_empty() {
            return memory;
        }
        match (memory, self.taught(&question).await) {
            (Ok(memory), Ok(answer)) => Ok(stores::choose(answer.facts, memory, self.gates())),
            (Err(_), Ok(answer)) if !answer.facts.is_empty() => Ok(answer.recalled()),
            (Err(why), _) | (Ok(Recalled::Nothing { .. }), Err(why)) => Err(why),
            (Ok(memory), Err(_)) => Ok(memory),
        }
    }

    /// The facts that answer a question, or why they cannot be searched.
    async fn taught(&self, question: &str) -> Result<Answer, String> {
        let knowledge = self.knowledge.as_ref().map_err(Clone::clone)?;
        knowledge.recall(question).await.map_err(|error| error.to_string())
    }

    fn gates(&self) -> stores::Gates {
        let exchange = self.memory.as_ref().map_or(1.0, Memory::exchange_gate);
        stores::Gates { fact: self.knowledge.as_ref().map_or(1.0, Knowledge::gate), exchange }
    }

    /// The pictures of what was found: one for a thing, several for a day. Several looks at a thing are one line each,
    /// which the result's words hold already.
    async fn pictures(&self, memory: &Memory, frames: &[SeenFrame], how: HowSeen, now: Timestamp) -> Option<Pictures> {
        let (kind, most) = match how {
            HowSeen::Sampled { .. } => (PictureKind::Day, MOST_PICTURES),
            HowSeen::Named | HowSeen::LastLook => (PictureKind::Memory, 1),
        };
        if kind == PictureKind::Memory && frames.len() > 1 {
            return None;
        }
        let ids = frames.iter().take(most).map(|seen| seen.frame.id()).collect();
        let whole = memory.pictures(ids).await.ok()?;
        let pictures: Vec<DatedPicture> = whole
            .into_iter()
            .filter(|frame| !frame.jpeg.is_empty())
            .map(|frame| DatedPicture { note: told::frame_note(&frame, now, self.clock.zone()), jpeg: frame.jpeg })
            .collect();
        (!pictures.is_empty()).then_some(Pictures { kind, pictures })
    }

    /// Turns the head, takes the picture there, keeps it, and turns back.
    async fn look(&self, direction: Direction, moment: &Moment) -> Done {
        let sight = match &self.sight {
            Ok(sight) => sight.clone(),
            Err(why) => return ToolResult::CouldNotSee { why: why.clone() }.into(),
        };
        self.head_turned.store(direction != Direction::Ahead, Ordering::Release);
        let seen = self.look_with(sight, direction).await;
        if direction != Direction::Ahead {
            // A head that does not come back is seen at the next look; this one is over.
            let _ = self.motion.make(Movement::Look(Direction::Ahead)).await;
        }
        self.head_turned.store(false, Ordering::Release);
        let seen = match seen {
            Ok(seen) => seen,
            Err(why) => return ToolResult::CouldNotSee { why }.into(),
        };
        let names = self.names_in(&seen).await;
        let sentence = seen_told::now_sentence(&seen_told::detected(&seen.detections), seen.looked, &names);
        let pictures = (moment.shows_pictures && !seen.jpeg.is_empty()).then(|| Pictures {
            kind: PictureKind::Now,
            pictures: vec![DatedPicture { jpeg: seen.jpeg.clone(), note: sentence.clone() }],
        });
        let frame = frame_of(seen, names);
        let id = frame.id();
        let kept = match &self.memory {
            Ok(memory) => memory.store_frame(frame).await.map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        if let Err(why) = &kept {
            tracing::warn!(why, "a look was not kept");
        }
        let look = kept.is_ok().then(|| Look { frame: id, sentence: sentence.clone() });
        Done { result: ToolResult::Seen { sentence }, pictures, look }
    }

    /// Who is certainly in the picture of a look.
    async fn names_in(&self, seen: &Seen) -> Vec<String> {
        let Ok(company) = &self.company else { return Vec::new() };
        company.names_in(&seen.faces).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "who is in a picture could not be looked up");
            Vec::new()
        })
    }

    async fn look_with(&self, sight: Sight, direction: Direction) -> Result<Seen, String> {
        self.motion.make(Movement::Look(direction)).await.map_err(|error| error.to_string())?;
        let (robot, clock) = (Arc::clone(&self.robot), self.clock.clone());
        let look = move || -> Result<Seen, String> {
            let picture = robot.picture().map_err(|error| error.to_string())?;
            turned(&picture, direction)?;
            sight.look(&picture, clock.now()).map_err(|error| error.to_string())
        };
        let stopped = RobotError::Failed { part: "camera", why: "it stopped in the middle of a picture".into() };
        tokio::task::spawn_blocking(look).await.unwrap_or_else(|_| Err(stopped.to_string()))
    }

    async fn gesture(&self, gesture: Gesture) -> ToolResult {
        match self.motion.make(Movement::Gesture(gesture)).await {
            Ok(()) => ToolResult::Moved { gesture },
            Err(error) => ToolResult::CouldNotMove { why: error.to_string() },
        }
    }
}

/// A picture of the wrong side is worse than none.
fn turned(picture: &Picture, direction: Direction) -> Result<(), String> {
    if picture.looked == direction { Ok(()) } else { Err("the head did not turn that way".into()) }
}

/// A frame for the memory; `names` are those who are certainly in it.
#[must_use]
pub fn frame_of(seen: Seen, names: Vec<String>) -> Frame {
    let sentence = seen_told::sentence(&seen_told::detected(&seen.detections), seen.looked, &names);
    Frame {
        seen_at: seen.at,
        looked: seen.looked,
        labels: seen.labels,
        detections: seen.detections,
        names,
        people: seen.people,
        sentence,
        caption: None,
        jpeg: seen.jpeg,
    }
}
