//! The three tools that reach the world, their arguments, and what they answer.
//!
//! `remember` searches the memory, `camera` looks now, `move` makes a gesture. Arguments are validated here; what
//! does not validate never runs and never stays in the conversation's history.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::remember::Recalled;
use crate::robot::{Direction, Gesture};

use super::words::tool_words;

/// The tools' names, in the order in which the model reads them.
pub const NAMES: [&str; 3] = ["remember", "camera", "move"];

/// The longest argument, in characters. Not measured: a question of a hundred words has about 500.
pub const LONGEST_ARGUMENT: usize = 500;

/// A call that may run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub id: String,
    pub tool: Tool,
}

/// A tool with its validated arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    Remember(RememberArguments),
    Camera { direction: Direction },
    Move { gesture: Gesture },
}

/// What `remember` is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct RememberArguments {
    /// What to look for, in the person's words.
    pub query: String,
    pub about: About,
    pub direction: Option<Direction>,
    /// The person's own words for a time, as in "this morning"; resolved on the robot, never by the model.
    pub when: Option<String>,
}

/// Which part of the memory a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    Seen,
    Said,
    Me,
    Taught,
    #[default]
    Any,
}

/// What a tool answered. "Nothing found" and "could not look" are different values down to the model's sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    Recalled(Recalled),
    /// The memory could not be searched; the sentence says why.
    CouldNotLook {
        why: String,
    },
    /// What the camera shows now, as a sentence, as in "I see a cup and a person."
    Seen {
        sentence: String,
    },
    /// The camera gave no picture, or the head did not turn.
    CouldNotSee {
        why: String,
    },
    Moved {
        gesture: Gesture,
    },
    CouldNotMove {
        why: String,
    },
    /// The call itself was wrong; the sentence says what is allowed.
    Refused {
        why: String,
    },
}

/// Why a call from a model cannot run, as a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCall(pub String);

impl About {
    /// Every part, in the order in which the model reads them.
    pub const ALL: [Self; 5] = [Self::Seen, Self::Said, Self::Me, Self::Taught, Self::Any];

    /// The name in the tool's arguments.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Said => "said",
            Self::Me => "me",
            Self::Taught => "taught",
            Self::Any => "any",
        }
    }
}

/// The directions, in the order in which the model reads them.
const DIRECTIONS: [Direction; 3] = [Direction::Ahead, Direction::Left, Direction::Right];

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ahead => "ahead",
        Direction::Left => "left",
        Direction::Right => "right",
    }
}

impl Tool {
    /// The tool's name, as a server sends it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Remember(_) => "remember",
            Self::Camera { .. } => "camera",
            Self::Move { .. } => "move",
        }
    }

    /// The arguments as a JSON object; [`ToolCall::parse`] makes the same tool of it again.
    #[must_use]
    pub fn arguments(&self) -> Value {
        match self {
            Self::Remember(asked) => {
                let mut object = Map::new();
                object.insert("query".into(), json!(asked.query));
                object.insert("about".into(), json!(asked.about.name()));
                if let Some(direction) = asked.direction {
                    object.insert("direction".into(), json!(direction_name(direction)));
                }
                if let Some(when) = &asked.when {
                    object.insert("when".into(), json!(when));
                }
                Value::Object(object)
            }
            Self::Camera { direction } => json!({ "direction": direction_name(*direction) }),
            Self::Move { gesture } => json!({ "gesture": gesture.name() }),
        }
    }
}

