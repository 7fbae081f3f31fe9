//! Where the gates of a face's quality come from: real portraits, shrunk, blurred, darkened, cut and turned.

use reachy_remembers::see::Rgb;
use reachy_remembers::see::faces::quality::{EDGE_SHARE, LEAST_FRONTALITY, LEAST_SHARPNESS, LEAST_WIDTH_PX};
use reachy_remembers::see::faces::{FindFaces, Found, Quality, Yunet, align};
use reachy_remembers::see::picture;

use crate::detecting::engines;
use crate::faces::{before_a_wall, finder, leaning, portrait, portraits, yunet};

const PORTRAITS: [&str; 4] = ["obama.jpg", "obama2.jpg", "obama3.jpg", "biden.jpg"];

/// Portraits and a network that looks at them.
struct Studio {
    yunet: Yunet,
    portraits: Vec<(&'static str, Rgb, Found)>,
}

impl Studio {
    fn open() -> Option<Self> {
        let (model, _) = (finder("yunet-s-dynamic")?, portraits()?);
        let mut yunet = yunet(&engines().pop()?, &model);
        let portraits = PORTRAITS.into_iter().map(|name| {
            let picture = portrait(name).expect("a portrait");
            let found = yunet.find(&picture).expect("faces");
            (name, picture, found[0])
        });
        Some(Self { portraits: portraits.collect(), yunet })
    }

    /// How the best face of a picture is judged, as the camera would give it; `None` where none is found.
    fn judge(&mut self, picture: &Rgb) -> Option<Quality> {
        let seen = picture::decode(&picture.to_jpeg().expect("a JPEG")).expect("a picture");
        let found = *self.yunet.find(&seen).expect("faces").first()?;
        let crop = align::crop(&seen, &found.landmarks);
        Some(Quality::judge(&found, (seen.width, seen.height), crop.as_ref()))
    }

