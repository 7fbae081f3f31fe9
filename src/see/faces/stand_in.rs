//! A stand-in for both face models: the faces that a script marks, with numbers made out of their names.
//!
//! For scripted days and for tests of other parts. Whoever is marked `of = "anna"` always has Anna's numbers, with the
//! noise of a picture; nothing is recognised. It is used only for a day that marks faces, and says so by [`MODEL`]; its
//! vectors never meet a real model's.
//!
//! A shot of a face that looks at the camera is like the person's base by about 0.9, two such shots are like each other
//! by about 0.8; a turned one by the cosine of the angle less: against shots from the front it is under 0.35 from about
//! 65° on and under 0.25 from about 72° on, and two shots at one angle stay alike by about 0.8. Different people are
//! alike by 0 ± 0.09.

use sha2::{Digest, Sha256};

use super::{DIMENSION, Found, Quality};
use crate::remember::embed::Identity;
use crate::robot::{FaceMark, Picture};
use crate::see::eye::made_up_places;

/// The model's name in its [`Identity`], and in reports.
pub const MODEL: &str = "stand-in faces of a script";
/// How alike a shot from the front and its person's base are.
const FRONTAL: f32 = 0.9;
/// The picture that places are thought in, in pixels.
const PICTURE: (f32, f32) = (1280.0, 720.0);
/// A mark without a place has a face so wide and high, in 0…1 of the picture (102 × 115 pixels), in the middle of a
/// cell of a grid of so many cells a side.
const SIZE: (f32, f32) = (0.08, 0.16);
const CELLS: u32 = 4;

/// What the stand-in's vectors are known by.
#[must_use]
pub fn identity() -> Identity {
    Identity { model: MODEL.into(), weights: "none".into(), preprocessing: 1, dimension: DIMENSION }
}

/// From which likeness on the stand-in's faces are known: the scale of the real model.
#[must_use]
pub fn gates() -> crate::models::FaceGates {
    crate::models::FaceGates { greet: 0.35, ask: 0.25, margin: 0.05 }
}

/// The faces that a script marks in a picture; `None` where nobody marked anything, as for a real camera.
pub(super) fn faces(picture: &Picture) -> Option<Vec<(Found, Quality, Vec<f32>)>> {
    if picture.faces.is_none() && picture.annotations.is_none() {
        return None;
    }
    let marks = picture.faces.as_deref().unwrap_or_default();
    let places = made_up_places(CELLS, marks.iter().map(|mark| mark.of.as_str()));
    let face = |(mark, cell): (&FaceMark, [f32; 4])| {
        let place = mark.place.unwrap_or_else(|| within(cell));
        let shot = picture.at.as_nanosecond();
        (found(place), quality(place, mark.poor), vector(&mark.of, mark.angle, shot))
    };
    Some(marks.iter().zip(places).map(face).collect())
}

/// A face of the usual size in the middle of a cell.
fn within([left, top, right, bottom]: [f32; 4]) -> [f32; 4] {
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    [x - SIZE.0 / 2.0, y - SIZE.1 / 2.0, x + SIZE.0 / 2.0, y + SIZE.1 / 2.0]
}

fn found(place: [f32; 4]) -> Found {
    let [left, top, right, bottom] = place;
    let at = |across: f32, down: f32| [left + across * (right - left), top + down * (bottom - top)];
    let landmarks = [at(0.3, 0.4), at(0.7, 0.4), at(0.5, 0.6), at(0.35, 0.8), at(0.65, 0.8)];
    Found { place, landmarks, score: 1.0 }
}

/// Good, but where the script says otherwise.
fn quality(place: [f32; 4], poor: bool) -> Quality {
    let sharpness = if poor { 0.0 } else { 1.0 };
    Quality { width_px: (place[2] - place[0]) * PICTURE.0, sharpness, frontality: 1.0, cut_by_edge: false }
}

