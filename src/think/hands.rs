//! Running the three tools: the memory, the camera and the body, each with its own way to fail.
//!
//! A tool never fails the turn: what went wrong is a [`ToolResult`] that the brain is told.

use std::sync::Arc;

use super::tools::{About, RememberArguments, Tool, ToolResult};
use super::when::{self, When};
use crate::act::{Motion, Movement};
use crate::clock::Clock;
use crate::remember::{Exchange, Memory, Query};
use crate::robot::{Annotation, Direction, Gesture, Robot, RobotError};

/// What the tools work with. Shared by the turns of one conversation.
#[derive(Clone)]
pub struct Hands {
    /// The memory, or why there is none.
    pub memory: Result<Memory, String>,
    pub robot: Arc<dyn Robot>,
    pub motion: Arc<Motion>,
    pub clock: Clock,
}

impl Hands {
    /// Runs one tool. `just_said` are the exchanges that are still in the window.
    pub async fn run(&self, tool: &Tool, just_said: Vec<Exchange>) -> ToolResult {
        match tool {
            Tool::Remember(arguments) => self.remember(arguments, just_said).await,
            Tool::Camera { direction } => self.look(*direction).await,
            Tool::Move { gesture } => self.gesture(*gesture).await,
        }
    }

    async fn remember(&self, arguments: &RememberArguments, just_said: Vec<Exchange>) -> ToolResult {
        let memory = match &self.memory {
            Ok(memory) => memory,
            Err(why) => return ToolResult::CouldNotLook { why: why.clone() },
        };
        match arguments.about {
            About::Said | About::Any => {}
            About::Seen => return could_not("I do not keep pictures yet, so I cannot say what I saw"),
            About::Me => return could_not("I do not know faces yet, so I cannot tell who you are"),
            About::Taught => return could_not("I was given no facts yet"),
        }
        let now = self.clock.now_here();
        let when = match arguments.when.as_deref().map(|words| when::resolve(words, &now)) {
            Some(When::Range(range)) => Some(range),
            Some(When::WhileAway | When::Unknown) | None => None,
        };
        let query =
            Query { text: arguments.query.clone(), about: arguments.about, when, just_said, now: now.timestamp() };
        match memory.recall(query).await {
            Ok(recalled) => ToolResult::Recalled(recalled),
            Err(error) => ToolResult::CouldNotLook { why: error.to_string() },
        }
    }

    async fn look(&self, direction: Direction) -> ToolResult {
        if let Err(error) = self.motion.make(Movement::Look(direction)).await {
            return ToolResult::CouldNotSee { why: error.to_string() };
        }
        let robot = Arc::clone(&self.robot);
        let picture = tokio::task::spawn_blocking(move || robot.picture()).await.unwrap_or_else(|_| {
            Err(RobotError::Failed { part: "camera", why: "it stopped in the middle of a picture".into() })
        });
        match picture {
            Ok(picture) if picture.looked != direction => {
                ToolResult::CouldNotSee { why: "the head did not turn that way".into() }
            }
            Ok(picture) => match picture.annotations {
                Some(annotations) => ToolResult::Seen { sentence: sentence(&annotations) },
                None => ToolResult::CouldNotSee { why: "I have a picture but no way to see what is in it".into() },
            },
            Err(error) => ToolResult::CouldNotSee { why: error.to_string() },
        }
    }

    async fn gesture(&self, gesture: Gesture) -> ToolResult {
        match self.motion.make(Movement::Gesture(gesture)).await {
            Ok(()) => ToolResult::Moved { gesture },
            Err(error) => ToolResult::CouldNotMove { why: error.to_string() },
        }
    }
}

fn could_not(why: &str) -> ToolResult {
    ToolResult::CouldNotLook { why: why.into() }
}

/// What is in a picture as a sentence: "I see a cup and two people."
#[must_use]
pub fn sentence(annotations: &[Annotation]) -> String {
    let mut labels: Vec<(&str, usize)> = Vec::new();
    for annotation in annotations {
        match labels.iter_mut().find(|(label, _)| *label == annotation.label) {
            Some((_, count)) => *count += 1,
            None => labels.push((&annotation.label, 1)),
        }
    }
    let things: Vec<String> = labels.into_iter().map(|(label, count)| counted(label, count)).collect();
    match things.as_slice() {
        [] => "I see nothing that I know.".into(),
        [one] => format!("I see {one}."),
        [first @ .., last] => format!("I see {} and {last}.", first.join(", ")),
    }
}

fn counted(label: &str, count: usize) -> String {
    const NUMBERS: [&str; 4] = ["two", "three", "four", "five"];
    if count == 1 {
        let article = if label.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        return format!("{article} {label}");
    }
    let number = NUMBERS.get(count - 2).map_or_else(|| count.to_string(), |word| (*word).into());
    let plural = match label {
        "person" => "people".into(),
        "mouse" => "mice".into(),
        "knife" => "knives".into(),
        "sheep" | "scissors" | "skis" => label.to_owned(),
        _ if label.ends_with(['s', 'x']) || label.ends_with("ch") => format!("{label}es"),
        _ => format!("{label}s"),
    };
    format!("{number} {plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_told_as_a_sentence() {
        let picture = |labels: &[&str]| {
            let annotations: Vec<_> =
                labels.iter().map(|label| Annotation { label: (*label).into(), place: None }).collect();
            sentence(&annotations)
        };
        assert_eq!(picture(&[]), "I see nothing that I know.");
        assert_eq!(picture(&["orange"]), "I see an orange.");
        assert_eq!(picture(&["person", "cup", "person"]), "I see two people and a cup.");
        assert_eq!(
            picture(&["wine glass", "wine glass", "cat", "couch"]),
            "I see two wine glasses, a cat and a couch."
        );
    }
}
