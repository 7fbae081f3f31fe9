//! A small HTTP/1.1 server on a real socket, for tests of what fetches files.
//!
//! It serves scripted files, one answer a connection, and writes down every request. A file may break off, ignore
//! `Range`, lie about its length, redirect, or answer with any status. It ends when it is dropped.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A path's answer.
#[derive(Clone, Debug, Default)]
pub struct Served {
    pub body: Vec<u8>,
    pub etag: Option<String>,
    /// Body bytes after which each answer breaks off, in their order; afterwards answers are whole.
    pub breaks: Vec<usize>,
    /// `Range` is not understood: the file always comes whole.
    pub ignores_range: bool,
    /// The length that is claimed instead of the true one.
    pub claims: Option<usize>,
    /// Neither a length nor chunks: the body ends with the connection.
    pub without_length: bool,
    /// Instead of 200.
    pub status: Option<u16>,
    /// Where to look instead.
    pub redirect: Option<String>,
    /// Wait before the answer.
    pub delay: Duration,
}

impl Served {
    pub fn file(body: &[u8]) -> Self {
        Self { body: body.to_vec(), ..Self::default() }
    }
}

/// What somebody asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// Names in small letters.
    pub headers: HashMap<String, String>,
}

#[derive(Default)]
struct Script {
    served: HashMap<String, Served>,
    asked: Vec<Asked>,
}

pub struct LocalServer {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    ended: Arc<AtomicBool>,
}

impl LocalServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (script, ended) = (Arc::new(Mutex::new(Script::default())), Arc::new(AtomicBool::new(false)));
        {
            let (script, ended) = (script.clone(), ended.clone());
            std::thread::spawn(move || {
                for connection in listener.incoming().flatten() {
                    if ended.load(Ordering::Acquire) {
                        return;
                    }
                    let script = script.clone();
                    // A client that goes away in the middle is part of the tests.
                    std::thread::spawn(move || drop(answer(connection, &script)));
                }
            });
        }
        Self { address, script, ended }
    }

    /// Without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn serve(&self, path: &str, served: Served) {
        lock(&self.script).served.insert(path.to_owned(), served);
    }

    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.script).asked.clone()
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the listener, which then ends.
        drop(TcpStream::connect(self.address));
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().expect("no answer panics")
}

fn answer(mut connection: TcpStream, script: &Mutex<Script>) -> std::io::Result<()> {
    let asked = read_request(&mut connection)?;
    let (served, break_at) = {
        let mut script = lock(script);
        script.asked.push(asked.clone());
        let served = script.served.get_mut(&asked.path);
        let break_at = served.and_then(|served| (!served.breaks.is_empty()).then(|| served.breaks.remove(0)));
        (script.served.get(&asked.path).cloned(), break_at)
    };
    let Some(served) = served else {
        return connection.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    std::thread::sleep(served.delay);
    if let Some(to) = &served.redirect {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return connection.write_all(head.as_bytes());
    }
    let (status, start) = status_and_start(&served, &asked);
    let body = &served.body[start..];
    let mut head = format!("HTTP/1.1 {status} Answer\r\nConnection: close\r\n");
    if !served.without_length {
        head += &format!("Content-Length: {}\r\n", served.claims.unwrap_or(body.len()));
    }
    if status == 206 {
        head += &format!("Content-Range: bytes {start}-{}/{}\r\n", served.body.len() - 1, served.body.len());
    }
    if let Some(etag) = &served.etag {
        head += &format!("ETag: {etag}\r\n");
    }
    connection.write_all(format!("{head}\r\n").as_bytes())?;
    connection.write_all(&body[..break_at.unwrap_or(body.len()).min(body.len())])
}

fn status_and_start(served: &Served, asked: &Asked) -> (u16, usize) {
    if let Some(status) = served.status {
        return (status, 0);
    }
    let same_version = asked.headers.get("if-range").is_none_or(|version| Some(version) == served.etag.as_ref());
    let range = asked.headers.get("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
    match range.and_then(|start| start.parse::<usize>().ok()) {
        Some(start) if same_version && !served.ignores_range && start < served.body.len() => (206, start),
        Some(start) if same_version && !served.ignores_range && start >= served.body.len() => (416, served.body.len()),
        _ => (200, 0),
    }
}

fn read_request(connection: &mut TcpStream) -> std::io::Result<Asked> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut lines = BufReader::new(connection).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        match line.split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    Ok(Asked { path, headers })
}
