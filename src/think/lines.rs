//! Fixed sentences that the robot says where no brain is asked. They are spoken, and never stored as an answer of one.

/// Said once when the laptop stops answering.
pub const LAPTOP_AWAY: &str = "My laptop does not answer, so I answer from my own memory until it is back.";
/// Said once when the laptop answers again.
pub const LAPTOP_BACK: &str = "My laptop is back.";
/// Said when the laptop is there but its model still loads.
pub const LAPTOP_WAKING: &str = "My laptop is still waking up, so I answer from my own memory.";
/// Said instead of an answer that was no use, or none.
pub const NO_ANSWER: &str = "I did not find an answer to that. Could you say it again in other words?";
/// Said when neither the laptop nor the robot's own text model is there.
pub const NO_BRAIN: &str =
    "I heard you, but I cannot think: my laptop does not answer and my own text model is not installed.";
/// Said when the answer broke off after it had begun.
pub const BROKE_OFF: &str = "I lost the rest of my answer.";
/// Said when somebody known comes into view, once a visit.
#[must_use]
pub fn greeting(name: &str) -> String {
    format!("Hello, {name}!")
}
/// Said to a stranger, after the answer to what they said.
pub const ASK_NAME: &str = "We have not met yet. What is your name?";
/// Said when a new face and its name were stored.
#[must_use]
pub fn pleased_to_meet(name: &str) -> String {
    format!("Nice to meet you, {name}. I will remember you.")
}
/// Said when there was a name, and the face could not be stored.
pub const NAME_NOT_KEPT: &str = "I heard your name, but I could not remember your face. I am sorry.";
/// Why questions about a person cannot be answered while no face can be seen; the end of "I cannot look …: ".
pub const NO_FACES_NOW: &str = "I cannot see faces now";
