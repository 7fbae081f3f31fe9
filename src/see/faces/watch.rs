//! When faces are looked for, which of them are embedded, and what is kept of them from look to look.
//!
//! [`crate::see::eye::Eye`] owns the one [`Watch`]. It holds two networks and a number and a place for each face in
//! view, whatever it is shown. A network that fails is an error of that look; the next look tries again.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::track::Tracker;
use super::{EmbedFace, Face, FindFaces, Found, Quality, align, stand_in};
use crate::remember::embed::Identity;
use crate::robot::{Direction, Picture};
use crate::see::Rgb;
use crate::see::infer::InferError;

/// A face that is followed is embedded no more often than this. From the budget: an embedding is 10 ms of a desktop's
/// processor and about five times that on the robot (not measured there).
pub const BETWEEN_EMBEDDINGS: SignedDuration = SignedDuration::from_secs(1);
/// At most so many faces of one picture are embedded, the largest first, unless it is a look on purpose; the others
/// follow with the next pictures. Not measured.
pub const MOST_AT_ONCE: usize = 4;

/// Finds, follows and embeds the faces in view.
pub struct Watch {
    by: By,
    tracker: Tracker,
    looked: Direction,
    looked_at: Option<Timestamp>,
    /// When each face that is followed was embedded last.
    embedded_at: BTreeMap<u32, Timestamp>,
    report: FaceReport,
}

enum By {
    Networks {
        finder: Box<dyn FindFaces>,
        embedder: Option<Box<dyn EmbedFace>>,
    },
    /// The script's marks; see [`stand_in`].
    StandIn(Identity),
}

/// How looking for faces goes: what health shows. Counts since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaceReport {
    /// What finds faces, and by which engine; `None` where nothing does.
    pub finder: Option<String>,
    /// The face model; `None` where faces are found and followed but nobody can be known by theirs.
    pub model: Option<String>,
    /// Whether both are the stand-ins of a script.
    pub stand_in: bool,
    /// Pictures in which faces were looked for, and faces in them.
    pub looks: u64,
    pub faces: u64,
    /// Faces that became numbers.
    pub embedded: u64,
    /// Looks and embeddings that failed, and the last failure in words.
    pub failures: u64,
    pub last_failure: Option<String>,
}

/// Why faces are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glimpse {
    /// It is time to.
    Passing,
    /// Somebody wants to know who is there: every usable face is embedded.
    OnPurpose,
}

/// A face before it has its number and vector.
struct Candidate {
    found: Found,
    quality: Quality,
    /// The face laid straight, or the stand-in's vector.
    matter: Matter,
}

