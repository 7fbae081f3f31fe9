//! What the network's numbers mean: cells of three grids, each with two beliefs, a box and five landmarks.

use std::collections::BTreeMap;

use crate::see::faces::Found;
use crate::see::infer::Tensor;
use crate::see::scene::overlap;

/// Pixels between two cells of each grid.
const STRIDES: [usize; 3] = [8, 16, 32];
/// Weaker findings are none. Measured on 270 pictures with faces of 24 to 80 pixels before three photographs: with
/// 0.6, faces of 36 pixels and more were all found, with at most three false ones in 30 pictures.
pub(super) const LEAST_SCORE: f32 = 0.6;
/// Of two boxes that overlap more, the weaker one goes (intersection over union). From the network's own demonstration.
const SAME_FACE: f32 = 0.3;
/// The most cells that are compared, the strongest first; a face lights up fewer than 50. Not measured on crowds.
const MOST_CANDIDATES: usize = 1000;
/// The most faces of one picture, the best first: more people than sit around a desk.
pub const MOST_FACES: usize = 16;

/// The network's outputs, and the size of its input in pixels.
pub(super) struct Answer<'a> {
    pub outputs: &'a BTreeMap<String, Tensor>,
    pub columns: usize,
    pub rows: usize,
}

impl Answer<'_> {
    /// The faces in pixels of the network's input, best first.
    pub fn faces(&self) -> Result<Vec<Found>, String> {
        let mut found = Vec::new();
        for stride in STRIDES {
            self.grid(stride, &mut found)?;
        }
        found.sort_by(|one, other| other.score.total_cmp(&one.score));
        found.truncate(MOST_CANDIDATES);
        let mut kept: Vec<Found> = Vec::new();
        for face in found {
            if kept.len() < MOST_FACES && kept.iter().all(|better| overlap(&better.place, &face.place) <= SAME_FACE) {
                kept.push(face);
            }
        }
        Ok(kept)
    }

    fn grid(&self, stride: usize, found: &mut Vec<Found>) -> Result<(), String> {
        let columns = self.columns / stride;
        let cells = columns * (self.rows / stride);
        let class = self.output("cls", stride, cells, 1)?;
        let object = self.output("obj", stride, cells, 1)?;
        let boxes = self.output("bbox", stride, cells, 4)?;
        let points = self.output("kps", stride, cells, 10)?;
        let beliefs = class.iter().zip(object);
        let numbers = boxes.chunks_exact(4).zip(points.chunks_exact(10));
        for (cell, ((class, object), (edges, points))) in beliefs.zip(numbers).enumerate() {
            let score = (class.clamp(0.0, 1.0) * object.clamp(0.0, 1.0)).sqrt();
            // A score that is no number fails the comparison too.
            if score >= LEAST_SCORE {
                found.extend(face(score, (cell % columns, cell / columns, stride), edges, points));
            }
        }
        Ok(())
    }

    fn output(&self, name: &str, stride: usize, cells: usize, numbers: usize) -> Result<&[f32], String> {
        let name = format!("{name}_{stride}");
        let tensor = self.outputs.get(&name).ok_or_else(|| format!("it has no output {name}"))?;
        if tensor.shape() != [1, cells, numbers] {
            return Err(format!("{name} has the shape {:?} instead of [1, {cells}, {numbers}]", tensor.shape()));
        }
        Ok(tensor.values())
    }
}

fn face(score: f32, (column, row, stride): (usize, usize, usize), edges: &[f32], points: &[f32]) -> Option<Found> {
    let (&[x, y, width, height], &[a, b, c, d, e, f, g, h, i, j]) = (edges, points) else { return None };
    let (stride, column, row) = (stride as f32, column as f32, row as f32);
    let (x, y) = ((column + x) * stride, (row + y) * stride);
    let (right, down) = (width.exp() * stride / 2.0, height.exp() * stride / 2.0);
    let place = [x - right, y - down, x + right, y + down];
    let landmarks = [[a, b], [c, d], [e, f], [g, h], [i, j]].map(|[x, y]| [(column + x) * stride, (row + y) * stride]);
    let numbers = place.iter().chain(landmarks.as_flattened());
    numbers.into_iter().all(|number| number.is_finite()).then_some(Found { place, landmarks, score })
}

