//! The seeing thread: takes pictures, glances at them, and keeps a frame when what is visible has changed.
//!
//! It runs beside the conversation and never waits for it. A camera that fails is said once and tried again; a frame
//! that cannot be stored is said and the next change is kept again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::Event;
use super::listening::Shared;
use crate::remember::Memory;
use crate::robot::RobotError;
use crate::see::eye::{EyeReport, Seen};
use crate::see::faces::Face;
use crate::see::sight::Sight;
use crate::think::company::{Company, Deed};
use crate::think::hands::frame_of;
use crate::think::visit::Head;

/// Pictures are taken this often; the change gate is cheap enough for it (five a second, from the reference robot).
const EVERY: Duration = Duration::from_millis(200);
/// A camera that gives nothing is asked again this much later.
const AFTER_A_FAILURE: Duration = Duration::from_secs(2);
/// The thread is heard of again within this. A look takes tenths of a second; the first picture that is kept may have to
/// wait for a model of 1.5 GB to be read from an SD card. Not measured.
const ALIVE: Duration = Duration::from_secs(300);

/// Frames that wait for names; faces that are no longer followed are never named.
const MOST_UNNAMED: usize = 16;

/// What the thread works with.
pub struct Seeing {
    pub shared: Shared,
    pub sight: Sight,
    pub memory: Result<Memory, String>,
    pub head_turned: Arc<AtomicBool>,
    /// Who is in the room, where faces can be told apart.
    pub company: Option<Company>,
    /// What is to be said to them.
    pub courtesies: mpsc::Sender<Deed>,
    pub runtime: Handle,
}

/// The face that fills most of the picture.
fn nearest(faces: &[Face]) -> Option<&Face> {
    let size = |face: &Face| (face.place[2] - face.place[0]) * (face.place[3] - face.place[1]);
    faces.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// A frame whose people may still be recognised.
struct Unnamed {
    frame: Uuid,
    /// The numbers under which its faces are followed.
    tracks: Vec<u32>,
    /// Who is in it, as far as it is known.
    names: Vec<String>,
}

impl Seeing {
    /// Looks until the process ends.
    pub fn until_the_end(&self) {
        // Of faces that were not known yet when the frames were kept, oldest first.
        let mut unnamed = VecDeque::new();
        let pulse = self.shared.heartbeat.pulse("seeing", ALIVE);
        while !self.shared.ending.load(Ordering::Acquire) {
            pulse.beat(ALIVE);
            match self.shared.robot.picture() {
                Ok(picture) => {
                    let turned = self.head_turned.load(Ordering::Acquire);
                    match self.sight.glance(&picture, turned, self.shared.clock.now()) {
                        Ok(glance) => {
                            self.report(&self.sight.report());
                            if let Some(faces) = &glance.faces {
                                self.follow(faces, turned);
                                self.meet(faces, turned);
                                self.name_frames(&mut unnamed);
                            }
                            if let Some(seen) = glance.seen {
                                self.keep(seen, &mut unnamed);
                            }
                        }
                        Err(error) => self.shared.health.set("seeing", false, error.to_string()),
                    }
                    self.shared.robot.pause(EVERY);
                }
                Err(error) => {
                    self.shared.health.set("seeing", false, error.to_string());
                    if matches!(error, RobotError::Missing { .. }) {
                        tracing::debug!(%error, "no picture");
                    }
                    self.shared.robot.pause(AFTER_A_FAILURE);
                }
            }
        }
    }

    /// The gaze goes to the nearest face, unless the head looks somewhere because it was asked to.
    fn follow(&self, faces: &[Face], turned: bool) {
        if let Some(face) = nearest(faces).filter(|_| !turned) {
            self.shared.robot.gaze(face.place);
        }
    }

    fn meet(&self, faces: &[Face], turned: bool) {
        let Some(company) = &self.company else { return };
        let head = if turned { Head::Turned } else { Head::Steady };
        for deed in self.runtime.block_on(company.see(faces, head)) {
            // The conversation is busy with as many already: a greeting that comes later is none.
            if let Err(mpsc::error::TrySendError::Full(deed)) = self.courtesies.try_send(deed) {
                tracing::debug!(?deed, "there was no room for this");
            }
        }
    }

    /// Somebody is recognised some seconds after they came into view, and a stranger gives a name later still: the frames
    /// that were kept until then get it now.
    fn name_frames(&self, unnamed: &mut VecDeque<Unnamed>) {
        let (Some(company), Ok(memory)) = (&self.company, &self.memory) else { return };
        for kept in unnamed.iter_mut() {
            let names = company.names_of(&kept.tracks);
            if names.len() <= kept.names.len() {
                continue;
            }
            match self.runtime.block_on(memory.name_frame(kept.frame, names.clone())) {
                Ok(()) => kept.names = names,
                Err(error) => (self.shared.diary)(&Event::Trouble {
                    what: format!("who is in a picture was not kept with it: {error}"),
                }),
            }
        }
        unnamed.retain(|kept| kept.names.len() < kept.tracks.len());
    }

    fn keep(&self, seen: Seen, unnamed: &mut VecDeque<Unnamed>) {
        let (at, stand_in) = (seen.at, seen.stand_in);
        let tracks: Vec<u32> = seen.faces.iter().map(|face| face.track).collect();
        let names = match &self.company {
            Some(company) => company.names_of(&tracks),
            None => Vec::new(),
        };
        let frame = frame_of(seen, names.clone());
        if names.len() < tracks.len() {
            unnamed.push_back(Unnamed { frame: frame.id(), tracks, names });
            if unnamed.len() > MOST_UNNAMED {
                unnamed.pop_front();
            }
        }
        let sentence = frame.sentence.clone();
        let stored = match &self.memory {
            Ok(memory) => self.runtime.block_on(memory.store_frame(frame)).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        (self.shared.diary)(&Event::Saw { sentence, at, stand_in, stored });
    }

    fn report(&self, report: &EyeReport) {
        let how = match &report.detector {
            Some(detector) => detector.clone(),
            None => "no detector; the simulated camera's annotations stand in".into(),
        };
        let faults = report.faults.sum();
        let bad = match (&report.last_fault, faults) {
            (Some(last), 1..) => {
                format!("; {faults} of {} pictures were of no use, the last one: {last}", report.pictures)
            }
            _ => String::new(),
        };
        self.shared.health.set("seeing", true, format!("{how}; {} changes seen{bad}", report.changes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::see::faces::Quality;

    fn face(track: u32, place: [f32; 4]) -> Face {
        let quality = Quality { width_px: 100.0, sharpness: 0.5, frontality: 0.9, cut_by_edge: false };
        Face { place, landmarks: [[0.0; 2]; 5], score: 0.9, track, quality, vector: None }
    }

    #[test]
    fn the_gaze_goes_to_who_is_nearest_and_to_nobody_where_nobody_is() {
        let behind = face(1, [0.1, 0.1, 0.2, 0.2]);
        let near = face(2, [0.5, 0.2, 0.8, 0.7]);
        assert_eq!(nearest(&[behind.clone(), near, behind]).map(|face| face.track), Some(2));
        assert_eq!(nearest(&[]), None);
    }
}
