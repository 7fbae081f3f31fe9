//! The change gate: whether a picture is worth a detector's time, for about a millisecond.
//!
//! [`super::eye::Eye`] owns one [`Gate`]. It keeps a thumbnail of the picture that the detector saw last and cannot
//! fail. A picture is reduced to 80×60 cells of its green channel by area average; the median difference to the kept
//! thumbnail is the light that changed everywhere and is taken off; the cells that still differ by more than
//! [`CELL_STEP`] have changed. Sensor noise and 8 % of brightness changed no cell, a 4-pixel shift of the head 12.5 %
//! of them (measured): so the gate holds while the head moves and asks for one detection when it stands still again.

use jiff::{SignedDuration, Timestamp};

use super::Rgb;
use crate::robot::Direction;

/// Cells in a row and in a column.
pub const COLUMNS: usize = 80;
pub const ROWS: usize = 60;
/// A cell has changed when it differs by more than this, of 255, after the median is taken off. Measured: noise and a
/// drift of 8 % stay below it.
pub const CELL_STEP: i16 = 10;
/// Changed cells that are worth a detection. A 40×60-pixel object covers 12.5 cells of a 1280×720 picture and 37 of a
/// 640×480 one; noise changed none.
pub const CHANGED_CELLS: usize = 12;
/// From this share of changed cells on, it is another view: somebody carried the robot, or the scene was switched. The
/// 4-pixel shift changed 12.5 %. Not measured.
pub const CUT_SHARE: f32 = 0.5;
/// How long the head must stand still before its pictures count. Not measured.
pub const SETTLE: SignedDuration = SignedDuration::from_millis(300);

/// What the gate thinks of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The head moves, or stopped only just now: this picture says nothing.
    Moving,
    /// Nothing changed since the detector last looked.
    Still,
    /// Worth a detection.
    Look(Why),
}

/// Why a picture is worth a detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It is the first one.
    First,
    /// The head stands still again, or looks elsewhere.
    Settled,
    /// This share of the cells changed.
    Changed { share: f32 },
    /// Nothing changed for so long that one is due.
    Quiet,
}

/// The gate's memory of the last detection.
#[derive(Debug)]
pub struct Gate {
    /// A detection is due after this long without one.
    quiet: SignedDuration,
    /// What the detector saw last, and what was judged last.
    seen: Option<Thumbnail>,
    latest: Thumbnail,
    moved_at: Option<Timestamp>,
    /// The head has moved since the detector last looked.
    settling: bool,
}

#[derive(Clone, Debug)]
struct Thumbnail {
    cells: Vec<u8>,
    looked: Direction,
    at: Timestamp,
}

impl Gate {
    /// A gate that asks for a detection at least every `quiet`.
    #[must_use]
    pub fn new(quiet: SignedDuration) -> Self {
        let latest = Thumbnail { cells: Vec::new(), looked: Direction::Ahead, at: Timestamp::UNIX_EPOCH };
        Self { quiet, seen: None, latest, moved_at: None, settling: false }
    }

    /// Judges a picture, taken at `now`, from a head that looks `looked` and does or does not move.
    pub fn judge(&mut self, picture: &Rgb, looked: Direction, head_moving: bool, now: Timestamp) -> Verdict {
        if head_moving {
            self.moved_at = Some(now);
            self.settling = true;
            return Verdict::Moving;
        }
        // A clock that was set back must not hold the gate.
        if self.moved_at.is_some_and(|moved| moved <= now && now.duration_since(moved) < SETTLE) {
            return Verdict::Moving;
        }
        self.latest = Thumbnail { cells: thumbnail(picture), looked, at: now };
        let Some(seen) = &self.seen else { return Verdict::Look(Why::First) };
        if self.settling || seen.looked != looked {
            return Verdict::Look(Why::Settled);
        }
        let changed = changed_cells(&seen.cells, &self.latest.cells);
        if changed >= CHANGED_CELLS {
            return Verdict::Look(Why::Changed { share: changed as f32 / (COLUMNS * ROWS) as f32 });
        }
        let since = now.duration_since(seen.at);
        if since >= self.quiet || since < SignedDuration::ZERO { Verdict::Look(Why::Quiet) } else { Verdict::Still }
    }

    /// The detector has looked at the picture that was judged last: from now on others are compared with it.
    pub fn detected(&mut self) {
        self.seen = Some(self.latest.clone());
        self.settling = false;
    }
}

/// The mean green of each cell, row by row; empty for a picture without pixels. A picture smaller than the thumbnail
/// gives the same pixel to several cells.
fn thumbnail(picture: &Rgb) -> Vec<u8> {
    if !picture.is_whole() {
        return Vec::new();
    }
    let (width, height) = (picture.width as usize, picture.height as usize);
    let span = |cell: usize, cells: usize, side: usize| {
        let start = cell * side / cells;
        start..((cell + 1) * side / cells).max(start + 1)
    };
    let mut cells = Vec::with_capacity(COLUMNS * ROWS);
    for row in 0..ROWS {
        let lines = span(row, ROWS, height);
        for column in 0..COLUMNS {
            let across = span(column, COLUMNS, width);
            let area = lines.len() * across.len();
            let mut sum = 0_usize;
            for line in lines.clone() {
                let start = line * width;
                let pixels = &picture.pixels[(start + across.start) * 3..(start + across.end) * 3];
                sum += pixels.chunks_exact(3).map(|pixel| usize::from(pixel[1])).sum::<usize>();
            }
            cells.push(u8::try_from((sum + area / 2) / area).unwrap_or(u8::MAX));
        }
    }
    cells
}

