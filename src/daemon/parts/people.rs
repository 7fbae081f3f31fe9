//! The memory of people, and who is in the room, each with its own way to be missing.

use std::sync::Arc;

use jiff::SignedDuration;

use super::blocking;
use crate::clock::Clock;
use crate::config::Config;
use crate::health::Health;
use crate::models::FaceGates;
use crate::remember::People;
use crate::remember::people::{OpenedPeople, PeopleSettings};
use crate::remember::store::Lock;
use crate::see::sight::Sight;
use crate::think::company::Company;
use crate::think::visit;

/// Who is known, and who is in the room.
pub struct Acquaintances {
    /// For commands. `None`: nobody was ever introduced, and nobody can be.
    pub people: Result<Option<People>, String>,
    /// Or why nobody is recognised, as a clause.
    pub company: Result<Company, String>,
}

/// How the people are opened by the process that holds `lock`.
#[must_use]
pub fn people_settings(config: &Config, lock: Option<Arc<Lock>>) -> PeopleSettings {
    PeopleSettings {
        lock,
        min_free_bytes: config.remember.min_free_mb * 1_000_000,
        search_threads: config.limits.search_threads as usize,
        ..PeopleSettings::new(config.remember.folder.clone())
    }
}

/// Opens the memory of people. Without an eye that tells faces apart it is opened for commands only, so that who was
/// introduced can still be shown, and forgotten.
pub async fn acquaintances(
    config: &Config,
    sight: &Result<Sight, String>,
    gates: Option<FaceGates>,
    lock: Arc<Lock>,
    clock: &Clock,
    health: &Health,
    notes: &mut Vec<String>,
) -> Acquaintances {
    let settings = people_settings(config, Some(lock));
    let eye = sight.as_ref().map_err(Clone::clone).and_then(|sight| match (sight.face_identity(), gates) {
        (Some(identity), Some(gates)) => Ok((identity, gates)),
        _ => Err("no face model is there, so no face can be told from another".to_owned()),
    });
    let now = clock.now();
    let (identity, gates) = match eye {
        Ok(eye) => eye,
        Err(why) => {
            health.set("people", true, format!("nobody is recognised: {why}"));
            let opened = blocking(move || Ok(People::open_as_they_are(settings, now)?)).await;
            let people = opened.map(|opened| opened.map(|opened| noted(opened, notes)));
            return Acquaintances { people: people.map_err(|error| error.to_string()), company: Err(why) };
        }
    };
    let opened = match blocking(move || Ok(People::open(settings, &identity, now)?)).await {
        Ok(opened) => opened,
        Err(error) => {
            let why = error.to_string();
            health.set("people", false, why.clone());
            notes.push(format!("Nobody is recognised: {why}"));
            return Acquaintances { people: Err(why.clone()), company: Err(why) };
        }
    };
    let well = opened.notes.is_empty();
    let people = noted(opened, notes);
    let company =
        Company::new(people.clone(), settings_of(config, gates), clock.clone()).map_err(|error| error.to_string());
    match &company {
        Ok(_) => {
            let known = people.list().await.map_or(0, |people| people.len());
            health.set("people", well, format!("{known} known by face"));
        }
        Err(why) => health.set("people", false, why.clone()),
    }
    Acquaintances { people: Ok(Some(people)), company }
}

fn noted(opened: OpenedPeople, notes: &mut Vec<String>) -> People {
    notes.extend(opened.notes);
    opened.people
}

fn settings_of(config: &Config, gates: FaceGates) -> visit::Settings {
    let FaceGates { greet, ask, margin } = gates;
    visit::Settings {
        gates: visit::Gates { greet, ask, margin },
        visit_ends_after: SignedDuration::from_mins(i64::from(config.people.visit_ends_after_min)),
    }
}
