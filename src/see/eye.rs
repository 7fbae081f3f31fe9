//! From a camera's picture to something worth remembering.
//!
//! The daemon's seeing thread owns the one [`Eye`] and gives it every picture; nobody else calls it, and it blocks
//! while the detector works. It holds one picture, three small views and some counts, whatever it is shown. A picture
//! that cannot be used is a counted fault and the next one is looked at as ever; a detector that fails is an error of
//! that glance, and the next glance tries again. When the thread dies, the robot is blind and says so.
//!
//! Without a detector the simulated camera's annotations stand in for one, and [`Glance::stand_in`] says so. Faces are
//! looked for beside objects, at their own pace ([`Eye::with_faces`]); without anything that finds faces, nothing else
//! changes. Looking for faces that fails costs the faces of that picture and no object: [`EyeReport`] counts it.

mod annotated;
mod report;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

pub(crate) use self::annotated::places as made_up_places;
pub use self::report::{EyeReport, Faults};
use super::faces::{Face, Glimpse, Watch};
use super::gate::{CUT_SHARE, Gate, Verdict, Why};
use super::infer::InferError;
use super::picture::{self, FrozenWatch, PictureFault};
use super::scene::{BIRTH, Change, Scene, SceneSettings, one_each};
use super::told::PERSON;
use super::{Detect, Detection, Rgb};
use crate::remember::embed::Identity;
use crate::robot::{Direction, Picture};

/// Detections come no closer together than this share of the usual gap: pictures do not come on the beat.
const EARLY: f32 = 0.8;

/// What the owner can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EyeSettings {
    /// Seconds that what is visible must stay for it to count.
    pub stable_for_s: f32,
    /// Seconds after which what was not found again is gone.
    pub forget_after_s: f32,
    /// Most detections a second while something changes.
    pub frames_per_second_changing: f32,
    /// A detection at least this often, in seconds, while nothing changes.
    pub seconds_between_quiet: f32,
    /// Most looks for faces a second while a person or face is in view, or something changes.
    pub faces_per_second: f32,
    /// Seconds of one and the same picture after which the camera hangs. `None` for a camera that repeats its files:
    /// the simulated one.
    pub frozen_after_s: Option<f32>,
}

impl Default for EyeSettings {
    /// 10 s of one picture is not measured; a live camera has noise in every one.
    fn default() -> Self {
        Self {
            stable_for_s: 1.0,
            forget_after_s: 2.0,
            frames_per_second_changing: 2.0,
            seconds_between_quiet: 5.0,
            faces_per_second: 3.0,
            frozen_after_s: Some(10.0),
        }
    }
}

/// Why the eye could not see, though the camera may be well.
#[derive(Debug, Error)]
pub enum EyeError {
    /// Give up until there is a model.
    #[error("I have a picture but no way to see what is in it: there is no model that finds objects")]
    NoDetector,
    /// Try again with the next picture.
    #[error("looking at the picture failed: {0}")]
    Detector(#[from] InferError),
    /// A look on purpose got a picture that is of no use. Tell the person.
    #[error(transparent)]
    Fault(#[from] PictureFault),
    /// Correct the setting.
    #[error("see.{name} is {value}; a number of seconds or pictures over 0 is needed")]
    Setting { name: &'static str, value: f32 },
}

/// What came of one picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glance {
    /// What is visible, where that really became another: it is worth a memory.
    pub seen: Option<Seen>,
    /// Why the picture was of no use.
    pub fault: Option<PictureFault>,
    /// Whether objects were looked for in it.
    pub detected: bool,
    /// The faces in it; `None` where none were looked for, empty where there is none.
    pub faces: Option<Vec<Face>>,
    /// Whether a script's annotations were taken for detections, or its marks for faces.
    pub stand_in: bool,
}

/// A picture worth remembering.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The picture as it is kept, at most [`picture::LARGEST_KEPT`] bytes; empty where a script had no picture.
    pub jpeg: Vec<u8>,
    /// The same, decoded, at most [`picture::WORKING_SIDE`] on its longer side; `None` where a script had no picture.
    pub rgb: Option<Rgb>,
    /// What is visible, one each, best first.
    pub detections: Vec<Detection>,
    /// The labels of it, each once, sorted.
    pub labels: Vec<String>,
    pub people: u32,
    /// The faces in this picture; for a look on purpose each usable one has its vector.
    pub faces: Vec<Face>,
    pub looked: Direction,
    pub at: Timestamp,
    /// What became another; empty for a look on purpose.
    pub change: Change,
    /// Whether a script's annotations were taken for detections, or its marks for faces.
    pub stand_in: bool,
}

/// The camera's eye.
pub struct Eye {
    detector: Option<Box<dyn Detect>>,
    faces: Option<Watch>,
    /// Something changed and faces were not looked for since: it was too early.
    faces_owed: bool,
    gate: Gate,
    scene: Scene,
    frozen: FrozenWatch,
    /// Seconds between two detections while something changes.
    gap: f32,
    /// Seconds between two looks for faces.
    faces_gap: f32,
    detected_at: Option<Timestamp>,
    report: EyeReport,
}

/// A picture that is of use: its pixels, where it has any, and what a script says of it.
struct View<'a> {
    rgb: Option<Rgb>,
    picture: &'a Picture,
}

