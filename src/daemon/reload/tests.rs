use std::fs;
use std::path::Path;
use std::sync::Mutex;

use super::*;

struct Edited {
    folder: tempfile::TempDir,
    reloader: Reloader,
    /// The words a minute that a part took over.
    taken: Arc<Mutex<Vec<u32>>>,
}

impl Edited {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, text).unwrap();
        let mut reloader = Reloader::new(Config::load(Some(&file)).unwrap(), Some(file));
        let taken = Arc::<Mutex<Vec<u32>>>::default();
        let of_part = Arc::clone(&taken);
        reloader.register(Part::new(
            |old, new| old.act.words_per_minute != new.act.words_per_minute,
            move |new| {
                let (words, of_part) = (new.act.words_per_minute, Arc::clone(&of_part));
                if words == 444 {
                    return Err("nobody speaks that fast".into());
                }
                Ok(Box::new(move || of_part.lock().unwrap().push(words)))
            },
        ));
        Self { folder, reloader, taken }
    }

    fn edit(&mut self, text: &str) -> Outcome {
        fs::write(self.folder.path().join("config.toml"), text).unwrap();
        self.reloader.reload()
    }

    fn running(&self) -> Arc<Config> {
        Arc::clone(&self.reloader.running().borrow())
    }
}

#[test]
fn a_live_key_holds_at_once_and_another_is_named_once() {
    let mut edited = Edited::new("");
    let text = "[act]\nwords_per_minute = 180\n[limits]\nwhisper_threads = 2\n";
    let outcome = edited.edit(text);
    let words = outcome.sentence();
    assert!(words.contains("words_per_minute: 160 → 180") && words.contains("restart: [limits]"), "{words}");
    assert_eq!(outcome.spoken().unwrap(), "I have read my new settings. Some of them need a restart.");
    assert_eq!(*edited.taken.lock().unwrap(), [180]);
    assert_eq!((edited.running().act.words_per_minute, edited.running().limits.whisper_threads), (180, 3));
    // The same again is no news, and what waits for a restart is said again only beside news.
    assert_eq!(edited.edit(text), Outcome::Unchanged);
    let outcome = edited.edit("[limits]\nwhisper_threads = 2\n");
    assert!(outcome.sentence().contains("180 → 160") && outcome.sentence().contains("whisper_threads"), "{outcome:?}");
    // Taken back before the restart: nothing waits any more.
    let outcome = edited.edit("");
    assert_eq!(outcome, Outcome::Taken(Changes::default()));
    assert_eq!(edited.edit(""), Outcome::Unchanged);
}

#[test]
fn a_bad_edit_changes_nothing_and_is_said_with_its_line() {
    let mut edited = Edited::new("");
    let before = edited.running();
    for (text, part) in [
        ("[act]\nwords_per_minute = 9000\n", "config.toml:2"),
        ("[act]\nwords_per_minute = 180\n[act\n", "config.toml:3"),
        ("[privacy]\nlog_words = true\n[act]\nwords_per_minute = 444\n", "nobody speaks that fast"),
        ("[think]\nkey_file = \"no-such-key\"\n", "no-such-key"),
    ] {
        let outcome = edited.edit(text);
        assert!(matches!(&outcome, Outcome::Refused { .. }), "{outcome:?}");
        assert!(outcome.sentence().contains(part), "{}", outcome.sentence());
        assert!(outcome.spoken().unwrap().contains("keep the old ones"));
        assert_eq!(edited.running(), before);
        assert!(edited.taken.lock().unwrap().is_empty());
    }
    fs::remove_file(edited.folder.path().join("config.toml")).unwrap();
    assert!(matches!(edited.reloader.reload(), Outcome::Refused { .. }));
    assert_eq!(edited.running(), before);
    assert!(matches!(Reloader::new(Config::default(), None).reload(), Outcome::Refused { .. }));
}

#[test]
fn the_running_paths_stay_relative_to_the_file_that_was_edited() {
    let mut edited = Edited::new("[remember]\nfolder = \"memory\"\n");
    let outcome = edited.edit("[remember]\nfolder = \"memory\"\n[privacy]\nlog_words = true\n");
    let Outcome::Taken(changes) = outcome else { panic!("{outcome:?}") };
    assert_eq!((changes.live.len(), changes.needs_restart.len()), (1, 0));
    assert_eq!(edited.running().remember.folder, edited.folder.path().join(Path::new("memory")));
}