    /// The qualities of every portrait at that width after `change`.
    fn rooms(&mut self, face_px: f32, change: &dyn Fn(Rgb) -> Rgb) -> Vec<(&'static str, Quality)> {
        let rooms: Vec<_> = self
            .portraits
            .iter()
            .map(|(name, picture, found)| (*name, change(noisy(before_a_wall(picture, found, face_px, (300, 40))))))
            .collect();
        rooms.iter().filter_map(|(name, room)| self.judge(room).map(|quality| (*name, quality))).collect()
    }
}

/// A sensor's noise, the same in every run.
fn noisy(mut picture: Rgb) -> Rgb {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for value in &mut picture.pixels {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *value = value.saturating_add((state % 7) as u8).saturating_sub(3);
    }
    picture
}

/// Blurred as by motion over so many pixels along (right, down) a step.
fn moved(picture: &Rgb, pixels: usize, (right, down): (isize, isize)) -> Rgb {
    let (width, height) = (picture.width as isize, picture.height as isize);
    let mut blurred = Vec::with_capacity(picture.pixels.len());
    for y in 0..height {
        for x in 0..width {
            let mut sum = [0_u32; 3];
            for step in 0..pixels as isize {
                let offset = step - pixels as isize / 2;
                let (x, y) = ((x + right * offset).clamp(0, width - 1), (y + down * offset).clamp(0, height - 1));
                let start = ((y * width + x) * 3) as usize;
                sum.iter_mut()
                    .zip(&picture.pixels[start..start + 3])
                    .for_each(|(sum, value)| *sum += u32::from(*value));
            }
            blurred.extend(sum.map(|sum| (sum / pixels as u32) as u8));
        }
    }
    Rgb { pixels: blurred, ..*picture }
}

fn darker(picture: Rgb) -> Rgb {
    Rgb { pixels: picture.pixels.iter().map(|value| (f32::from(*value) * 0.4 + 20.0) as u8).collect(), ..picture }
}

#[test]
fn a_sharp_face_from_forty_pixels_on_is_usable_in_bright_and_dim_light() {
    let Some(mut studio) = Studio::open() else { return };
    for face_px in [44.0, 60.0, 80.0, 120.0] {
        for (light, change) in [("bright", &(|room| room) as &dyn Fn(Rgb) -> Rgb), ("dim", &darker)] {
            let rooms = studio.rooms(face_px, change);
            assert_eq!(rooms.len(), PORTRAITS.len(), "all are found at {face_px}");
            for (name, quality) in rooms {
                println!("{face_px} px, {light}, {name}: {quality:?}");
                assert!(quality.usable(), "{name} at {face_px} px, {light}: {quality:?}");
            }
        }
    }
}

#[test]
fn a_face_under_forty_pixels_is_not_usable() {
    let Some(mut studio) = Studio::open() else { return };
    for face_px in [24.0, 28.0, 33.0] {
        for (name, quality) in studio.rooms(face_px, &|room| room) {
            assert!(quality.width_px < LEAST_WIDTH_PX && !quality.usable(), "{name} at {face_px}: {quality:?}");
        }
    }
}

#[test]
fn a_face_blurred_by_thirteen_pixels_of_motion_is_not_usable_although_the_detector_is_sure() {
    let Some(mut studio) = Studio::open() else { return };
    let mut found = 0;
    for face_px in [44.0, 60.0] {
        for (towards, pixels) in [((1, 0), 13), ((0, 1), 13), ((1, 1), 9), ((1, -1), 9)] {
            for (name, quality) in studio.rooms(face_px, &|room| moved(&room, pixels, towards)) {
                println!("{face_px} px, towards {towards:?}, {name}: {:.4}", quality.sharpness);
                assert!(!quality.usable(), "{name} at {face_px} px, {towards:?}: {quality:?}");
                found += 1;
            }
        }
    }
    assert!(found >= 20, "the detector finds most of them: {found}");
}

#[test]
fn a_face_that_the_edge_cuts_is_not_usable_and_one_with_room_is() {
    let Some(mut studio) = Studio::open() else { return };
    let (_, picture, found) = studio.portraits[0].clone();
    let room = before_a_wall(&picture, &found, 120.0, (300, 40));
    let whole = studio.yunet.find(&room).expect("faces")[0].place;
    let size = [room.width as f32, room.height as f32];
    let edges = [whole[0] * size[0], whole[1] * size[1], whole[2] * size[0], whole[3] * size[1]];
    let (across, down) = (edges[2] - edges[0], edges[3] - edges[1]);
    for share in [0.06, 0.15, 0.3] {
        let cuts = [
            (edges[0] + share * across, 0.0, size[0], size[1]),
            (0.0, 0.0, edges[2] - share * across, size[1]),
            (0.0, edges[1] + share * down, size[0], size[1]),
            (0.0, 0.0, size[0], edges[3] - share * down),
        ];
        for (side, cut) in cuts.into_iter().enumerate() {
            let quality = studio.judge(&part(&room, cut));
            println!("{share} off side {side}: {quality:?}");
            assert!(quality.is_none_or(|quality| quality.cut_by_edge), "{share} off side {side}: {quality:?}");
        }
    }
    let roomy = part(&room, (edges[0] - 0.25 * across, edges[1] - 0.25 * down, size[0], size[1]));
    assert!(studio.judge(&roomy).is_some_and(|quality| quality.usable()), "{EDGE_SHARE} is enough room");
    for name in ["obama_partial_face.jpg", "obama_partial_face2.jpg"] {
        let quality = studio.judge(&portrait(name).expect("a portrait")).expect("a face");
        assert!(quality.cut_by_edge && !quality.usable(), "{name}: {quality:?}");
    }
}

/// What lies within left, top, right, bottom, in pixels.
fn part(picture: &Rgb, (left, top, right, bottom): (f32, f32, f32, f32)) -> Rgb {
    let (left, top, right, bottom) = (left as usize, top as usize, right as usize, bottom as usize);
    let width = picture.width as usize;
    let lines = (top..bottom).map(|y| &picture.pixels[(y * width + left) * 3..(y * width + right) * 3]);
    let pixels = lines.flatten().copied().collect();
    Rgb { width: (right - left) as u32, height: (bottom - top) as u32, pixels }
}

#[test]
fn a_leaning_head_is_as_usable_as_an_upright_one() {
    let Some(mut studio) = Studio::open() else { return };
    for (name, picture, _) in studio.portraits.clone() {
        for degrees in [-20.0, 20.0] {
            let quality = studio.judge(&leaning(&picture, degrees)).expect("a face");
            assert!(quality.frontality >= LEAST_FRONTALITY, "{name} leaning by {degrees}°: {quality:?}");
            assert!(quality.sharpness >= LEAST_SHARPNESS, "{name} leaning by {degrees}°: {quality:?}");
        }
    }
}
