//! Whether a face is good enough to greet somebody by it, to ask for a name, or to enrol it.

/// How well a face can be recognised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Width of the face in pixels of the picture.
    pub width_px: f32,
    /// How sharp it is.
    pub sharpness: f32,
    /// 1 for a face that looks at the camera, 0 for a profile.
    pub frontality: f32,
    /// Whether the picture's edge cuts it.
    pub cut_by_edge: bool,
}

impl Quality {
    /// Whether it is good enough to greet, ask or enrol.
    #[must_use]
    pub fn usable(&self) -> bool {
        !self.cut_by_edge && self.width_px >= 40.0
    }
}