impl ToolCall {
    /// Validates a call as a server sent it: `arguments` may be an object, a string that holds one, empty or null.
    /// Missing optional arguments take their defaults, unknown ones are passed over; an empty `query` is allowed only
    /// where the rest says what is asked for (`when`, or `about` as `seen`, `said` or `me`).
    ///
    /// # Errors
    /// [`InvalidCall`] for an unknown tool, a missing `query` or `gesture`, or a value that is not offered.
    pub fn parse(id: &str, name: &str, arguments: &Value) -> Result<Self, InvalidCall> {
        let name = name.trim();
        if !NAMES.contains(&name) {
            return Err(InvalidCall(format!(
                "There is no tool called {:?}. The tools are {}.",
                shortened(name),
                NAMES.join(", ")
            )));
        }
        let arguments = Arguments { tool: name, object: object_in(name, arguments)? };
        let tool = match name {
            "remember" => Tool::Remember(remember(&arguments)?),
            "camera" => Tool::Camera { direction: direction(&arguments)?.unwrap_or_default() },
            _ => Tool::Move { gesture: gesture(&arguments)? },
        };
        Ok(Self { id: id.to_owned(), tool })
    }

    /// The call as it stands in an assistant message of the history: its arguments are always valid JSON, because a
    /// malformed one makes llama-server refuse every later turn.
    #[must_use]
    pub fn to_wire(&self) -> Value {
        wire_call(&self.id, self.tool.name(), &self.tool.arguments())
    }
}

/// An entry of `tool_calls`; `arguments` go as a string, which is what every server reads.
pub(crate) fn wire_call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() } })
}

/// The `tools` array of a request. The values that are offered are the ones that [`ToolCall::parse`] takes.
#[must_use]
pub fn schemas() -> Value {
    let about: Vec<&str> = About::ALL.iter().map(|about| about.name()).collect();
    let directions: Vec<&str> = DIRECTIONS.iter().map(|direction| direction_name(*direction)).collect();
    let gestures: Vec<&str> = Gesture::ALL.iter().map(|gesture| gesture.name()).collect();
    json!([
        schema(
            "remember",
            json!({
                "query": { "type": "string", "description": tool_words("remember.query") },
                "about": { "type": "string", "enum": about, "description": tool_words("remember.about") },
                "direction": { "type": "string", "enum": directions, "description": tool_words("remember.direction") },
                "when": { "type": "string", "description": tool_words("remember.when") },
            }),
            &["query"],
        ),
        schema(
            "camera",
            json!({
                "direction": { "type": "string", "enum": directions, "description": tool_words("camera.direction") },
            }),
            &[],
        ),
        schema(
            "move",
            json!({
                "gesture": { "type": "string", "enum": gestures, "description": tool_words("move.gesture") },
            }),
            &["gesture"],
        ),
    ])
}

fn schema(name: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": name,
            "description": tool_words(name),
            "parameters": { "type": "object", "properties": properties, "required": required },
        },
    })
}

/// The arguments of one call, with the tool's name for the sentences.
struct Arguments<'a> {
    tool: &'a str,
    object: Map<String, Value>,
}

impl Arguments<'_> {
    /// The words under `key`, trimmed; `None` where it is missing, null or empty.
    fn words(&self, key: &str) -> Result<Option<&str>, InvalidCall> {
        match self.object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(words)) if words.chars().count() > LONGEST_ARGUMENT => Err(InvalidCall(format!(
                "`{key}` of `{}` is longer than {LONGEST_ARGUMENT} characters; use fewer words.",
                self.tool
            ))),
            Some(Value::String(words)) => Ok(Some(words.trim()).filter(|words| !words.is_empty())),
            Some(_) => Err(InvalidCall(format!("`{key}` of `{}` must be a text.", self.tool))),
        }
    }

    /// The one of `offered` that is named under `key`. Case, spaces and hyphens do not matter.
    fn choice<T: Copy>(
        &self,
        key: &str,
        offered: &[T],
        name: impl Fn(T) -> &'static str,
    ) -> Result<Option<T>, InvalidCall> {
        let Some(words) = self.words(key)? else { return Ok(None) };
        let asked = words.to_lowercase().replace([' ', '-'], "_");
        match offered.iter().find(|offer| name(**offer) == asked) {
            Some(offer) => Ok(Some(*offer)),
            None => Err(InvalidCall(format!(
                "`{key}` of `{}` cannot be {:?}; it is one of {}.",
                self.tool,
                shortened(words),
                offered.iter().map(|offer| name(*offer)).collect::<Vec<_>>().join(", ")
            ))),
        }
    }
}