/// What a picture is worth.
#[derive(Clone, Copy)]
struct Worth {
    detection: bool,
    faces: bool,
}

/// What was found in a picture, and by whom.
struct Found {
    detections: Vec<Detection>,
    stand_in: bool,
}

impl Eye {
    /// An eye with that detector, or one that lives on annotations.
    ///
    /// # Errors
    /// [`EyeError::Setting`] for a setting that is no time or rate.
    pub fn new(detector: Option<Box<dyn Detect>>, settings: &EyeSettings) -> Result<Self, EyeError> {
        let frozen = settings.frozen_after_s.unwrap_or(1.0);
        for (name, value) in [
            ("stable_for_s", settings.stable_for_s),
            ("forget_after_s", settings.forget_after_s),
            ("frames_per_second_changing", settings.frames_per_second_changing),
            ("seconds_between_quiet", settings.seconds_between_quiet),
            ("faces_per_second", settings.faces_per_second),
            ("frozen_after_s", frozen),
        ] {
            // A day is more than any of them can mean.
            if !(value > 0.0 && value <= 86_400.0) {
                return Err(EyeError::Setting { name, value });
            }
        }
        let scene = SceneSettings {
            stable_for_s: settings.stable_for_s,
            forget_after_s: settings.forget_after_s,
            frames_per_second: settings.frames_per_second_changing,
        };
        Ok(Self {
            report: EyeReport { detector: detector.as_ref().map(|detector| detector.name()), ..EyeReport::default() },
            detector,
            faces: None,
            faces_owed: false,
            gate: Gate::new(seconds(settings.seconds_between_quiet)),
            scene: Scene::new(scene),
            frozen: FrozenWatch::new(settings.frozen_after_s.map(seconds)),
            gap: 1.0 / settings.frames_per_second_changing,
            faces_gap: 1.0 / settings.faces_per_second,
            detected_at: None,
        })
    }

    /// The same eye, which also looks for faces.
    #[must_use]
    pub fn with_faces(mut self, watch: Watch) -> Self {
        self.faces = Some(watch);
        self
    }

    /// Looks at the camera's next picture, as cheaply as it allows. A fault of the picture is not an error.
    ///
    /// # Errors
    /// [`EyeError::NoDetector`] where there is nothing to look with, [`EyeError::Detector`] where it failed; then the
    /// next picture is looked at again.
    pub fn glance(&mut self, picture: &Picture, head_moving: bool, now: Timestamp) -> Result<Glance, EyeError> {
        self.report.pictures += 1;
        let view = match self.check(picture, now) {
            Ok(view) => view,
            Err(fault) => {
                self.report.count(&fault);
                return Ok(Glance { fault: Some(fault), ..Glance::default() });
            }
        };
        let worth = self.worth(&view, head_moving, now);
        if !worth.detection && !worth.faces {
            return Ok(Glance::default());
        }
        let mut glance = Glance::default();
        if worth.faces {
            glance.faces = self.look_for_faces(&view, Glimpse::Passing, now);
            glance.stand_in = glance.faces.is_some() && self.takes_marks();
        }
        if worth.detection {
            self.glance_at_objects(view, &mut glance, now)?;
        }
        Ok(glance)
    }

