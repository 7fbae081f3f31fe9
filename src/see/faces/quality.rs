//! Whether a face is good enough to greet somebody by it, to ask for a name, or to enrol it. Pure.
//!
//! The detector's own score cannot say it: faces blurred by 13 pixels of motion keep 0.8 to 0.9. Each gate below was
//! measured on five portraits of three people, shrunk, blurred and cut in a 1280 × 720 picture with noise and JPEG;
//! `tests/house/faces_quality.rs` measures them again.

use super::Found;
use crate::see::Rgb;

/// A face narrower than this, in pixels of the picture, falls under any gate of likeness. Measured with a MobileFaceNet:
/// under 28 pixels nobody was recognised; 40 leaves room for the detector's error.
pub const LEAST_WIDTH_PX: f32 = 40.0;
/// Less sharp than this is blurred. Measured: sharp faces from 40 pixels on have 0.080 or more, also at 40 % of the
/// light; blurred by 13 pixels of motion in any direction, faces up to 60 pixels wide have at most 0.064 and those of
/// 80 pixels 0.025 to 0.088.
pub const LEAST_SHARPNESS: f32 = 0.07;
/// Less frontal than this is too far in profile. By projecting the measures of a head it is 39° of turning; not
/// measured on real heads. The portraits have 0.61 to 0.98.
pub const LEAST_FRONTALITY: f32 = 0.35;
/// A face whose box comes nearer to the picture's edge than this share of its own size may be cut by it. Measured on 300
/// faces of 60 to 180 pixels, cut by 6 to 30 % on each side: the box ended at most 0.060 before the edge (cut by 40 %, one
/// of 57 at 0.096). A face with 15 % of room is 0.060 away or more.
pub const EDGE_SHARE: f32 = 0.06;

/// How well a face can be recognised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Width of the face's box in pixels of the picture.
    pub width_px: f32,
    /// How much the weakest direction of the face's middle changes from pixel to pixel, as a share of its contrast; 0
    /// for a face of one colour. Motion blurs one direction and leaves the others, and light changes nothing in it.
    pub sharpness: f32,
    /// 1 where the nose is midway between the eyes, 0 where it is over one of them or beyond.
    pub frontality: f32,
    /// Whether the picture's edge cuts the face, or may.
    pub cut_by_edge: bool,
}

impl Quality {
    /// Judges a face. `crop`: the same face laid straight, or `None` where that cannot be.
    #[must_use]
    pub fn judge(found: &Found, picture: (u32, u32), crop: Option<&Rgb>) -> Self {
        let [left, _, right, _] = found.place;
        Self {
            width_px: (right - left) * picture.0 as f32,
            sharpness: crop.map_or(0.0, sharpness),
            frontality: frontality(&found.landmarks, picture),
            cut_by_edge: is_cut(&found.place),
        }
    }

    /// Whether it is good enough to greet, ask or enrol.
    #[must_use]
    pub fn usable(&self) -> bool {
        !self.cut_by_edge
            && self.width_px >= LEAST_WIDTH_PX
            && self.sharpness >= LEAST_SHARPNESS
            && self.frontality >= LEAST_FRONTALITY
    }
}

/// Whether a box comes too near to the edge of the picture. A place that is no number is cut.
fn is_cut(&[left, top, right, bottom]: &[f32; 4]) -> bool {
    let (across, down) = (EDGE_SHARE * (right - left), EDGE_SHARE * (bottom - top));
    !(left >= across && top >= down && right <= 1.0 - across && bottom <= 1.0 - down)
}

/// How far the nose is from midway between the eyes, along the line through them.
fn frontality(landmarks: &[[f32; 2]; 5], picture: (u32, u32)) -> f32 {
    let [right_eye, left_eye, nose, ..] =
        landmarks.map(|point| [point[0] * picture.0 as f32, point[1] * picture.1 as f32]);
    let eyes = [left_eye[0] - right_eye[0], left_eye[1] - right_eye[1]];
    let along = (nose[0] - right_eye[0]) * eyes[0] + (nose[1] - right_eye[1]) * eyes[1];
    let share = along / (eyes[0] * eyes[0] + eyes[1] * eyes[1]);
    if share.is_finite() { (1.0 - 2.0 * (share - 0.5).abs()).max(0.0) } else { 0.0 }
}

/// Side of the crop at half its size, and the rows and columns of it that are face and neither hair nor background.
const HALF: usize = 56;
const ROWS: std::ops::Range<usize> = 12..50;
const COLUMNS: std::ops::Range<usize> = 10..46;

/// See [`Quality::sharpness`]; `crop` is a face laid straight.
fn sharpness(crop: &Rgb) -> f32 {
    let grey = middle(crop);
    let (columns, rows) = (COLUMNS.len(), ROWS.len());
    if grey.len() != columns * rows {
        return 0.0;
    }
    let mean = grey.iter().sum::<f32>() / grey.len() as f32;
    let contrast = grey.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / grey.len() as f32;
    // One step of grey is what rounding makes of a face of one colour.
    if contrast < 1.0 {
        return 0.0;
    }
    // Mean square of the difference to the neighbour so many columns and rows away, by the square of the distance.
    let change = |right: isize, down: isize| {
        let (mut sum, mut count) = (0.0, 0_u32);
        for row in 0..rows {
            for column in 0..columns {
                let there = (column.checked_add_signed(right), row.checked_add_signed(down));
                if let (Some(x), Some(y)) = there
                    && x < columns
                    && y < rows
                {
                    sum += (grey[y * columns + x] - grey[row * columns + column]).powi(2);
                    count += 1;
                }
            }
        }
        sum / count.max(1) as f32 / (right * right + down * down) as f32
    };
    let weakest = [change(1, 0), change(0, 1), change(1, 1), change(-1, 1)].into_iter().fold(f32::MAX, f32::min);
    weakest / contrast
}

