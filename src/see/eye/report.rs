//! How seeing goes: what health shows.

use jiff::Timestamp;
use serde::Serialize;

use crate::see::faces::FaceReport;
use crate::see::picture::PictureFault;

/// Counts since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EyeReport {
    /// Which model finds objects, and by which engine; `None` where only annotations can be looked at.
    pub detector: Option<String>,
    /// How looking for faces goes; without anything that finds them, its `finder` is `None`.
    pub faces: FaceReport,
    /// Pictures given, with the unusable ones.
    pub pictures: u64,
    pub faults: Faults,
    /// What the last unusable picture suffered from, in words.
    pub last_fault: Option<String>,
    /// Runs of the detector, and how many of them failed.
    pub detections: u64,
    pub failures: u64,
    /// Pictures in which a script's annotations stood in for the detector.
    pub stand_ins: u64,
    /// Times that what is visible became another, and the last of them.
    pub changes: u64,
    pub changed_at: Option<Timestamp>,
}

/// Pictures of no use, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Faults {
    pub empty: u64,
    /// Of a size or in a file that is too small or too large.
    pub size: u64,
    pub corrupt: u64,
    pub torn: u64,
    pub dark: u64,
    pub frozen: u64,
}

impl Faults {
    /// All of them.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.empty + self.size + self.corrupt + self.torn + self.dark + self.frozen
    }
}

impl EyeReport {
    pub(super) fn count(&mut self, fault: &PictureFault) {
        let faults = &mut self.faults;
        *match fault {
            PictureFault::Empty => &mut faults.empty,
            PictureFault::Size { .. } | PictureFault::Large { .. } => &mut faults.size,
            PictureFault::Corrupt { .. } => &mut faults.corrupt,
            PictureFault::Torn => &mut faults.torn,
            PictureFault::Dark { .. } => &mut faults.dark,
            PictureFault::Frozen { .. } => &mut faults.frozen,
        } += 1;
        self.last_fault = Some(fault.to_string());
    }
}
