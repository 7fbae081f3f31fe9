//! A server that does exactly what a test wrote down: raw bytes and their timing, a script a connection, over real
//! TCP. It keeps every request that it got.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One step of a connection, after its request was read.
#[derive(Clone, Debug)]
pub enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends again and again, with a pause, until the client hangs up.
    Repeat(Vec<u8>, Duration),
    /// Says nothing until the client hangs up.
    Hold,
}

/// What one connection does; it closes at the end.
pub type Script = Vec<Step>;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Method and path, as in `POST /v1/chat/completions`.
    pub line: String,
    pub headers: String,
    pub body: String,
}

impl Recorded {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the request's body is JSON")
    }
}

#[derive(Default)]
struct Seen {
    requests: Vec<Recorded>,
    hung_up: Vec<Instant>,
}

pub struct ScriptedServer {
    pub url: String,
    seen: Arc<Mutex<Seen>>,
}

impl ScriptedServer {
    /// Serves one script after the other; a connection beyond the last is closed without an answer.
    pub async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            let mut scripts = scripts.into_iter();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, scripts.next().unwrap_or_default(), Arc::clone(&kept)));
            }
        });
        Self { url, seen }
    }

    /// Answers every request as `answer` decides, and keeps none of them.
    pub async fn answering(answer: impl FnMut(&Recorded) -> Script + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let answer = Arc::new(Mutex::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = Arc::clone(&answer);
                tokio::spawn(async move {
                    let Some(request) = read_request(&mut stream).await else { return };
                    let script = (answer.lock().expect("not poisoned"))(&request);
                    play(stream, script).await;
                });
            }
        });
        Self { url, seen: Arc::default() }
    }

    pub fn requests(&self) -> Vec<Recorded> {
        self.seen.lock().expect("not poisoned").requests.clone()
    }

    /// When clients closed connections that were still being served.
    pub async fn hung_up_within(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if !self.seen.lock().expect("not poisoned").hung_up.is_empty() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }
}

async fn serve(mut stream: TcpStream, script: Script, seen: Arc<Mutex<Seen>>) {
    let Some(request) = read_request(&mut stream).await else { return };
    seen.lock().expect("not poisoned").requests.push(request);
    if !play(stream, script).await {
        seen.lock().expect("not poisoned").hung_up.push(Instant::now());
    }
}

/// Answers false when the client hung up before the end.
async fn play(mut stream: TcpStream, script: Script) -> bool {
    for step in script {
        let alive = match step {
            Step::Send(bytes) => stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok(),
            Step::Wait(time) => {
                tokio::time::sleep(time).await;
                true
            }
            Step::Repeat(bytes, pause) => {
                while stream.write_all(&bytes).await.is_ok() {
                    tokio::time::sleep(pause).await;
                }
                false
            }
            Step::Hold => {
                let mut byte = [0; 1];
                while matches!(stream.read(&mut byte).await, Ok(1..)) {}
                false
            }
        };
        if !alive {
            return false;
        }
    }
    let _ = stream.shutdown().await;
    true
}

async fn read_request(stream: &mut TcpStream) -> Option<Recorded> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(|n| n.trim().to_owned()))
                .and_then(|length| length.parse::<usize>().ok())
                .unwrap_or(0);
            if body.len() >= length {
                let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
                let line = line.trim_end_matches(" HTTP/1.1").to_owned();
                return Some(Recorded { line, headers: headers.to_lowercase(), body: body.to_owned() });
            }
        }
        match stream.read(&mut part).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&part[..count]),
            _ => return None,
        }
    }
}

/// The head of a stream that ends when the connection does.
pub const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
/// The head of a stream whose end must be said; closing without saying so is a broken transfer.
pub const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

pub fn send(text: impl Into<String>) -> Step {
    Step::Send(text.into().into_bytes())
}

pub fn wait(millis: u64) -> Step {
    Step::Wait(Duration::from_millis(millis))
}

/// A whole response that is no stream.
pub fn response(status: &str, kind: &str, body: &str) -> Script {
    vec![send(format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ))]
}

/// One event.
pub fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// A stream of these events, and its end.
pub fn stream(events: &[Value]) -> Script {
    let body: String = events.iter().map(|data| event(&data.to_string())).collect();
    vec![send(format!("{STREAM}{body}{}", event("[DONE]")))]
}

/// One chunk of a chunked response.
pub fn chunk(text: &str) -> Step {
    send(format!("{:x}\r\n{text}\r\n", text.len()))
}