/// The grey (Rec. 601) of the crop's middle at half its size; empty for a crop of another size.
fn middle(crop: &Rgb) -> Vec<f32> {
    let side = 2 * HALF;
    if crop.pixels.len() != side * side * 3 {
        return Vec::new();
    }
    let grey = |x: usize, y: usize| {
        let pixel = &crop.pixels[(y * side + x) * 3..][..3];
        0.299 * f32::from(pixel[0]) + 0.587 * f32::from(pixel[1]) + 0.114 * f32::from(pixel[2])
    };
    let mean = |x: usize, y: usize| (grey(x, y) + grey(x + 1, y) + grey(x, y + 1) + grey(x + 1, y + 1)) / 4.0;
    ROWS.flat_map(|row| COLUMNS.map(move |column| (2 * column, 2 * row))).map(|(x, y)| mean(x, y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: (u32, u32) = (1000, 1000);

    /// Landmarks of a head that is turned by so many degrees: eyes 62 mm apart, the nose's tip 25 mm before them, as
    /// heads are measured.
    fn turned(degrees: f32) -> [[f32; 2]; 5] {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let point =
            |across: f32, forward: f32, down: f32| [0.5 + (across * cos + forward * sin) / 1000.0, 0.5 + down / 1000.0];
        [
            point(-31.0, 0.0, 0.0),
            point(31.0, 0.0, 0.0),
            point(0.0, 25.0, 40.0),
            point(-25.0, 5.0, 70.0),
            point(25.0, 5.0, 70.0),
        ]
    }

    #[test]
    fn a_face_that_looks_ahead_passes_and_a_profile_does_not() {
        assert!((frontality(&turned(0.0), PICTURE) - 1.0).abs() < 1e-4);
        for degrees in [-35.0, -20.0, 20.0, 35.0] {
            assert!(frontality(&turned(degrees), PICTURE) >= LEAST_FRONTALITY, "{degrees}°");
        }
        for degrees in [-85.0, -60.0, -42.0, 42.0, 60.0, 85.0] {
            assert!(frontality(&turned(degrees), PICTURE) < LEAST_FRONTALITY, "{degrees}°");
        }
        assert_eq!(frontality(&[[0.5, 0.5]; 5], PICTURE), 0.0);
        assert_eq!(frontality(&[[f32::NAN, 0.5]; 5], PICTURE), 0.0);
    }

    #[test]
    fn a_head_that_leans_is_as_frontal_as_an_upright_one() {
        let (sin, cos) = 40_f32.to_radians().sin_cos();
        let lean = turned(20.0).map(|[x, y]| {
            let (x, y) = (x - 0.5, y - 0.5);
            [0.5 + x * cos - y * sin, 0.5 + x * sin + y * cos]
        });
        assert!((frontality(&lean, PICTURE) - frontality(&turned(20.0), PICTURE)).abs() < 1e-4);
    }

    #[test]
    fn a_face_at_the_edge_is_cut() {
        assert!(!is_cut(&[0.3, 0.3, 0.5, 0.6]));
        for place in [[-0.01, 0.3, 0.2, 0.6], [0.01, 0.3, 0.2, 0.6], [0.8, 0.3, 0.999, 0.6], [0.3, 0.0, 0.5, 0.4]] {
            assert!(is_cut(&place), "{place:?}");
        }
        assert!(is_cut(&[0.3, 0.7, 0.5, 1.02]) && is_cut(&[f32::NAN, 0.3, 0.5, 0.6]));
    }

    #[test]
    fn each_gate_alone_refuses() {
        let good = Quality { width_px: 60.0, sharpness: 0.1, frontality: 0.9, cut_by_edge: false };
        assert!(good.usable());
        assert!(!Quality { width_px: 39.0, ..good }.usable());
        assert!(!Quality { sharpness: 0.06, ..good }.usable());
        assert!(!Quality { frontality: 0.3, ..good }.usable());
        assert!(!Quality { cut_by_edge: true, ..good }.usable());
        assert!(!Quality { sharpness: f32::NAN, ..good }.usable());
    }

    #[test]
    fn a_crop_of_one_colour_or_of_another_size_is_not_sharp() {
        let flat = Rgb { width: 112, height: 112, pixels: vec![120; 112 * 112 * 3] };
        assert_eq!(sharpness(&flat), 0.0);
        assert_eq!(sharpness(&Rgb { width: 2, height: 2, pixels: vec![1; 12] }), 0.0);
    }

    #[test]
    fn stripes_along_one_direction_are_what_motion_leaves() {
        let striped = |across: usize, down: usize| {
            let value = |index: usize| if (index % 112 * across + index / 112 * down) / 4 % 2 == 0 { 40 } else { 200 };
            Rgb { width: 112, height: 112, pixels: (0..112 * 112).flat_map(|index| [value(index); 3]).collect() }
        };
        assert!(sharpness(&striped(1, 0)) < 0.001 && sharpness(&striped(0, 1)) < 0.001);
        let checks = |index: usize| if (index % 112 / 4 + index / 112 / 4) % 2 == 0 { 40 } else { 200 };
        let checks =
            Rgb { width: 112, height: 112, pixels: (0..112 * 112).flat_map(|index| [checks(index); 3]).collect() };
        assert!(sharpness(&checks) > 0.3, "{}", sharpness(&checks));
    }
}