impl Found {
    /// The same in 0…1 of a picture of that width and height.
    pub(super) fn divided(mut self, width: f32, height: f32) -> Self {
        let [left, top, right, bottom] = self.place;
        self.place = [left / width, top / height, right / width, bottom / height];
        self.landmarks = self.landmarks.map(|[x, y]| [x / width, y / height]);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer for 64 × 32 pixels in which these cells of the finest grid see a face: (cell, class, object, box).
    fn answer(cells: &[(usize, f32, f32, [f32; 4])]) -> BTreeMap<String, Tensor> {
        let mut outputs = BTreeMap::new();
        for stride in STRIDES {
            let count = (64 / stride) * (32 / stride);
            for (name, numbers) in [("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)] {
                let mut values = vec![0.0; count * numbers];
                for (cell, class, object, edges) in cells.iter().filter(|_| stride == 8) {
                    match name {
                        "cls" => values[*cell] = *class,
                        "obj" => values[*cell] = *object,
                        "bbox" => values[cell * 4..cell * 4 + 4].copy_from_slice(edges),
                        _ => (0..10).for_each(|index| values[cell * 10 + index] = index as f32 / 10.0),
                    }
                }
                outputs.insert(format!("{name}_{stride}"), Tensor::new(vec![1, count, numbers], values).unwrap());
            }
        }
        outputs
    }

    fn found(cells: &[(usize, f32, f32, [f32; 4])]) -> Vec<Found> {
        Answer { outputs: &answer(cells), columns: 64, rows: 32 }.faces().unwrap()
    }

    #[test]
    fn a_cells_numbers_become_a_place_and_landmarks() {
        // Row 1, column 3: centre (3.5 · 8, 1.5 · 8), 16 pixels wide and 8 high.
        let only = found(&[(8 + 3, 1.2, 0.64, [0.5, 0.5, std::f32::consts::LN_2, 0.0])]);
        assert_eq!(only.len(), 1);
        assert!((only[0].score - 0.8).abs() < 1e-6, "the class is cut to 1, and the root is taken");
        for (edge, expected) in only[0].place.iter().zip([20.0, 8.0, 36.0, 16.0]) {
            assert!((edge - expected).abs() < 1e-4, "{:?}", only[0].place);
        }
        let nose = only[0].landmarks[2];
        assert!((nose[0] - 3.4 * 8.0).abs() < 1e-4 && (nose[1] - 1.5 * 8.0).abs() < 1e-4, "{nose:?}");
        let place = only[0].divided(64.0, 32.0).place;
        assert!((place[2] - 36.0 / 64.0).abs() < 1e-6 && (place[3] - 0.5).abs() < 1e-6);
    }

    #[test]
    fn one_face_that_two_cells_see_is_one_and_the_better() {
        let edges = [0.5, 0.5, 1.5, 1.5];
        let both = found(&[(9, 0.9, 0.9, edges), (10, 0.95, 0.95, edges), (15, 0.7, 0.7, edges)]);
        let scores: Vec<_> = both.iter().map(|face| (face.score * 100.0).round()).collect();
        assert_eq!(scores, [95.0, 70.0]);
    }

    #[test]
    fn weak_findings_and_numbers_that_are_none_are_left_out() {
        let edges = [0.5, 0.5, 1.0, 1.0];
        assert!(found(&[(3, 0.5, 0.5, edges), (9, f32::NAN, 0.9, edges), (12, 0.9, -3.0, edges)]).is_empty());
        assert!(found(&[(3, 1.0, 1.0, [f32::NAN, 0.5, 1.0, 1.0]), (9, 1.0, 1.0, [0.5, 0.5, 1e9, 1.0])]).is_empty());
    }

    #[test]
    fn a_wall_of_faces_is_bounded() {
        let edges = [0.5, 0.5, 0.0, 0.0];
        let wall: Vec<_> = (0..32).map(|cell| (cell, 0.9, 0.9, edges)).collect();
        assert_eq!(found(&wall).len(), MOST_FACES);
    }

    #[test]
    fn an_answer_of_another_network_is_refused() {
        let mut other = answer(&[]);
        other.insert("kps_16".into(), Tensor::new(vec![1, 2, 3], vec![0.0; 6]).unwrap());
        let why = Answer { outputs: &other, columns: 64, rows: 32 }.faces().unwrap_err();
        assert!(why.contains("kps_16") && why.contains("[1, 2, 3]"), "{why}");
        other.remove("cls_8");
        assert!(Answer { outputs: &other, columns: 64, rows: 32 }.faces().unwrap_err().contains("no output cls_8"));
    }
}
