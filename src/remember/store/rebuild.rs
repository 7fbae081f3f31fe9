//! Carrying a shard over to other models: everything is embedded again into a shard built beside, which replaces the old
//! one only when it is complete. Texts and pictures are all in the payloads.

use std::path::Path;

use super::super::engine::EngineError;
use super::engine::{Engine, Point};
use super::payload::Stored;
use super::{MemoryError, OpenError};
use super::{Settings, beside, claim, count, create, folder, load, one_vector, picture_vector};
use crate::remember::embed::EmbedText;
use crate::remember::{Exchange, Frame};
use crate::see::EmbedImage;

/// Embeds everything again with the models in use. Picture vectors of the same picture model are kept; missing ones are
/// made where `images` is there. Blocks; `progress` is told how many are done, of how many. Answers how many there were.
///
/// # Errors
/// [`OpenError`]; the old shard is then still in place.
pub fn reembed(
    settings: &Settings,
    embedder: &dyn EmbedText,
    images: Option<&dyn EmbedImage>,
    mut progress: impl FnMut(usize, usize),
) -> Result<usize, OpenError> {
    let _lock = claim(settings, embedder.identity())?;
    let shard = settings.folder.join(folder::MEMORY);
    beside::recover(&shard)?;
    if !shard.exists() {
        create(&shard, embedder.identity(), settings.search_threads)?;
        return Ok(0);
    }
    let failed = |source| OpenError::Engine { shard: shard.clone(), source };
    let old = load(&shard, settings.search_threads)?;
    let before = count(&old).map_err(failed)?;
    let total = before.exchanges + before.frames;
    let stored_images = folder::image_identity(&shard)?;
    let place = beside::new_place(&shard)?;
    let new = Engine::create(&place, settings.search_threads).map_err(failed)?;
    let carry = Carry {
        old: &old,
        new: &new,
        embedder,
        images,
        keeps_images: images
            .is_none_or(|images| stored_images.as_ref().is_none_or(|stored| stored == images.identity())),
    };
    let mut done = 0;
    let mut step = |more: usize| {
        done += more;
        progress(done, total);
    };
    carry.all::<Exchange>(|exchange| exchange.line(), &mut step).map_err(open_error(&shard))?;
    carry.all::<Frame>(Frame::words, &mut step).map_err(open_error(&shard))?;
    new.flush().map_err(failed)?;
    let after = count(&new).map_err(failed)?;
    if after != before {
        let why = format!(
            "{} of {total} memories were carried over, so the old shard stays in place",
            after.exchanges + after.frames
        );
        return Err(failed(EngineError(why)));
    }
    folder::write_identity(&place, embedder.identity())?;
    if let Some(identity) = images.map(|images| images.identity().clone()).or(stored_images) {
        folder::write_image_identity(&place, &identity)?;
    }
    folder::write_count(&place, after)?;
    drop(new);
    drop(old);
    beside::swap(&shard, &place)?;
    Ok(total)
}

struct Carry<'a> {
    old: &'a Engine,
    new: &'a Engine,
    embedder: &'a dyn EmbedText,
    images: Option<&'a dyn EmbedImage>,
    /// Whether the old picture vectors are of the model in use.
    keeps_images: bool,
}

/// A memory whose picture may be embedded.
trait Pictured {
    fn frame(&self) -> Option<&Frame>;
}

impl Pictured for Exchange {
    fn frame(&self) -> Option<&Frame> {
        None
    }
}

impl Pictured for Frame {
    fn frame(&self) -> Option<&Frame> {
        Some(self)
    }
}

impl Carry<'_> {
    fn all<S: Stored + Pictured>(
        &self,
        words: impl Fn(&S) -> String,
        step: &mut dyn FnMut(usize),
    ) -> Result<(), MemoryError> {
        let mut from = None;
        loop {
            let page = self.old.page::<S>(from)?;
            let mut points = Vec::with_capacity(page.memories.len());
            for (memory, image) in &page.memories {
                let text = one_vector(self.embedder, &words(memory))?;
                points.push(Point::new(memory, text, self.image(memory.frame(), image.clone()))?);
            }
            self.new.upsert(points)?;
            step(page.memories.len());
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn image(&self, frame: Option<&Frame>, stored: Option<Vec<f32>>) -> Option<Vec<f32>> {
        match (stored, self.images, frame) {
            (Some(stored), _, _) if self.keeps_images => Some(stored),
            (_, Some(images), Some(frame)) => picture_vector(images, frame),
            _ => None,
        }
    }
}

fn open_error(shard: &Path) -> impl Fn(MemoryError) -> OpenError {
    let shard = shard.to_owned();
    move |error| match error {
        MemoryError::Embed(error) => OpenError::Embed(error),
        other => OpenError::Engine { shard: shard.clone(), source: EngineError(other.to_string()) },
    }
}
