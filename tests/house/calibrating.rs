//! The gates that ship are the ones that the questions give.

use std::sync::Arc;

use reachy_remembers::config::{Config, ModelsConfig};
use reachy_remembers::daemon::parts;
use reachy_remembers::remember::calibrate::{Half, SAME, at_gate, best, exchanges, frames, sweep};

use crate::weights;

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_gates_are_what_the_questions_give() {
    if !weights::all_are_here() {
        return;
    }
    let models = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    let load = move || parts::load_text(&Config { models, ..Config::default() });
    let text = tokio::task::spawn_blocking(load).await.unwrap().unwrap();
    if !text.model.gates_are_measured {
        println!("skipped: the gates of {} were not measured", text.model.name);
        return;
    }
    let said = exchanges::Questions::shipped().unwrap();
    let searched = exchanges::search(&said, &text.embedder).await.unwrap();
    let seen = frames::Questions::parse(frames::QUESTIONS).unwrap();
    let embedder = Arc::clone(&text.embedder);
    let seen = tokio::task::spawn_blocking(move || seen.measure(embedder.as_ref())).await.unwrap().unwrap();
    let stores =
        [("exchange", text.model.exchange_gate, exchanges::measure(&searched)), ("frame", text.model.frame_gate, seen)];
    let mut others = Vec::new();
    for (store, shipped, measured) in stores {
        let best = best(&sweep(&measured)).unwrap();
        println!("{store} of {}: {best:?}, shipped {shipped}", text.model.name);
        println!("  held: {:?}", at_gate(&measured, Some(Half::Held), best.gate));
        if (best.gate - shipped).abs() >= SAME {
            others.push(format!("{store}: {best:?}, shipped {shipped}"));
        }
    }
    assert!(others.is_empty(), "{others:?}");
}
