//! Facts pulled from a server that speaks Qdrant's documented REST interface for shard snapshots: a real socket, one
//! scripted answer a request.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reachy_remembers::config::KnowledgeConfig;
use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::knowledge::pull::{Fetched, Key, PullError, PullSettings, Pulled, pull};
use reachy_remembers::remember::knowledge::{Knowledge, Started};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::knowledge::{Renamed, TEA, settings, snapshot, start, tea};

const KEY: &str = "not-for-any-log-4127";
const MANIFEST: &str = "GET /collections/facts/shards/0/snapshot/partial/manifest";
const SNAPSHOTS: &str = "/collections/facts/shards/0/snapshots";
const NAME: &str = "facts-0-2026-11-30.snapshot";

#[derive(Clone, Default)]
struct Answer {
    status: u16,
    body: Vec<u8>,
    headers: Vec<(&'static str, String)>,
    /// The length that is claimed instead of the true one.
    claims: Option<usize>,
    delay: Duration,
}

impl Answer {
    fn json(status: u16, result: Value) -> Self {
        Self {
            status,
            body: json!({ "result": result, "status": "ok", "time": 0.001 }).to_string().into(),
            ..Self::default()
        }
    }

    fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    fn file(body: &[u8]) -> Self {
        Self { status: 200, body: body.to_vec(), ..Self::default() }
    }
}

#[derive(Clone, Debug)]
struct Asked {
    /// "GET /path"
    what: String,
    headers: HashMap<String, String>,
}

#[derive(Default)]
struct Script {
    answers: HashMap<String, Answer>,
    asked: Vec<Asked>,
}

struct Qdrant {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    ended: Arc<AtomicBool>,
}

impl Qdrant {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (script, ended) = (Arc::new(Mutex::new(Script::default())), Arc::new(AtomicBool::new(false)));
        let (its_script, its_end) = (Arc::clone(&script), Arc::clone(&ended));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if its_end.load(Ordering::Acquire) {
                    return;
                }
                let script = Arc::clone(&its_script);
                // A client that goes away in the middle is part of the tests.
                std::thread::spawn(move || drop(serve(connection, &script)));
            }
        });
        Self { address, script, ended }
    }

    /// One that holds `bytes` as a snapshot which it makes when it is asked to.
    fn with(bytes: &[u8]) -> Self {
        let server = Self::start();
        server.hold(bytes, "v1");
        server
    }

    fn hold(&self, bytes: &[u8], version: &str) {
        let description = json!({
            "name": NAME, "size": bytes.len(), "creation_time": "2026-11-30T20:00:00", "checksum": sha256(bytes),
        });
        self.answer(MANIFEST, Answer::json(200, json!({ "segment": { "segment_version": version } })));
        self.answer(&format!("POST {SNAPSHOTS}?wait=true"), Answer::json(200, description.clone()));
        self.answer(&format!("GET {SNAPSHOTS}"), Answer::json(200, json!([description])));
        let file = Answer { headers: vec![("ETag", format!("\"{version}\""))], ..Answer::file(bytes) };
        self.answer(&format!("GET {SNAPSHOTS}/{NAME}"), file);
        self.answer(&format!("DELETE {SNAPSHOTS}/{NAME}?wait=true"), Answer::json(200, json!(true)));
    }

    fn answer(&self, what: &str, answer: Answer) {
        self.script.lock().unwrap().answers.insert(what.to_owned(), answer);
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.script.lock().unwrap().asked)
    }

    fn settings(&self) -> PullSettings {
        PullSettings {
            source: format!("http://{}/", self.address),
            collection: "facts".into(),
            shard: 0,
            key: Some(Key::new(KEY)),
            every: None,
            silence: Duration::from_millis(500),
            whole: Duration::from_secs(5),
        }
    }
}

impl Drop for Qdrant {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        drop(TcpStream::connect(self.address));
    }
}

fn serve(mut connection: TcpStream, script: &Mutex<Script>) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let what = first.rsplit_once(' ').map_or("", |(what, _)| what).to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let answer = {
        let mut script = script.lock().unwrap();
        script.asked.push(Asked { what: what.clone(), headers: headers.clone() });
        script.answers.get(&what).cloned().unwrap_or_else(|| Answer::status(404))
    };
    std::thread::sleep(answer.delay);
    let etag = answer.headers.iter().find(|(name, _)| *name == "ETag").map(|(_, etag)| etag);
    let known = etag.is_some() && headers.get("if-none-match") == etag;
    let (status, body) = if known { (304, Vec::new()) } else { (answer.status, answer.body) };
    let length = answer.claims.unwrap_or(body.len());
    let mut head = format!("HTTP/1.1 {status} Answer\r\nConnection: close\r\nContent-Length: {length}\r\n");
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    connection.write_all(format!("{head}\r\n").as_bytes())?;
    connection.write_all(&body)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tea_snapshot(text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::read(snapshot(folder.path(), "made", text, &StandIn::new())).unwrap()
}

