//! What every event does to the state, and which commands follow.

use jiff::{SignedDuration, Timestamp};

use super::guests::Now;
use super::question::{Enrolment, Question};
use super::track::{Change, LEAST_SHOTS, Look, Who};
use super::{
    ASK_WITHIN, COMES_INTO_VIEW_WITHIN, Command, Event, Head, LEARN_EVERY, LONGEST_READING, LONGEST_TURN, PersonId,
    REPLY_WITHIN, Sighting, Speaker, Visits,
};
use crate::think::name;

impl Visits {
    /// Takes in one event; events come in the order in which they happened.
    #[must_use]
    pub fn handle(&mut self, event: Event) -> Vec<Command> {
        let mut commands = Vec::new();
        match event {
            Event::Faces { at, faces, head } => self.faces(at, &faces, head, &mut commands),
            Event::Heard { from, at, words } => self.heard(from, at, words, &mut commands),
            Event::Answered { at } => {
                self.pass(at, &mut commands);
                self.in_turn = None;
                self.answered = Some(self.view.passed);
                self.speak_up(at, &mut commands);
            }
            Event::NameRead { at, name } => {
                self.pass(at, &mut commands);
                self.name_read(name, &mut commands);
            }
            Event::Enrolled { at, person, name } => {
                self.pass(at, &mut commands);
                self.enrolled(at, person, name, &mut commands);
            }
            Event::EnrolFailed { at } => {
                self.pass(at, &mut commands);
                if matches!(self.question, Question::Enrolling { .. }) {
                    self.question = Question::None;
                }
            }
            Event::Forgotten { person } => self.forgotten(person),
            Event::Renamed { person, name } => {
                if let Some(guest) = self.guests.of_mut(person) {
                    guest.name = name;
                }
            }
            Event::Tick { at } => self.pass(at, &mut commands),
        }
        commands
    }

    fn now(&self, at: Timestamp) -> Now {
        Now { at, steady: self.view.steady, passed: self.view.passed }
    }

    /// Time passes: faces and people leave, questions and turns run out.
    fn pass(&mut self, at: Timestamp, commands: &mut Vec<Command>) {
        self.view.pass(at);
        let now = self.now(at);
        let over = self.guests.end(now, self.settings.visit_ends_after);
        commands.extend(over.into_iter().map(|(person, at)| Command::SeenNow { person, at }));
        let ran_out = |since: SignedDuration, most: SignedDuration| now.passed - since > most;
        if self.in_turn.is_some_and(|since| ran_out(since, LONGEST_TURN)) {
            self.in_turn = None;
        }
        let closed = match &self.question {
            Question::None => false,
            Question::Asked { track, until } => {
                now.steady > *until || self.view.alone().is_none_or(|alone| alone.track != *track)
            }
            Question::Reading { since, .. } | Question::Enrolling { since, .. } => ran_out(*since, LONGEST_READING),
        };
        if closed {
            self.question = Question::None;
        }
    }

    fn faces(&mut self, at: Timestamp, faces: &[Sighting], head: Head, commands: &mut Vec<Command>) {
        self.pass(at, commands);
        if head != Head::Steady {
            self.view.freeze(head);
            return;
        }
        self.view.thaw(at);
        self.view.picture(at, faces);
        if self.question.waits_for() != self.view.alone().map(|alone| alone.track)
            && self.question.waits_for().is_some()
        {
            // Somebody came in, or the one who was asked left: nobody can tell who answers.
            self.question = Question::None;
        }
        let embedded = faces.iter().enumerate().filter(|(place, face)| {
            face.usable && face.embedded && faces.iter().take(*place).all(|other| other.track != face.track)
        });
        for (_, sighting) in embedded {
            self.look(at, sighting, commands);
        }
        self.note_who_is_seen(at, commands);
        self.speak_up(at, commands);
    }

    /// What a usable embedding of one face changes.
    fn look(&mut self, at: Timestamp, sighting: &Sighting, commands: &mut Vec<Command>) {
        let (gates, now) = (self.settings.gates, self.now(at));
        let mut look = Look::of(sighting, &gates, |person| self.guests.is_forgotten(person));
        if let Look::Fits { person, .. } = look
            && self.guests.of(person).is_some_and(|guest| guest.denied)
        {
            // "I am not Anna": nobody is Anna in this visit, and whoever looks like her is not asked.
            self.guests.still_denied(person, now);
            look = Look::Between { nearest: None, can_be_learned: false };
        }
        let Some(track) = self.view.track_mut(sighting.track) else { return };
        match track.look(look, sighting.shot.as_ref(), &gates, now.steady) {
            Change::Nothing => {}
            Change::Became { person, name, last_seen_at } => {
                let ends_after = self.settings.visit_ends_after;
                let room = self.guests.arrives(person, &name, last_seen_at, now, ends_after);
                commands.extend(room.map(|(person, at)| Command::SeenNow { person, at }));
            }
            Change::Another => {
                self.view.start_over(sighting.track, at);
                if self.question.waits_for() == Some(sighting.track) {
                    self.question = Question::None;
                }
            }
            Change::Pose(person) => self.learn(person, sighting, now, commands),
        }
    }

