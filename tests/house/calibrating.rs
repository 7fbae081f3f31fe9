//! The gates that ship are the ones that the questions give.

use reachy_remembers::config::{Config, ModelsConfig};
use reachy_remembers::daemon::parts;
use reachy_remembers::remember::calibrate::{self, Questions};

use crate::weights;

#[test]
fn the_shipped_exchange_gate_is_what_the_questions_give() {
    if !weights::all_are_here() {
        return;
    }
    let models = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    let text = parts::load_text(&Config { models, ..Config::default() }).unwrap();
    let scored = Questions::parse(calibrate::QUESTIONS).unwrap().score(text.embedder.as_ref()).unwrap();
    let best = calibrate::best(&calibrate::sweep(&scored)).unwrap();
    println!("{}: {best:?}, shipped {}", text.model.name, text.model.exchange_gate);
    assert!((best.gate - text.model.exchange_gate).abs() < 0.005, "{best:?}");
}
