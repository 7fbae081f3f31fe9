//! What the network's numbers mean: cells of three grids, each with a box, a belief and 80 labels.

use super::SIDE;
use crate::see::infer::Tensor;
use crate::see::{Detection, Rgb};

/// Pixels of the square between two cells, grid by grid in the network's order.
const STRIDES: [usize; 3] = [8, 16, 32];
/// Cells of the three grids: 52² + 26² + 13².
const CELLS: usize = 3549;
/// Numbers before the labels of a cell: centre x and y, logarithm of width and height, belief.
const BOX: usize = 5;
/// Weaker findings are none. From the network's own demonstration; what counts for a scene is decided there.
const LEAST_SCORE: f32 = 0.1;
/// Of two boxes of one label that overlap more, the weaker one goes (intersection over union). From the network's own
/// demonstration.
const SAME_THING: f32 = 0.45;
/// The most cells that are compared, the strongest first; a crowded photograph has under 200. Not measured on worse.
const MOST_CANDIDATES: usize = 1000;
/// The most detections of one picture.
const MOST_DETECTIONS: usize = 100;

/// A cell that believes to see something, in pixels of the square.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    label: usize,
    score: f32,
    /// Left, top, right, bottom.
    place: [f32; 4],
}

/// The detections, best first. `scale`: how many pixels of the square one of the picture's is.
pub(super) fn detections(
    answer: &Tensor,
    labels: &[&str],
    scale: f64,
    picture: &Rgb,
) -> Result<Vec<Detection>, String> {
    let numbers = BOX + labels.len();
    if answer.shape() != [1, CELLS, numbers] {
        return Err(format!("its answer has the shape {:?} instead of [1, {CELLS}, {numbers}]", answer.shape()));
    }
    let cells = answer.values().chunks_exact(numbers).zip(grid());
    let mut found: Vec<Candidate> = cells.filter_map(|(cell, grid)| candidate(cell, grid)).collect();
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found.truncate(MOST_CANDIDATES);

    let (width, height) = (f64::from(picture.width) * scale, f64::from(picture.height) * scale);
    let detection = |candidate: Candidate| {
        let place = within(candidate.place, width, height)?;
        let label = (*labels.get(candidate.label)?).to_owned();
        Some(Detection { label, score: candidate.score, place })
    };
    Ok(apart(found).into_iter().filter_map(detection).take(MOST_DETECTIONS).collect())
}

/// Column, row and stride of every cell, in the network's order.
fn grid() -> impl Iterator<Item = (usize, usize, usize)> {
    STRIDES.into_iter().flat_map(|stride| {
        let side = SIDE / stride;
        (0..side * side).map(move |cell| (cell % side, cell / side, stride))
    })
}

fn candidate(cell: &[f32], (column, row, stride): (usize, usize, usize)) -> Option<Candidate> {
    let (&[x, y, width, height, belief], labels) = cell.split_first_chunk::<BOX>()?;
    let (label, sure) = labels.iter().copied().enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let score = belief * sure;
    let stride = stride as f32;
    let (x, y) = ((x + column as f32) * stride, (y + row as f32) * stride);
    let (right, down) = (width.exp() * stride / 2.0, height.exp() * stride / 2.0);
    let place = [x - right, y - down, x + right, y + down];
    // A number that is none fails the comparison too.
    (score >= LEAST_SCORE && place.iter().all(|edge| edge.is_finite())).then_some(Candidate { label, score, place })
}

/// Each thing once: of overlapping boxes of one label the strongest. `found` has the strongest first.
fn apart(found: Vec<Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in found {
        let same =
            |other: &Candidate| other.label == candidate.label && overlap(&other.place, &candidate.place) > SAME_THING;
        if !kept.iter().any(same) {
            kept.push(candidate);
        }
    }
    kept
}

/// Intersection over union, 0…1.
fn overlap(one: &[f32; 4], other: &[f32; 4]) -> f32 {
    let area = |place: &[f32; 4]| (place[2] - place[0]).max(0.0) * (place[3] - place[1]).max(0.0);
    let common = [one[0].max(other[0]), one[1].max(other[1]), one[2].min(other[2]), one[3].min(other[3])];
    let common = area(&common);
    let union = area(one) + area(other) - common;
    if union > 0.0 { common / union } else { 0.0 }
}

