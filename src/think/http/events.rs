//! A response's bytes as server-sent events, whatever the server does to them.
//!
//! Before the events are cut, the bytes are made fit for it: a byte-order mark is dropped, characters split over
//! packets are put together, broken ones replaced, the total is capped, and a stream that ends inside an event still
//! gives that event.

use std::pin::Pin;

use eventsource_stream::{Event, Eventsource};
use futures_util::stream::{self, Stream, StreamExt};
use reqwest::Response;

/// The most bytes of one answer's stream, pings and all. An answer of 300 tokens takes about 100 KB. Not measured.
pub(super) const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The most bytes of a body that is no stream (an error, a list of models).
const MOST_BODY: usize = 64 * 1024;

/// Why a stream broke off, as a short sentence.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(pub String);

pub(super) type Events = Pin<Box<dyn Stream<Item = Result<Event, Broken>> + Send>>;

/// The events of `response`.
pub(super) fn events(response: Response) -> Events {
    let bytes = response.bytes_stream().map(|bytes| bytes.map_err(|why| Broken(reason(&why))));
    Box::pin(events_of(bytes))
}

fn events_of<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = Result<B, Broken>>,
) -> impl Stream<Item = Result<Event, Broken>> {
    let end = stream::iter([None]);
    let mut text = Text::default();
    bytes
        .map(Some)
        .chain(end)
        .map(move |part| match part {
            Some(Ok(bytes)) => text.take(bytes.as_ref()),
            Some(Err(broken)) => Err(broken),
            None => Ok(text.rest()),
        })
        .eventsource()
        .map(|event| {
            event.map_err(|why| match why {
                eventsource_stream::EventStreamError::Transport(broken) => broken,
                other => Broken(other.to_string()),
            })
        })
}

/// Bytes to text.
#[derive(Default)]
struct Text {
    /// At most three bytes of a character that is not whole yet.
    open: Vec<u8>,
    total: usize,
}

impl Text {
    fn take(&mut self, bytes: &[u8]) -> Result<String, Broken> {
        let first = self.total == 0;
        self.total += bytes.len();
        if self.total > MOST_BYTES {
            return Err(Broken(format!("more than {MOST_BYTES} bytes came")));
        }
        self.open.extend_from_slice(bytes);
        let whole = whole_characters(&self.open);
        let rest = self.open.split_off(whole);
        let text = String::from_utf8_lossy(&std::mem::replace(&mut self.open, rest)).into_owned();
        Ok(if first { text.trim_start_matches('\u{feff}').to_owned() } else { text })
    }

    /// What is left, and the empty line that ends the last event.
    fn rest(&mut self) -> String {
        format!("{}\n\n", String::from_utf8_lossy(&std::mem::take(&mut self.open)))
    }
}

/// How many bytes of `bytes` come before a character that is cut at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needed = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => return bytes.len(),
        };
        return if needed > back { at } else { bytes.len() };
    }
    bytes.len()
}

/// The body as text, as far as it is not longer than an error or a list needs.
pub(super) async fn body_text(mut response: Response) -> String {
    let mut body: Vec<u8> = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = MOST_BODY.saturating_sub(body.len());
        body.extend(chunk.iter().take(room));
        if chunk.len() > room {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// The innermost cause: reqwest's own sentence only repeats the address.
pub(super) fn reason(why: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = why;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn data(parts: Vec<Vec<u8>>) -> Vec<Result<String, Broken>> {
        let events = events_of(stream::iter(parts.into_iter().map(Ok)));
        events.map(|event| event.map(|event| event.data)).collect::<Vec<_>>().now_or_never().unwrap()
    }

    #[test]
    fn characters_split_over_packets_are_put_together() {
        let whole = "data: héllo 日本 👋\n\ndata: two\n\n".as_bytes();
        for size in 1..whole.len() {
            let got = data(whole.chunks(size).map(<[u8]>::to_vec).collect());
            assert_eq!(got, vec![Ok("héllo 日本 👋".to_owned()), Ok("two".to_owned())], "{size}");
        }
    }

    #[test]
    fn a_byte_order_mark_and_broken_characters_stop_nothing() {
        let got =
            data(vec![b"\xef\xbb\xbfdata: a\n\n".to_vec(), b"data: b\xff\xc3(c\n\n".to_vec(), b"data: d\n\n".to_vec()]);
        assert_eq!(got.len(), 3, "{got:?}");
        assert_eq!((&got[0], &got[2]), (&Ok("a".to_owned()), &Ok("d".to_owned())));
    }

    #[test]
    fn the_last_event_needs_no_empty_line_after_it() {
        assert_eq!(data(vec![b"data: [DONE]".to_vec()]), vec![Ok("[DONE]".to_owned())]);
        assert_eq!(data(vec![b": ping\n\n: ping\n\n".to_vec()]), vec![]);
    }

    #[test]
    fn a_line_without_end_is_not_collected_for_ever() {
        let parts = std::iter::repeat_n(vec![b'x'; 64 * 1024], 100).collect();
        assert!(matches!(data(parts).last(), Some(Err(Broken(_)))));
    }
}
