//! Who is in the room, shared: the seeing thread tells it faces, the conversation tells it words, and what
//! [`Visits`] decides is carried out in the memory of people.
//!
//! A handle; clones share one state behind a lock that is held for a decision only. What it cannot do itself (to speak,
//! to name words in the window) it hands back as [`Deed`]s. A memory of people that fails costs that decision, is told
//! as [`Deed::Trouble`], and the next face is looked up again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::visit::{BadSettings, Command, Event, Gates, Head, Likeness, Settings, Shot, Sighting, Speaker, Visits};
use crate::clock::Clock;
use crate::remember::people::{Change, People, PeopleError, PersonId};
use crate::see::faces::Face;

/// What somebody else has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Greet by name.
    Greet { name: String },
    /// Ask for the name.
    AskName,
    /// Read the name out of this reply, and tell it by [`Company::name_read`].
    ReadName { words: String },
    /// The words that were told are theirs.
    WordsAre { speaker: Speaker },
    /// Somebody was introduced: the words without a speaker that began in this time are theirs, too.
    Met { name: String, since: Timestamp, until: Timestamp },
    /// Something could not be kept.
    Trouble { what: String },
}

/// A handle on who is in the room.
#[derive(Clone)]
pub struct Company(Arc<Room>);

struct Room {
    visits: Mutex<Visits>,
    people: People,
    gates: Gates,
    clock: Clock,
}

impl Company {
    /// An empty room.
    ///
    /// # Errors
    /// [`BadSettings`].
    pub fn new(people: People, settings: Settings, clock: Clock) -> Result<Self, BadSettings> {
        let visits = Mutex::new(Visits::new(settings)?);
        Ok(Self(Arc::new(Room { visits, people, gates: settings.gates, clock })))
    }

    /// The memory of people.
    #[must_use]
    pub fn people(&self) -> &People {
        &self.0.people
    }

    /// Takes the faces of a picture that was taken now.
    pub async fn see(&self, faces: &[Face], head: Head) -> Vec<Deed> {
        let mut sightings = Vec::with_capacity(faces.len());
        let mut trouble = None;
        for face in faces {
            match self.sighting(face).await {
                Ok(sighting) => sightings.push(sighting),
                // Without its likeness the face says nothing, and is not a stranger's.
                Err(error) => trouble = Some(error),
            }
        }
        let mut deeds = self.tell(Event::Faces { at: self.0.clock.now(), faces: sightings, head }).await;
        if let Some(error) = trouble {
            deeds.push(Deed::Trouble { what: format!("a face could not be looked up: {error}") });
        }
        deeds
    }

    /// Somebody said `words`, beginning at `from`.
    pub async fn hear(&self, from: Timestamp, words: &str) -> Vec<Deed> {
        self.tell(Event::Heard { from, at: self.0.clock.now(), words: words.to_owned() }).await
    }

    /// The robot's turn is over.
    pub async fn answered(&self) -> Vec<Deed> {
        self.tell(Event::Answered { at: self.0.clock.now() }).await
    }

    /// What was read out of the reply of [`Deed::ReadName`].
    pub async fn name_read(&self, name: Option<String>) -> Vec<Deed> {
        self.tell(Event::NameRead { at: self.0.clock.now(), name }).await
    }

    /// Time passes; to be called once in a few seconds.
    pub async fn tick(&self) -> Vec<Deed> {
        self.tell(Event::Tick { at: self.0.clock.now() }).await
    }

    /// A name is being forgotten, or becomes another: from here on nobody is called so.
    pub async fn changes(&self, change: &Change) {
        let name = match change {
            Change::Forget { name, .. } => name,
            Change::Rename { from, .. } => from,
        };
        let Some(person) = self.visits().called(name) else { return };
        let event = match change {
            Change::Forget { .. } => Event::Forgotten { person },
            // Where the new name is somebody's already, two people become one, and the face is looked up anew.
            Change::Rename { to, .. } => match self.0.people.find(to).await {
                Ok(None) => Event::Renamed { person, name: to.clone() },
                Ok(Some(other)) if other.id == person => Event::Renamed { person, name: other.name },
                Ok(Some(_)) | Err(_) => Event::Forgotten { person },
            },
        };
        drop(self.visits().handle(event));
    }

    /// When the person was last seen before they came now; `None` for somebody who is not here, or was never seen before.
    #[must_use]
    pub fn away_since(&self, person: PersonId) -> Option<Timestamp> {
        self.visits().away_since(person)
    }

    /// Whether the person is in view now.
    #[must_use]
    pub fn is_here(&self, person: PersonId) -> bool {
        self.visits().present().iter().any(|face| face.speaker.as_ref().is_some_and(|who| who.person == person))
    }