    /// Looks for objects, and keeps the picture where what is visible became another.
    fn glance_at_objects(&mut self, view: View<'_>, glance: &mut Glance, now: Timestamp) -> Result<(), EyeError> {
        let found = match self.find(&view) {
            Ok(found) => found,
            // Faces are something to see, too.
            Err(EyeError::NoDetector) if view.rgb.is_some() && self.faces.is_some() && !self.takes_marks() => {
                if glance.faces.is_some() {
                    self.gate.detected();
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.detected_at = Some(now);
        self.gate.detected();
        glance.detected = true;
        glance.stand_in |= found.stand_in;
        if let Some(change) = self.scene.update(view.picture.looked, &found.detections, now) {
            // A picture that is kept says who is in it.
            if glance.faces.is_none() {
                glance.faces = self.look_for_faces(&view, Glimpse::Passing, now);
            }
            let faces = glance.faces.clone().unwrap_or_default();
            let mut seen = keep(view, change, faces, found.stand_in, now)?;
            seen.stand_in |= glance.stand_in;
            self.report.changes += 1;
            self.report.changed_at = Some(now);
            glance.seen = Some(seen);
        }
        Ok(())
    }

    /// Looks at a picture on purpose: everything that it alone shows with some certainty, whether new or not. What is
    /// seen so is not told again by the next glance.
    ///
    /// # Errors
    /// [`EyeError::Fault`] when the picture is of no use, else as [`Eye::glance`].
    pub fn look(&mut self, picture: &Picture, now: Timestamp) -> Result<Seen, EyeError> {
        self.report.pictures += 1;
        let view = self.check(picture, now).inspect_err(|fault| self.report.count(fault))?;
        let found = self.find(&view)?;
        let mut visible = one_each(&found.detections);
        visible.retain(|detection| detection.score >= BIRTH);
        let change = Change { appeared: Vec::new(), gone: Vec::new(), visible };
        let faces = self.look_for_faces(&view, Glimpse::OnPurpose, now).unwrap_or_default();
        let mut seen = keep(view, change, faces, found.stand_in, now)?;
        seen.stand_in |= self.takes_marks();
        self.scene.is_known(picture.looked, &seen.detections);
        Ok(seen)
    }

    /// What was visible in that direction when the process ended: it is not new now.
    pub fn is_known(&mut self, looked: Direction, stored: &[Detection]) {
        self.scene.is_known(looked, stored);
    }

    /// What counts as visible in that direction, best first.
    #[must_use]
    pub fn visible(&self, looked: Direction) -> Vec<Detection> {
        self.scene.visible(looked)
    }

    /// How seeing goes, for health.
    #[must_use]
    pub fn report(&self) -> EyeReport {
        let faces = self.faces.as_ref().map(|watch| watch.report().clone()).unwrap_or_default();
        EyeReport { faces, ..self.report.clone() }
    }

    /// What the vectors of faces are known by; `None` where there are none.
    #[must_use]
    pub fn face_identity(&self) -> Option<&Identity> {
        self.faces.as_ref().and_then(Watch::identity)
    }

    /// Decodes a picture and checks that it shows anything. A script's picture without a file passes as it is.
    fn check<'a>(&mut self, picture: &'a Picture, now: Timestamp) -> Result<View<'a>, PictureFault> {
        if picture.encoded.is_empty() && picture.annotations.is_some() {
            return Ok(View { rgb: None, picture });
        }
        let rgb = picture::decode(&picture.encoded)?;
        rgb.check_light()?;
        self.frozen.judge(&rgb, now)?;
        Ok(View { rgb: Some(rgb), picture })
    }

    /// Whether the gate asks for a look, or the scene is in doubt, and the last one is long enough ago; for faces also
    /// whether somebody is in view.
    fn worth(&mut self, view: &View<'_>, head_moving: bool, now: Timestamp) -> Worth {
        let looked = view.picture.looked;
        let is_early = self.detected_at.is_some_and(|before| {
            let since = now.duration_since(before).as_secs_f32();
            (0.0..self.gap * EARLY).contains(&since)
        });
        // Annotations without a picture cost nothing to look at, and the gate has nothing to compare.
        let is_wanted = match &view.rgb {
            None => !head_moving,
            Some(rgb) => match self.gate.judge(rgb, looked, head_moving, now) {
                Verdict::Moving => return Worth { detection: false, faces: false },
                Verdict::Still => !self.scene.is_settled(looked) || annotated::are_other(&self.scene, view.picture),
                Verdict::Look(why) => {
                    if matches!(why, Why::Changed { share } if share >= CUT_SHARE) {
                        self.is_cut(looked, is_early);
                    }
                    true
                }
            },
        };
        let somebody = || {
            let followed = self.faces.as_ref().is_some_and(Watch::has_faces);
            followed || self.scene.visible(looked).iter().any(|detection| detection.label == PERSON)
        };
        let due = self.faces.as_ref().is_some_and(|watch| watch.is_due(self.faces_gap * EARLY, now));
        let faces = due && !head_moving && (is_wanted || self.faces_owed || somebody());
        self.faces_owed = (self.faces_owed || is_wanted) && !faces;
        Worth { detection: is_wanted && !is_early, faces }
    }

    /// The whole picture changed at once. The scene forgets with the detection that follows, faces at once.
    fn is_cut(&mut self, looked: Direction, is_early: bool) {
        if !is_early {
            self.scene.cut(looked);
        }
        if let Some(watch) = &mut self.faces {
            watch.cut();
        }
    }

    /// The faces in a picture; `None` where nobody looks for any, or looking failed, which the report says.
    fn look_for_faces(&mut self, view: &View<'_>, glimpse: Glimpse, now: Timestamp) -> Option<Vec<Face>> {
        let watch = self.faces.as_mut()?;
        watch.look(view.picture, view.rgb.as_ref(), glimpse, now).unwrap_or_else(|error| {
            tracing::debug!(%error, "no faces");
            None
        })
    }

    fn takes_marks(&self) -> bool {
        self.faces.as_ref().is_some_and(|watch| watch.report().stand_in)
    }

    /// Finds what is in a picture: by the detector where there are pixels, else by what the script says.
    fn find(&mut self, view: &View<'_>) -> Result<Found, EyeError> {
        if let (Some(detector), Some(rgb)) = (&mut self.detector, &view.rgb) {
            self.report.detections += 1;
            let detections = detector.detect(rgb).inspect_err(|_| self.report.failures += 1)?;
            return Ok(Found { detections, stand_in: false });
        }
        let annotations = view.picture.annotations.as_ref().ok_or(EyeError::NoDetector)?;
        self.report.stand_ins += 1;
        Ok(Found { detections: annotated::detections(annotations), stand_in: true })
    }
}

/// Makes what is kept of a picture.
fn keep(
    view: View<'_>,
    mut change: Change,
    faces: Vec<Face>,
    stand_in: bool,
    now: Timestamp,
) -> Result<Seen, PictureFault> {
    if stand_in && let Some(annotations) = &view.picture.annotations {
        annotated::forget_made_up_places(annotations, &mut change.visible);
    }
    let jpeg = view.rgb.as_ref().map(Rgb::to_jpeg).transpose()?.unwrap_or_default();
    let detections = change.visible.clone();
    let mut labels: Vec<_> = detections.iter().map(|detection| detection.label.clone()).collect();
    let people = labels.iter().filter(|label| *label == PERSON).count();
    labels.sort_unstable();
    labels.dedup();
    Ok(Seen {
        jpeg,
        rgb: view.rgb,
        detections,
        labels,
        people: u32::try_from(people).unwrap_or(u32::MAX),
        faces,
        looked: view.picture.looked,
        at: now,
        change,
        stand_in,
    })
}

/// The settings were checked to be times.
fn seconds(seconds: f32) -> SignedDuration {
    SignedDuration::try_from_secs_f32(seconds).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests;
