//! A script's annotations, taken for detections where there is no detector.

use crate::robot::{Annotation, Picture};
use crate::see::Detection;
use crate::see::scene::Scene;

/// Where something is that the script gives no place: somewhere in the picture.
const SOMEWHERE: [f32; 4] = [0.0, 0.0, 1.0, 1.0];
/// Places that are made up, so that the tracker can tell things apart: a grid of so many cells a side.
const SIDE: u32 = 32;

/// What the script says is there, each with full certainty. What has no place gets one of its own, the same in every
/// picture as far as its neighbours allow.
pub(super) fn detections(annotations: &[Annotation]) -> Vec<Detection> {
    let places = places(annotations);
    annotations
        .iter()
        .zip(places)
        .map(|(annotation, place)| Detection {
            label: annotation.label.clone(),
            score: 1.0,
            place: annotation.place.unwrap_or(place),
        })
        .collect()
}

/// Replaces the places that [`detections`] made up by the whole picture: a stored frame says nothing that nobody said.
pub(super) fn forget_made_up_places(annotations: &[Annotation], visible: &mut [Detection]) {
    let made_up: Vec<_> = places(annotations)
        .into_iter()
        .zip(annotations)
        .filter_map(|(place, annotation)| annotation.place.is_none().then_some(place))
        .collect();
    for detection in visible {
        if made_up.contains(&detection.place) {
            detection.place = SOMEWHERE;
        }
    }
}

/// Whether the script says something else than what counts as visible: where a script shows one picture for two
/// scenes, the change gate sees no difference.
pub(super) fn are_other(scene: &Scene, picture: &Picture) -> bool {
    let Some(annotations) = &picture.annotations else { return false };
    let sorted = |mut labels: Vec<String>| {
        labels.sort_unstable();
        labels
    };
    let visible = scene.visible(picture.looked).into_iter().map(|detection| detection.label).collect();
    let said = annotations.iter().map(|annotation| annotation.label.clone()).collect();
    sorted(visible) != sorted(said)
}

/// A cell of the grid for each annotation, found by its label and which of that label it is.
fn places(annotations: &[Annotation]) -> Vec<[f32; 4]> {
    let mut taken: Vec<u32> = Vec::with_capacity(annotations.len());
    for (index, annotation) in annotations.iter().enumerate() {
        let before = annotations.iter().take(index).filter(|other| other.label == annotation.label).count();
        // FNV-1a: the same cell on every machine and in every run.
        let hash = annotation
            .label
            .bytes()
            .chain(before.to_le_bytes())
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let mut cell = hash % (SIDE * SIDE);
        while taken.contains(&cell) && taken.len() < (SIDE * SIDE) as usize {
            cell = (cell + 1) % (SIDE * SIDE);
        }
        taken.push(cell);
    }
    let side = 1.0 / SIDE as f32;
    let place = |cell: u32| {
        let (left, top) = ((cell % SIDE) as f32 * side, (cell / SIDE) as f32 * side);
        [left, top, left + side, top + side]
    };
    taken.into_iter().map(place).collect()
}