    fn learn(&mut self, person: PersonId, sighting: &Sighting, now: Now, commands: &mut Vec<Command>) {
        let twice = self.view.tracks.iter().filter(|track| track.who == Who::Known(person)).count() > 1;
        let (Some(shot), Some(guest)) = (&sighting.shot, self.guests.of_mut(person)) else { return };
        let due = guest.learned.is_none_or(|learned| now.passed - learned >= LEARN_EVERY);
        if due && !twice && !guest.denied {
            guest.learned = Some(now.passed);
            commands.push(Command::LearnPose { person, shot: shot.clone() });
        }
    }

    fn note_who_is_seen(&mut self, at: Timestamp, commands: &mut Vec<Command>) {
        let now = self.now(at);
        let seen: Vec<PersonId> = self.view.in_newest().filter_map(|track| track.known()).collect();
        for person in seen {
            if self.guests.seen(person, now) {
                commands.push(Command::SeenNow { person, at });
            }
        }
        let strangers: Vec<u32> = self.view.in_newest().filter(|t| t.who == Who::Stranger).map(|t| t.id).collect();
        for id in strangers {
            // Whoever was asked stays on their visit while they are here.
            if let Some(track) = self.view.track(id) {
                self.guests.perhaps_asked(&track.shots, &self.settings.gates, now);
            }
        }
    }

    /// Greets and asks, unless a turn is running or the head is away.
    fn speak_up(&mut self, at: Timestamp, commands: &mut Vec<Command>) {
        if self.in_turn.is_some() || self.view.head != Head::Steady {
            return;
        }
        let here: Vec<PersonId> = self.view.in_newest().filter_map(|track| track.known()).collect();
        for person in here {
            if let Some(guest) = self.guests.of_mut(person).filter(|guest| !guest.greeted && !guest.denied) {
                guest.greeted = true;
                commands.push(Command::Greet { person, name: guest.name.clone() });
            }
        }
        self.ask(at, commands);
    }

    fn ask(&mut self, at: Timestamp, commands: &mut Vec<Command>) {
        let now = self.now(at);
        let answered = self.answered.is_some_and(|answered| now.passed - answered <= ASK_WITHIN);
        if self.question != Question::None || !answered {
            return;
        }
        let Some(alone) = self.view.alone() else { return };
        let seen = self.view.in_newest().any(|track| track.id == alone.track);
        let Some(track) = self.view.track_mut(alone.track) else { return };
        // They said something, and it was answered after that.
        let spoke = track.spoke.is_some_and(|spoke| self.answered.is_some_and(|answered| spoke <= answered));
        let stranger = track.who == Who::Stranger && track.is_certain() && track.denied.is_none();
        if !(seen && spoke && stranger && !track.asked && track.shots.len() >= LEAST_SHOTS) {
            return;
        }
        if self.guests.perhaps_asked(&track.shots, &self.settings.gates, now) {
            return;
        }
        track.asked = true;
        self.guests.was_asked(&track.shots, now);
        self.question = Question::Asked { track: track.id, until: now.steady + REPLY_WITHIN };
        commands.push(Command::AskName { track: alone.track });
    }

    fn heard(&mut self, from: Timestamp, at: Timestamp, words: String, commands: &mut Vec<Command>) {
        self.pass(at, commands);
        self.in_turn = Some(self.view.passed);
        self.take_back_names(&words);
        let speaks = self.who_speaks(from);
        let mut speaker = None;
        match speaks.and_then(|id| self.view.track(id)).map(|track| (track.id, track.known())) {
            Some((_, Some(person))) => speaker = self.named(Some(person)),
            Some((id, None)) => self.unnamed_words(id, from),
            // What nobody can be held to have said ends every stretch of unnamed words.
            None => self.view.tracks.iter_mut().for_each(super::track::Track::forget_words),
        }
        commands.push(Command::WordsAre { speaker });
        self.take_reply(speaks, words, commands);
    }