/// How many cells differ by more than [`CELL_STEP`] once the median difference is taken off; all of them where one
/// picture had no pixels.
fn changed_cells(before: &[u8], after: &[u8]) -> usize {
    if before.len() != after.len() || before.is_empty() {
        return COLUMNS * ROWS;
    }
    let differences: Vec<i16> =
        before.iter().zip(after).map(|(before, after)| i16::from(*after) - i16::from(*before)).collect();
    let mut sorted = differences.clone();
    let middle = sorted.len() / 2;
    let (_, median, _) = sorted.select_nth_unstable(middle);
    let median = *median;
    differences.iter().filter(|difference| (**difference - median).abs() > CELL_STEP).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: SignedDuration = SignedDuration::from_secs(5);

    /// A room of soft shapes under `light`, with noise from `seed` and, where said, a cup at (x, y).
    fn room(light: f32, seed: u64, cup: Option<(u32, u32)>) -> Rgb {
        let (width, height) = (1280_u32, 720_u32);
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        let mut pixels = Vec::with_capacity((width * height * 3) as usize);
        for y in 0..height {
            for x in 0..width {
                let mut value = 110.0 + 60.0 * (x as f32 / 90.0).sin() * (y as f32 / 70.0).cos();
                if cup.is_some_and(|(left, top)| (left..left + 40).contains(&x) && (top..top + 60).contains(&y)) {
                    value = 230.0;
                }
                for _ in 0..3 {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let noise = (state % 17) as f32 - 8.0;
                    pixels.push((value * light + noise).clamp(0.0, 255.0) as u8);
                }
            }
        }
        Rgb { width, height, pixels }
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
    }

    fn gate_that_saw(picture: &Rgb) -> Gate {
        let mut gate = Gate::new(QUIET);
        assert_eq!(gate.judge(picture, Direction::Ahead, false, at(0)), Verdict::Look(Why::First));
        gate.detected();
        gate
    }

    #[test]
    fn noise_and_light_change_no_cell_and_a_small_object_does() {
        let before = thumbnail(&room(1.0, 1, None));
        assert_eq!(changed_cells(&before, &thumbnail(&room(1.0, 2, None))), 0, "noise");
        assert_eq!(changed_cells(&before, &thumbnail(&room(1.08, 3, None))), 0, "8 % brighter");
        assert_eq!(changed_cells(&before, &thumbnail(&room(0.92, 4, None))), 0, "8 % darker");
        for place in [(400, 300), (407, 305), (1230, 650)] {
            let changed = changed_cells(&before, &thumbnail(&room(1.0, 5, Some(place))));
            assert!((CHANGED_CELLS..=36).contains(&changed), "{changed} cells for a cup at {place:?}");
        }
    }

    #[test]
    fn a_still_room_is_looked_at_once_in_the_quiet_interval() {
        let mut gate = gate_that_saw(&room(1.0, 1, None));
        let verdicts: Vec<_> = (1..=12)
            .map(|half| {
                let verdict = gate.judge(&room(1.0, half, None), Direction::Ahead, false, at(half as i64 * 500));
                if matches!(verdict, Verdict::Look(_)) {
                    gate.detected();
                }
                verdict
            })
            .collect();
        let looks: Vec<_> = verdicts.iter().enumerate().filter(|(_, verdict)| **verdict != Verdict::Still).collect();
        assert_eq!(looks, [(9, &Verdict::Look(Why::Quiet))]);
    }

    #[test]
    fn a_change_is_asked_for_until_the_detector_has_looked() {
        let mut gate = gate_that_saw(&room(1.0, 1, None));
        let cup = room(1.0, 2, Some((400, 300)));
        for millis in [500, 700] {
            let verdict = gate.judge(&cup, Direction::Ahead, false, at(millis));
            assert!(matches!(verdict, Verdict::Look(Why::Changed { .. })), "{verdict:?}");
        }
        gate.detected();
        assert_eq!(gate.judge(&cup, Direction::Ahead, false, at(900)), Verdict::Still);
    }

    #[test]
    fn the_gate_holds_while_the_head_moves_and_looks_once_when_it_stands_still() {
        let picture = room(1.0, 1, None);
        let mut gate = gate_that_saw(&picture);
        let cup = room(1.0, 2, Some((400, 300)));
        for millis in [100, 300, 500] {
            assert_eq!(gate.judge(&cup, Direction::Ahead, true, at(millis)), Verdict::Moving);
        }
        assert_eq!(gate.judge(&picture, Direction::Ahead, false, at(700)), Verdict::Moving, "it still sways");
        assert_eq!(gate.judge(&picture, Direction::Ahead, false, at(900)), Verdict::Look(Why::Settled));
        gate.detected();
        assert_eq!(gate.judge(&picture, Direction::Ahead, false, at(1100)), Verdict::Still);
        assert_eq!(gate.judge(&picture, Direction::Left, false, at(1300)), Verdict::Look(Why::Settled), "elsewhere");
    }

    #[test]
    fn a_clock_that_is_set_back_neither_holds_nor_blinds_the_gate() {
        let picture = room(1.0, 1, None);
        let mut gate = gate_that_saw(&picture);
        gate.judge(&picture, Direction::Ahead, true, at(1000));
        assert_eq!(gate.judge(&picture, Direction::Ahead, false, at(-3_600_000)), Verdict::Look(Why::Settled));
        gate.detected();
        assert_eq!(gate.judge(&picture, Direction::Ahead, false, at(-7_200_000)), Verdict::Look(Why::Quiet));
    }

    #[test]
    fn pictures_of_any_size_are_judged() {
        let mut gate = Gate::new(QUIET);
        for (width, height) in [(1, 1), (79, 59), (81, 61), (640, 480), (0, 0)] {
            let picture = Rgb { width, height, pixels: vec![7; (width * height * 3) as usize] };
            gate.judge(&picture, Direction::Ahead, false, at(0));
            gate.detected();
        }
    }
}