/// The numbers of one shot: the person's base, turned towards a direction of its own by `angle` degrees (left and right
/// differ), with noise that is the same for the same `shot`. [`DIMENSION`] numbers of length 1.
#[must_use]
pub fn vector(of: &str, angle: f32, shot: i128) -> Vec<f32> {
    let base = direction(of, "base", &[]);
    let side = if angle < 0.0 { "left" } else { "right" };
    let pose = direction(of, side, &[&base]);
    let noise = direction(of, &format!("shot {shot}"), &[&base, &pose]);
    let (sin, cos) = angle.abs().to_radians().sin_cos();
    let rest = (1.0 - FRONTAL * FRONTAL).sqrt();
    let mix = |index: usize| FRONTAL * (cos * base[index] + sin * pose[index]) + rest * noise[index];
    (0..DIMENSION).map(mix).collect()
}

/// A direction of length 1 made out of words, at right angles to others of length 1.
fn direction(of: &str, what: &str, to: &[&[f32]]) -> Vec<f32> {
    let mut numbers = Vec::with_capacity(DIMENSION);
    let mut block = 0_u32;
    while numbers.len() < DIMENSION {
        let hash = Sha256::new()
            .chain_update(of.as_bytes())
            .chain_update([0])
            .chain_update(what.as_bytes())
            .chain_update(block.to_le_bytes())
            .finalize();
        // Sums of four bytes are near enough to a bell curve.
        numbers
            .extend(hash.chunks_exact(4).map(|bytes| bytes.iter().map(|byte| f32::from(*byte) - 127.5).sum::<f32>()));
        block += 1;
    }
    numbers.truncate(DIMENSION);
    for other in to {
        let along: f32 = numbers.iter().zip(*other).map(|(one, other)| one * other).sum();
        numbers.iter_mut().zip(*other).for_each(|(number, other)| *number -= along * other);
    }
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt().max(f32::EPSILON);
    numbers.iter().map(|number| number / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remember::embed::cosine;

    #[test]
    fn a_shot_is_like_its_person_and_unlike_others() {
        let base = direction("anna", "base", &[]);
        for shot in 0..50 {
            let anna = vector("anna", 0.0, shot);
            assert!((cosine(&anna, &anna) - 1.0).abs() < 1e-4);
            assert!((cosine(&anna, &base) - 0.9).abs() < 0.01);
            assert!(cosine(&anna, &vector("anna", 0.0, shot + 1)) > 0.7);
            for other in ["ben", "clara", "david", "somebody"] {
                assert!(cosine(&anna, &vector(other, 0.0, shot)) < 0.25, "{other}");
            }
        }
    }

    #[test]
    fn a_turned_face_falls_through_the_band_where_one_waits() {
        let enrolled: Vec<_> = (0..5).map(|shot| vector("anna", 0.0, shot)).collect();
        let best = |angle: f32, shot: i128| {
            let turned = vector("anna", angle, shot);
            enrolled.iter().map(|shot| cosine(shot, &turned)).fold(f32::MIN, f32::max)
        };
        for shot in 100..130 {
            assert!(best(0.0, shot) > 0.75 && best(40.0, shot) > 0.5);
            assert!(best(85.0, shot) < 0.25, "{}", best(85.0, shot));
            assert!(best(66.0, shot) > 0.25 && best(66.0, shot) < 0.45, "{}", best(66.0, shot));
        }
    }

    #[test]
    fn one_pose_stays_like_itself_and_its_mirror_does_not() {
        let left = vector("anna", -70.0, 1);
        assert!(cosine(&left, &vector("anna", -70.0, 2)) > 0.7);
        assert!(cosine(&left, &vector("anna", 70.0, 2)) < 0.3);
    }

    #[test]
    fn the_numbers_of_a_name_are_the_same_on_every_machine() {
        // Computed by another program from the description above.
        let expected = [0.005068, -0.08581, 0.1277];
        for (number, expected) in vector("anna", 0.0, 0).iter().zip(expected) {
            assert!((number - expected).abs() < 1e-3, "{number} instead of {expected}");
        }
        assert_ne!(vector("anna", 0.0, 0), vector("Anna", 0.0, 0));
    }
}