/// The part of a box that lies in the picture, in 0…1 of it; `None` for a box beside it.
fn within(place: [f32; 4], width: f64, height: f64) -> Option<[f32; 4]> {
    let across = |edge: f32| (f64::from(edge) / width).clamp(0.0, 1.0) as f32;
    let down = |edge: f32| (f64::from(edge) / height).clamp(0.0, 1.0) as f32;
    let place = [across(place[0]), down(place[1]), across(place[2]), down(place[3])];
    (place[0] < place[2] && place[1] < place[3]).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [&str; 2] = ["cup", "cat"];
    const NUMBERS: usize = BOX + 2;

    /// An answer in which only these cells see anything: (cell, numbers).
    fn answer(cells: &[(usize, [f32; NUMBERS])]) -> Tensor {
        let mut values = vec![0.0; CELLS * NUMBERS];
        for (cell, numbers) in cells {
            values[cell * NUMBERS..(cell + 1) * NUMBERS].copy_from_slice(numbers);
        }
        Tensor::new(vec![1, CELLS, NUMBERS], values).unwrap()
    }

    fn found(cells: &[(usize, [f32; NUMBERS])]) -> Vec<Detection> {
        let picture = Rgb { width: 416, height: 208, pixels: Vec::new() };
        detections(&answer(cells), &LABELS, 1.0, &picture).unwrap()
    }

    /// ln 4: with a stride of 8 a box of 32 pixels.
    const LN_4: f32 = 1.386_294_4;

    #[test]
    fn a_cells_numbers_become_a_place_in_the_picture() {
        // Row 2, column 3 of the first grid: centre (3.5 · 8, 2.5 · 8) = (28, 20), 32 pixels wide and high.
        let only = found(&[(2 * 52 + 3, [0.5, 0.5, LN_4, LN_4, 0.9, 0.1, 0.5])]);
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].label, "cat");
        assert!((only[0].score - 0.45).abs() < 1e-6);
        let expected = [12.0 / 416.0, 4.0 / 208.0, 44.0 / 416.0, 36.0 / 208.0];
        for (place, expected) in only[0].place.iter().zip(expected) {
            assert!((place - expected).abs() < 1e-5, "{:?}", only[0].place);
        }
    }

    #[test]
    fn the_second_and_third_grid_begin_where_the_one_before_ends() {
        let grid: Vec<_> = grid().collect();
        assert_eq!(grid.len(), CELLS);
        assert_eq!([grid[2704], grid[2704 + 676]], [(0, 0, 16), (0, 0, 32)]);
        assert_eq!(grid[2703], (51, 51, 8));
    }

    #[test]
    fn two_boxes_of_one_thing_become_one_and_another_label_stays() {
        let sure = |cup, cat| [0.5, 0.5, LN_4, LN_4, 1.0, cup, cat];
        let three = found(&[(500, sure(0.6, 0.0)), (501, sure(0.8, 0.0)), (502, sure(0.0, 0.3))]);
        let told: Vec<_> = three.iter().map(|it| (it.label.as_str(), it.score)).collect();
        assert_eq!(told, [("cup", 0.8), ("cat", 0.3)]);
    }

    #[test]
    fn a_box_over_the_edge_is_cut_and_one_in_the_grey_below_the_picture_is_dropped() {
        let cell = [0.0, 0.0, LN_4, LN_4, 1.0, 1.0, 0.0];
        let edge = found(&[(0, cell)]);
        assert_eq!(edge[0].place[..2], [0.0, 0.0]);
        assert!(edge[0].place[2] > 0.03);
        assert!(found(&[(40 * 52, cell)]).is_empty());
    }

    #[test]
    fn weak_findings_and_numbers_that_are_none_are_left_out() {
        assert!(found(&[(9, [0.5, 0.5, 1.0, 1.0, 0.3, 0.3, 0.2])]).is_empty());
        assert!(found(&[(9, [0.5, 0.5, 1.0, 1.0, f32::NAN, 0.9, 0.2])]).is_empty());
        assert!(found(&[(9, [0.5, 0.5, 1e9, 1.0, 1.0, 0.9, 0.2])]).is_empty());
        assert!(found(&[(9, [f32::NAN, 0.5, 1.0, 1.0, 1.0, 0.9, 0.2])]).is_empty());
    }

    #[test]
    fn an_answer_of_another_network_is_refused() {
        let other = Tensor::new(vec![1, 2, 3], vec![0.0; 6]).unwrap();
        let picture = Rgb { width: 1, height: 1, pixels: vec![0; 3] };
        let why = detections(&other, &LABELS, 1.0, &picture).unwrap_err();
        assert!(why.contains("[1, 2, 3]"), "{why}");
    }

    #[test]
    fn there_are_eighty_labels_each_once() {
        let mut labels: Vec<&str> = super::super::LABELS.lines().collect();
        assert_eq!((labels[0], labels[41], labels[79]), ("person", "cup", "toothbrush"));
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), 80);
    }
}