async fn fetched(folder: &Path, server: &Qdrant) -> Fetched {
    match pull(folder, &server.settings()).await.unwrap() {
        Pulled::Fetched(fetched) => fetched,
        Pulled::Unchanged => panic!("unchanged"),
    }
}

async fn failed(folder: &Path, server: &Qdrant) -> PullError {
    let error = pull(folder, &server.settings()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "nothing is left of {error}");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_made_fetched_compared_and_deleted_again_and_nothing_is_fetched_twice() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tea_snapshot(TEA);
    let server = Qdrant::with(&bytes);
    let first = fetched(folder.path(), &server).await;
    assert_eq!(fs::read(first.path()).unwrap(), bytes);
    first.keep(folder.path()).unwrap();
    let asked = server.asked();
    let what: Vec<&str> = asked.iter().map(|asked| asked.what.as_str()).collect();
    let expected = [
        MANIFEST.to_owned(),
        format!("POST {SNAPSHOTS}?wait=true"),
        format!("GET {SNAPSHOTS}/{NAME}"),
        format!("DELETE {SNAPSHOTS}/{NAME}?wait=true"),
    ];
    assert_eq!(what, expected);
    assert!(asked.iter().all(|asked| asked.headers.get("api-key").is_some_and(|key| key == KEY)));
    // The manifest is the same: that is all that is asked.
    assert!(matches!(pull(folder.path(), &server.settings()).await.unwrap(), Pulled::Unchanged));
    assert_eq!(server.asked().len(), 1);
    // Another manifest and the same content: the checksum says so, and nothing is downloaded.
    server.hold(&bytes, "v2");
    assert!(matches!(pull(folder.path(), &server.settings()).await.unwrap(), Pulled::Unchanged));
    assert!(!server.asked().iter().any(|asked| asked.what == format!("GET {SNAPSHOTS}/{NAME}")));
    // New content comes.
    let other = tea_snapshot(&TEA.replace("left", "right"));
    server.hold(&other, "v3");
    assert_eq!(fs::read(fetched(folder.path(), &server).await.path()).unwrap(), other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_only_read_takes_the_newest_that_is_there_and_304_is_nothing_new() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tea_snapshot(TEA);
    let server = Qdrant::with(&bytes);
    server.answer(&format!("POST {SNAPSHOTS}?wait=true"), Answer::status(403));
    // A server that tells neither manifest nor checksum, as older ones.
    server.answer(MANIFEST, Answer::status(404));
    let old = json!({ "name": "old.snapshot", "size": 3, "creation_time": "2026-01-01T00:00:00" });
    let new = json!({ "name": NAME, "size": bytes.len(), "creation_time": "2026-11-30T20:00:00", "checksum": null });
    server.answer(&format!("GET {SNAPSHOTS}"), Answer::json(200, json!([old, new])));
    fetched(folder.path(), &server).await.keep(folder.path()).unwrap();
    assert!(!server.asked().iter().any(|asked| asked.what.starts_with("DELETE")), "it was not made for us");
    assert!(matches!(pull(folder.path(), &server.settings()).await.unwrap(), Pulled::Unchanged));
    let asked = server.asked();
    assert_eq!(asked.last().unwrap().headers.get("if-none-match").map(String::as_str), Some("\"v1\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_of_a_server_says_what_to_do_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tea_snapshot(TEA);
    let file = format!("GET {SNAPSHOTS}/{NAME}");
    let mut flipped = bytes.clone();
    flipped[700] ^= 1;
    let longer = [bytes.clone(), vec![0; 4_096]].concat();
    let slow = Answer { delay: Duration::from_secs(2), ..Answer::file(&bytes) };
    let huge = json!({ "name": NAME, "size": 9_000_000_000_u64, "checksum": null });
    let elsewhere = json!({ "name": "../../collections/other", "size": 5, "checksum": null });
    let make = format!("POST {SNAPSHOTS}?wait=true");
    let redirect = Answer { headers: vec![("Location", "http://127.0.0.1:1/".into())], ..Answer::status(302) };
    let cases: Vec<(&str, Answer, &str)> = vec![
        (MANIFEST, Answer::status(401), "api_key_file"),
        (&make, Answer::status(404), "no collection `facts`"),
        (&make, Answer::status(500), "answered 500"),
        (&make, Answer::file(b"<html>a proxy</html>"), "something else than is documented"),
        (&make, Answer::json(200, huge), "may have"),
        (&make, Answer::json(200, elsewhere), "no file's name"),
        (&file, Answer::status(404), "no snapshot"),
        (&file, Answer { claims: Some(bytes.len()), ..Answer::file(&bytes[..bytes.len() / 2]) }, "came broken"),
        (&file, Answer::file(&bytes[..bytes.len() / 2]), "ended after"),
        (&file, Answer::file(&flipped), "checksum"),
        (&file, Answer::file(&longer), "more comes than"),
        (&file, slow, "does not answer"),
        (&file, redirect, "not followed"),
    ];
    for (what, answer, words) in cases {
        let server = Qdrant::with(&bytes);
        server.answer(what, answer);
        let error = failed(folder.path(), &server).await;
        assert!(error.to_string().contains(words), "{what}: {error}");
    }
    let nobody = Qdrant::with(&bytes);
    let address = nobody.settings();
    drop(nobody);
    std::thread::sleep(Duration::from_millis(100));
    let error = pull(folder.path(), &address).await.unwrap_err();
    assert!(matches!(error, PullError::Away { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drips_for_ever_is_left_after_the_whole_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = Qdrant::with(&tea_snapshot(TEA));
    server.answer(MANIFEST, Answer { delay: Duration::from_secs(3), ..Answer::json(200, json!({})) });
    let settings =
        PullSettings { whole: Duration::from_millis(300), silence: Duration::from_secs(9), ..server.settings() };
    let error = pull(folder.path(), &settings).await.unwrap_err();
    assert!(error.to_string().contains("300ms"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pulled_facts_are_taken_while_questions_go_on_and_are_there_at_the_next_start_without_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let local = snapshot(folder.path(), "local", TEA, &StandIn::new());
    let server = Qdrant::with(&tea_snapshot(&TEA.replace("left cupboard", "cloud")));
    let with_server = {
        let mut with = settings(&shards, &local);
        with.pull = Some(server.settings());
        with
    };
    let (Started { knowledge, .. }, _) = start(with_server.clone()).await;
    until(&knowledge, "Tea is in the cloud.").await;
    drop(knowledge);
    // Nobody answers any more, and the facts of the cloud still go before the local file.
    drop(server);
    let (Started { knowledge, notes }, _) = start(with_server).await;
    assert_eq!(tea(&knowledge).await, "Tea is in the cloud.", "{notes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_vectors_of_another_model_changes_nothing_and_is_not_asked_for_them_again() {
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("shards");
    let local = snapshot(folder.path(), "local", TEA, &StandIn::new());
    let foreign = fs::read(snapshot(folder.path(), "foreign", TEA, &Renamed::new())).unwrap();
    let server = Qdrant::with(&foreign);
    let mut with = settings(&shards, &local);
    with.pull = Some(server.settings());
    let (Started { knowledge, .. }, health) = start(with).await;
    let began = std::time::Instant::now();
    let told = loop {
        let part = health.parts().into_iter().find(|part| part.part == "knowledge").unwrap();
        if part.what.contains("server's snapshot") || began.elapsed() > Duration::from_secs(20) {
            break part.what;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(told.contains("another-model") && told.contains("last good"), "{told}");
    assert_eq!(tea(&knowledge).await, "Tea is in the left cupboard.");
    server.asked();
    assert!(matches!(pull(&shards, &server.settings()).await.unwrap(), Pulled::Unchanged));
}

async fn until(knowledge: &Knowledge, words: &str) {
    let began = std::time::Instant::now();
    while tea(knowledge).await != words {
        assert!(began.elapsed() < Duration::from_secs(20), "never told: {words}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn the_key_comes_from_its_file_and_is_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let config =
        KnowledgeConfig { source: "https://q:6333".into(), api_key_file: file.clone(), ..KnowledgeConfig::default() };
    let missing = PullSettings::from_config(&config).unwrap_err().to_string();
    assert!(missing.contains("key") && missing.contains("cannot be read"), "{missing}");
    fs::write(&file, " \n").unwrap();
    assert!(PullSettings::from_config(&config).unwrap_err().to_string().contains("empty"));
    fs::write(&file, format!("{KEY}\n")).unwrap();
    let settings = PullSettings::from_config(&config).unwrap().unwrap();
    assert!(!format!("{settings:?}").contains(KEY));
    assert!(PullSettings::from_config(&KnowledgeConfig::default()).unwrap().is_none());
}