fn direction(arguments: &Arguments<'_>) -> Result<Option<Direction>, InvalidCall> {
    arguments.choice("direction", &DIRECTIONS, direction_name)
}

fn gesture(arguments: &Arguments<'_>) -> Result<Gesture, InvalidCall> {
    arguments.choice("gesture", &Gesture::ALL, Gesture::name)?.ok_or_else(|| {
        let names: Vec<&str> = Gesture::ALL.iter().map(|gesture| gesture.name()).collect();
        InvalidCall(format!("`move` needs `gesture`: one of {}.", names.join(", ")))
    })
}

fn remember(arguments: &Arguments<'_>) -> Result<RememberArguments, InvalidCall> {
    let about = arguments.choice("about", &About::ALL, About::name)?.unwrap_or_default();
    let when = arguments.words("when")?.map(str::to_owned);
    let query = arguments.words("query")?.unwrap_or_default().to_owned();
    let says_enough = match about {
        About::Seen | About::Said | About::Me => true,
        About::Any => when.is_some(),
        About::Taught => false,
    };
    if query.is_empty() && !says_enough {
        return Err(InvalidCall(
            "`remember` needs `query`: what to look for, in the person's own words, as in \"where I left my keys\"."
                .into(),
        ));
    }
    Ok(RememberArguments { query, about, direction: direction(arguments)?, when })
}

/// The object in `arguments`, which servers send as an object, as a string, as a string in a string, or not at all.
fn object_in(tool: &str, arguments: &Value) -> Result<Map<String, Value>, InvalidCall> {
    let mut value = arguments.clone();
    for _ in 0..3 {
        match value {
            Value::Object(object) => return Ok(object),
            Value::Null => return Ok(Map::new()),
            Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(inner) => value = inner,
                Err(_) => break,
            },
            _ => break,
        }
    }
    Err(InvalidCall(format!(
        "The arguments of `{tool}` are not one complete JSON object; call it again with all of it."
    )))
}