    /// Whether the one face in view is certainly nobody's whom the robot knows.
    #[must_use]
    pub fn stranger_speaks(&self) -> bool {
        self.visits().stranger_speaks()
    }

    /// The names of those who are followed under these numbers and are certainly known by now, sorted.
    #[must_use]
    pub fn names_of(&self, tracks: &[u32]) -> Vec<String> {
        let present = self.visits().present();
        let theirs = present.into_iter().filter(|face| tracks.contains(&face.track));
        sorted(theirs.filter_map(|face| face.speaker).map(|who| who.name))
    }

    /// The names of those whose faces a picture shows that was taken on purpose: those whom it alone shows well enough.
    ///
    /// # Errors
    /// [`PeopleError`] when they could not be looked up.
    pub async fn names_in(&self, faces: &[Face]) -> Result<Vec<String>, PeopleError> {
        let mut names = Vec::new();
        for face in faces.iter().filter(|face| face.quality.usable()) {
            let Some(vector) = &face.vector else { continue };
            let near = self.0.people.nearest(vector.clone(), 2).await?;
            let Gates { greet, margin, .. } = self.0.gates;
            let second = near.get(1).map_or(f32::MIN, |other| other.score);
            if let Some(best) = near.first().filter(|best| best.score >= greet && best.score - second >= margin) {
                names.push(best.name.clone());
            }
        }
        Ok(sorted(names.into_iter()))
    }

    async fn sighting(&self, face: &Face) -> Result<Sighting, PeopleError> {
        let [left, top, right, bottom] = face.place;
        let mut sighting = Sighting {
            track: face.track,
            place: [left, top, right - left, bottom - top],
            usable: face.quality.usable(),
            embedded: face.vector.is_some(),
            shot: face.vector.as_ref().map(|vector| Shot::from(vector.as_slice())),
            nearest: None,
            second: None,
        };
        let Some(vector) = &face.vector else { return Ok(sighting) };
        let mut near = self.0.people.nearest(vector.clone(), 2).await?.into_iter();
        if let Some(best) = near.next() {
            let last_seen_at = self.0.people.get(best.person).await?.map(|person| person.last_seen_at);
            let (person, name, score) = (best.person, best.name, best.score);
            sighting.nearest = Some(Likeness { person, name, score, last_seen_at });
            sighting.second = near.next().map(|other| other.score);
        }
        Ok(sighting)
    }

    /// Decides, and carries out what concerns the memory of people.
    async fn tell(&self, event: Event) -> Vec<Deed> {
        let mut deeds = Vec::new();
        let mut commands: VecDeque<Command> = self.visits().handle(event).into();
        while let Some(command) = commands.pop_front() {
            match command {
                Command::Greet { name, .. } => deeds.push(Deed::Greet { name }),
                Command::AskName { .. } => deeds.push(Deed::AskName),
                Command::ReadName { words } => deeds.push(Deed::ReadName { words }),
                Command::WordsAre { speaker } => {
                    deeds.extend(speaker.map(|speaker| Deed::WordsAre { speaker }));
                }
                Command::WordsBecome { name, since, until, .. } => deeds.push(Deed::Met { name, since, until }),
                Command::Enrol { name, shots, met_at } => {
                    let (event, trouble) = self.enrol(&name, shots, met_at).await;
                    deeds.extend(trouble);
                    commands.extend(self.visits().handle(event));
                }
                Command::LearnPose { person, shot } => {
                    let learned = self.0.people.learn_pose(person, shot.to_vec()).await;
                    deeds.extend(learned.err().map(|error| trouble("a pose was not learned", &error)));
                }
                Command::SeenNow { person, at } => {
                    let seen = self.0.people.seen(person, at).await;
                    deeds.extend(seen.err().map(|error| trouble("when somebody was seen was not noted", &error)));
                }
            }
        }
        deeds
    }

    async fn enrol(&self, name: &str, shots: Vec<Shot>, met_at: Timestamp) -> (Event, Option<Deed>) {
        let shots = shots.iter().map(|shot| shot.to_vec()).collect();
        let enrolled = self.0.people.enrol(name, shots, met_at, self.0.clock.now()).await;
        let at = self.0.clock.now();
        match enrolled {
            Ok(person) => (Event::Enrolled { at, person: person.id, name: person.name }, None),
            Err(error) => {
                (Event::EnrolFailed { at }, Some(trouble("somebody who gave a name is not remembered", &error)))
            }
        }
    }

    /// A decision that panicked left the state as it was before or after one event.
    fn visits(&self) -> MutexGuard<'_, Visits> {
        self.0.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn trouble(what: &str, error: &PeopleError) -> Deed {
    Deed::Trouble { what: format!("{what}: {error}") }
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}
