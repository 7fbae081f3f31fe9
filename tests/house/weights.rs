//! Where real weights are found by tests, and the words for where they are not.

use std::path::PathBuf;

/// The folder that `models fetch` fills: `REACHY_MODELS_FOLDER`, or `models/cache` in the project.
pub fn folder() -> PathBuf {
    std::env::var_os("REACHY_MODELS_FOLDER")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models/cache"), PathBuf::from)
}

/// Whether a usable model of every kind is there; prints why the test is skipped where not.
pub fn all_are_here() -> bool {
    use reachy_remembers::config::ModelsConfig;
    use reachy_remembers::models::Library;
    let config = ModelsConfig { folder: folder(), ..ModelsConfig::default() };
    let library = Library::new(&config, std::path::Path::new("")).unwrap();
    let missing = [
        library.text().err().map(|error| error.to_string()),
        library.speech().err().map(|error| error.to_string()),
        library.voice_activity().err().map(|error| error.to_string()),
    ];
    for why in missing.iter().flatten() {
        println!("skipped: {why}");
    }
    missing.iter().all(Option::is_none)
}
