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
    annotations
        .iter()
        .zip(places_of(annotations))
        .map(|(annotation, place)| Detection {
            label: annotation.label.clone(),
            score: 1.0,
            place: annotation.place.unwrap_or(place),
        })
        .collect()
}

/// Replaces the places that [`detections`] made up by the whole picture: a stored frame says nothing that nobody said.
pub(super) fn forget_made_up_places(annotations: &[Annotation], visible: &mut [Detection]) {
    let made_up: Vec<_> = places_of(annotations)
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

fn places_of(annotations: &[Annotation]) -> Vec<[f32; 4]> {
    places(SIDE, annotations.iter().map(|annotation| annotation.label.as_str()))
}

/// A cell of a grid of `side` × `side` for each label, found by the label and which of that label it is.
pub(crate) fn places<'a>(side: u32, labels: impl Iterator<Item = &'a str>) -> Vec<[f32; 4]> {
    let labels: Vec<&str> = labels.collect();
    let cells = side * side;
    let mut taken: Vec<u32> = Vec::with_capacity(labels.len());
    for (index, label) in labels.iter().enumerate() {
        let before = labels.iter().take(index).filter(|other| *other == label).count();
        // FNV-1a: the same cell on every machine and in every run.
        let hash = label
            .bytes()
            .chain(before.to_le_bytes())
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let mut cell = hash % cells;
        while taken.contains(&cell) && taken.len() < cells as usize {
            cell = (cell + 1) % cells;
        }
        taken.push(cell);
    }
    let width = 1.0 / side as f32;
    let place = |cell: u32| {
        let (left, top) = ((cell % side) as f32 * width, (cell / side) as f32 * width);
        [left, top, left + width, top + width]
    };
    taken.into_iter().map(place).collect()
}