    /// The one face in view all along an utterance that began at `from`.
    fn who_speaks(&self, from: Timestamp) -> Option<u32> {
        let alone = self.view.alone()?;
        let track = self.view.track(alone.track)?;
        let all_along = alone.since.duration_since(from) <= COMES_INTO_VIEW_WITHIN;
        (self.view.head != Head::Turned && all_along && track.is_certain()).then_some(alone.track)
    }

    fn unnamed_words(&mut self, id: u32, from: Timestamp) {
        let passed = self.view.passed;
        let Some(track) = self.view.track_mut(id) else { return };
        track.spoke = Some(passed);
        track.unnamed = Some((track.unnamed.map_or(from, |(first, _)| first), from));
    }

    /// "I'm not Anna", or "I'm Bob" from somebody who was taken for Anna.
    fn take_back_names(&mut self, words: &str) {
        let alone = self.view.alone().map(|alone| alone.track);
        let mut denied: Vec<(u32, PersonId)> = Vec::new();
        for track in &self.view.tracks {
            let Who::Known(person) = track.who else { continue };
            let Some(guest) = self.guests.of(person) else { continue };
            let another = || name::introduces(words).is_some_and(|other| !name::same(&other, &guest.name));
            if name::denies(words, &guest.name) || (alone == Some(track.id) && another()) {
                denied.push((track.id, person));
            }
        }
        for (id, person) in denied {
            if let Some(track) = self.view.track_mut(id) {
                track.start_over();
                track.denied = Some(person);
            }
            if let Some(guest) = self.guests.of_mut(person) {
                guest.denied = true;
            }
        }
    }

    /// The utterance is the reply, if the one who was asked said it.
    fn take_reply(&mut self, speaks: Option<u32>, words: String, commands: &mut Vec<Command>) {
        let Question::Asked { track: id, .. } = self.question else { return };
        if self.view.head == Head::Turned {
            return;
        }
        let asked = speaks.filter(|speaks| *speaks == id).and_then(|id| self.view.track(id));
        let enrolment = asked.filter(|track| track.who == Who::Stranger).and_then(|track| {
            let (shots, met_at) = (track.shots.clone(), track.first_seen_at);
            Some(Enrolment { shots, met_at, words: track.unnamed? })
        });
        let Some(enrolment) = enrolment else {
            self.question = Question::None;
            return;
        };
        commands.push(Command::ReadName { words: words.clone() });
        self.question = Question::Reading { track: id, reply: words, enrolment, since: self.view.passed };
    }

    fn name_read(&mut self, read: Option<String>, commands: &mut Vec<Command>) {
        let Question::Reading { track, reply, enrolment, .. } = std::mem::replace(&mut self.question, Question::None)
        else {
            return;
        };
        let Some(name) = read.map(|name| name.trim().to_owned()) else { return };
        let fits = (1..=name::LONGEST_NAME).contains(&name.chars().count());
        // They were recognised after all while the name was being read: somebody known is not enrolled again.
        let another = self.view.track(track).is_some_and(|track| track.who != Who::Stranger);
        if !fits || !name::was_said(&name, &reply) || another {
            return;
        }
        commands.push(Command::Enrol { name, shots: enrolment.shots.clone(), met_at: enrolment.met_at });
        self.question = Question::Enrolling { track, enrolment, since: self.view.passed };
    }

    fn enrolled(&mut self, at: Timestamp, person: PersonId, name: String, commands: &mut Vec<Command>) {
        let Question::Enrolling { track: id, enrolment, .. } = std::mem::replace(&mut self.question, Question::None)
        else {
            return;
        };
        let now = self.now(at);
        let room = self.guests.arrives(person, &name, None, now, self.settings.visit_ends_after);
        commands.extend(room.map(|(person, at)| Command::SeenNow { person, at }));
        if let Some(guest) = self.guests.of_mut(person) {
            // They have just been spoken to by name.
            guest.greeted = true;
        }
        let (mut since, mut until) = enrolment.words;
        if let Some(track) = self.view.track_mut(id).filter(|track| track.who == Who::Stranger && track.is_certain()) {
            if let Some((first, last)) = track.unnamed.filter(|(first, _)| *first <= until) {
                (since, until) = (since.min(first), until.max(last));
            }
            track.becomes(person);
        }
        commands.push(Command::WordsBecome { person, name, since, until });
    }

    fn forgotten(&mut self, person: PersonId) {
        self.guests.forget(person);
        for track in &mut self.view.tracks {
            if track.who == Who::Known(person) {
                track.start_over();
                // Whoever wanted to be forgotten is not asked for a name right after it.
                track.asked = true;
            }
        }
    }
}

impl Speaker {
    /// The name alone, as an exchange carries it.
    #[must_use]
    pub fn into_name(self) -> String {
        self.name
    }
}