/// Enough of a wrong word to recognise it.
fn shortened(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, arguments: Value) -> Result<Tool, String> {
        ToolCall::parse("c1", name, &arguments).map(|call| call.tool).map_err(|why| why.0)
    }

    fn asked(query: &str, about: About) -> Tool {
        Tool::Remember(RememberArguments { query: query.into(), about, direction: None, when: None })
    }

    #[test]
    fn arguments_as_an_object_and_as_a_string_are_the_same_call() {
        let wanted = Ok(asked("my keys", About::Said));
        assert_eq!(parsed("remember", json!({"query": "my keys", "about": "said"})), wanted);
        assert_eq!(parsed("remember", json!(r#"{"query": "my keys", "about": "said"}"#)), wanted);
        assert_eq!(parsed("remember", json!(r#""{\"query\":\"my keys\",\"about\":\"said\"}""#)), wanted);
    }

    #[test]
    fn missing_optional_arguments_take_their_defaults() {
        assert_eq!(parsed("remember", json!({"query": " my keys "})), Ok(asked("my keys", About::Any)));
        assert_eq!(
            parsed("remember", json!({"query": "x", "about": null, "direction": "", "when": ""})),
            Ok(asked("x", About::Any))
        );
        for nothing in [json!({}), json!(null), json!(""), json!("{}")] {
            assert_eq!(parsed("camera", nothing), Ok(Tool::Camera { direction: Direction::Ahead }));
        }
    }

    #[test]
    fn a_value_that_is_not_offered_is_refused_with_those_that_are() {
        let why = parsed("camera", json!({"direction": "backwards"})).unwrap_err();
        assert!(why.contains("backwards") && why.contains("ahead, left, right"), "{why}");
        let why = parsed("remember", json!({"query": "x", "about": "dreamt"})).unwrap_err();
        assert!(why.contains("seen, said, me, taught, any"), "{why}");
        let why = parsed("move", json!({"gesture": "fly"})).unwrap_err();
        assert!(why.contains("nod") && why.contains("look_ahead"), "{why}");
        assert!(parsed("move", json!({})).unwrap_err().contains("look_ahead"));
        assert!(parsed("camera", json!({"direction": 3})).unwrap_err().contains("must be a text"));
    }

    #[test]
    fn case_and_spaces_of_an_offered_value_do_not_matter() {
        assert_eq!(parsed("camera", json!({"direction": "Left"})), Ok(Tool::Camera { direction: Direction::Left }));
        assert_eq!(parsed("move", json!({"gesture": "look right"})), Ok(Tool::Move { gesture: Gesture::LookRight }));
    }

    #[test]
    fn an_unknown_tool_is_refused_by_name() {
        let why = parsed("get_weather", json!({})).unwrap_err();
        assert!(why.contains("get_weather") && why.contains("remember, camera, move"), "{why}");
    }

    #[test]
    fn an_empty_query_is_allowed_only_where_the_rest_says_what_is_asked() {
        assert!(parsed("remember", json!({"query": "", "about": "seen"})).is_ok());
        assert!(parsed("remember", json!({"about": "said"})).is_ok());
        assert!(parsed("remember", json!({"query": " ", "about": "me"})).is_ok());
        assert!(parsed("remember", json!({"when": "yesterday"})).is_ok());
        assert!(parsed("remember", json!({"query": ""})).unwrap_err().contains("`query`"));
        assert!(parsed("remember", json!({"about": "taught", "when": "yesterday"})).is_err());
        assert!(parsed("remember", json!({"question": "my keys"})).unwrap_err().contains("`query`"));
    }

    #[test]
    fn truncated_arguments_and_other_json_never_run() {
        for broken in [json!(r#"{"query": "my ke"#), json!("my keys"), json!([1]), json!(7), json!("[]")] {
            assert!(parsed("remember", broken.clone()).unwrap_err().contains("complete JSON object"), "{broken}");
        }
        let why = parsed("remember", json!({"query": "x".repeat(LONGEST_ARGUMENT + 1)})).unwrap_err();
        assert!(why.contains("500"), "{why}");
    }

    #[test]
    fn what_goes_into_the_history_is_valid_json_and_reads_back_as_the_same_call() {
        let tools = [
            asked("a \"quoted\" word\nand a line", About::Seen),
            Tool::Remember(RememberArguments {
                query: String::new(),
                about: About::Said,
                direction: Some(Direction::Left),
                when: Some("this morning".into()),
            }),
            Tool::Camera { direction: Direction::Right },
            Tool::Move { gesture: Gesture::Dance },
        ];
        for tool in tools {
            let call = ToolCall { id: "c1".into(), tool };
            let wire = call.to_wire();
            assert_eq!(wire["id"], "c1");
            let arguments = wire["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
            let name = wire["function"]["name"].as_str().unwrap();
            assert_eq!(ToolCall::parse("c1", name, &wire["function"]["arguments"]), Ok(call));
        }
    }

    #[test]
    fn everything_that_the_schemas_offer_is_taken() {
        let schemas = schemas();
        let names: Vec<&str> =
            schemas.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, NAMES);
        for tool in schemas.as_array().unwrap() {
            let function = &tool["function"];
            assert!(function["description"].as_str().unwrap().len() > 20);
            for (key, property) in function["parameters"]["properties"].as_object().unwrap() {
                for offered in property["enum"].as_array().unwrap_or(&Vec::new()) {
                    let mut arguments = json!({"query": "x", "gesture": "nod"});
                    arguments[key] = offered.clone();
                    let name = function["name"].as_str().unwrap();
                    assert!(ToolCall::parse("c", name, &arguments).is_ok(), "{name} {key} {offered}");
                }
            }
        }
    }
}