enum Matter {
    Crop(Option<Rgb>),
    Vector(Vec<f32>),
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Watch {
    /// One that looks with networks. Without an embedder, faces are found and followed and have no vectors.
    #[must_use]
    pub fn new(finder: Box<dyn FindFaces>, embedder: Option<Box<dyn EmbedFace>>) -> Self {
        let report = FaceReport {
            finder: Some(finder.name()),
            model: embedder.as_ref().map(|embedder| embedder.identity().model.clone()),
            ..FaceReport::default()
        };
        Self::by(By::Networks { finder, embedder }, report)
    }

    /// One that takes the faces which a script marks in its pictures, and sees no others.
    #[must_use]
    pub fn stand_in() -> Self {
        let report = FaceReport {
            finder: Some(stand_in::MODEL.into()),
            model: Some(stand_in::MODEL.into()),
            stand_in: true,
            ..FaceReport::default()
        };
        Self::by(By::StandIn(stand_in::identity()), report)
    }

    fn by(by: By, report: FaceReport) -> Self {
        let tracker = Tracker::default();
        Self { by, tracker, looked: Direction::Ahead, looked_at: None, embedded_at: BTreeMap::new(), report }
    }

    /// What its vectors are known by; `None` where it makes none.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        match &self.by {
            By::Networks { embedder, .. } => embedder.as_ref().map(|embedder| embedder.identity()),
            By::StandIn(identity) => Some(identity),
        }
    }

    /// How it goes, for health.
    #[must_use]
    pub fn report(&self) -> &FaceReport {
        &self.report
    }

    /// Whether a face was in view at the last look.
    #[must_use]
    pub fn has_faces(&self) -> bool {
        self.tracker.has_faces()
    }

    /// Whether the last look is at least `gap` seconds ago.
    #[must_use]
    pub fn is_due(&self, gap: f32, now: Timestamp) -> bool {
        let early = |before: Timestamp| (0.0..gap).contains(&now.duration_since(before).as_secs_f32());
        !self.looked_at.is_some_and(early)
    }

    /// The view became another: whoever is in it now was not followed.
    pub fn cut(&mut self) {
        self.tracker.cut();
    }

    /// The faces in a picture, best first; `None` where there is nothing to look at: a picture of a script without
    /// pixels, or of a camera before a stand-in. `rgb`: the picture decoded.
    ///
    /// # Errors
    /// [`InferError`] when finding fails. A face whose embedding fails has no vector, and [`Watch::report`] says why.
    pub fn look(
        &mut self,
        picture: &Picture,
        rgb: Option<&Rgb>,
        glimpse: Glimpse,
        now: Timestamp,
    ) -> Result<Option<Vec<Face>>, InferError> {
        let Some(candidates) = self.candidates(picture, rgb)? else { return Ok(None) };
        self.report.looks += 1;
        self.report.faces += candidates.len() as u64;
        self.looked_at = Some(now);
        if picture.looked != self.looked {
            self.tracker.cut();
            self.looked = picture.looked;
        }
        let places: Vec<_> = candidates.iter().map(|candidate| candidate.found.place).collect();
        let numbers = self.tracker.follow(&places, now);
        let followed: Vec<u32> = self.tracker.numbers().collect();
        self.embedded_at.retain(|number, _| followed.contains(number));
        let chosen = self.to_be_embedded(&candidates, &numbers, glimpse, now);
        let mut faces = Vec::with_capacity(candidates.len());
        for (index, (Candidate { found, quality, matter }, track)) in candidates.into_iter().zip(numbers).enumerate() {
            let vector = if chosen.contains(&index) { self.embed(matter) } else { None };
            if vector.is_some() {
                self.embedded_at.insert(track, now);
            }
            let Found { place, landmarks, score } = found;
            faces.push(Face { place, landmarks, score, track, quality, vector });
        }
        Ok(Some(faces))
    }

    fn candidates(&mut self, picture: &Picture, rgb: Option<&Rgb>) -> Result<Option<Vec<Candidate>>, InferError> {
        let finder = match (&mut self.by, rgb) {
            (By::StandIn(_), _) => {
                let candidate = |(found, quality, vector)| Candidate { found, quality, matter: Matter::Vector(vector) };
                let marked = stand_in::faces(picture);
                return Ok(marked.map(|marked| marked.into_iter().map(candidate).collect()));
            }
            (By::Networks { finder, .. }, Some(_)) => finder,
            (By::Networks { .. }, None) => return Ok(None),
        };
        let Some(rgb) = rgb else { return Ok(None) };
        let found = finder.find(rgb).inspect_err(|error| self.report.fails(error))?;
        let candidate = |found: Found| {
            let crop = align::crop(rgb, &found.landmarks);
            let quality = Quality::judge(&found, (rgb.width, rgb.height), crop.as_ref());
            Candidate { found, quality, matter: Matter::Crop(crop) }
        };
        Ok(Some(found.into_iter().map(candidate).collect()))
    }

    /// Which of the faces get a vector: the usable ones that are due.
    fn to_be_embedded(
        &self,
        candidates: &[Candidate],
        numbers: &[u32],
        glimpse: Glimpse,
        now: Timestamp,
    ) -> Vec<usize> {
        let recently = |number: &u32| {
            let since = self.embedded_at.get(number).map(|before| now.duration_since(*before));
            since.is_some_and(|since| (SignedDuration::ZERO..BETWEEN_EMBEDDINGS).contains(&since))
        };
        let is_due = |index: &usize| glimpse == Glimpse::OnPurpose || !numbers.get(*index).is_some_and(recently);
        let usable = candidates.iter().enumerate().filter(|(_, candidate)| candidate.quality.usable());
        let mut chosen: Vec<(usize, f32)> = usable
            .map(|(index, candidate)| (index, candidate.quality.width_px))
            .filter(|(index, _)| is_due(index))
            .collect();
        chosen.sort_by(|one, other| other.1.total_cmp(&one.1));
        if glimpse == Glimpse::Passing {
            chosen.truncate(MOST_AT_ONCE);
        }
        chosen.into_iter().map(|(index, _)| index).collect()
    }

    fn embed(&mut self, matter: Matter) -> Option<Vec<f32>> {
        let vector = match (&mut self.by, matter) {
            (_, Matter::Vector(vector)) => vector,
            (By::Networks { embedder: Some(embedder), .. }, Matter::Crop(Some(crop))) => match embedder.embed(&crop) {
                Ok(vector) => vector,
                Err(error) => {
                    self.report.fails(&error);
                    return None;
                }
            },
            _ => return None,
        };
        self.report.embedded += 1;
        Some(vector)
    }
}

impl FaceReport {
    fn fails(&mut self, error: &InferError) {
        self.failures += 1;
        self.last_failure = Some(error.to_string());
    }
}

#[cfg(test)]
mod tests;
