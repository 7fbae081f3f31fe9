use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

fn at(address: &str) -> Vec<SocketAddr> {
    vec![address.parse().unwrap()]
}

/// A resolver of a test: what it finds, after how long, and how often it was asked.
struct Scripted {
    finds: Option<&'static str>,
    after: Duration,
    asked: AtomicUsize,
}

impl Scripted {
    fn new(finds: Option<&'static str>, after_ms: u64) -> Arc<Self> {
        Arc::new(Self { finds, after: Duration::from_millis(after_ms), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Lookup for Scripted {
    fn find(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (finds, after) = (self.finds, self.after);
        async move {
            sleep(after).await;
            finds.map(at).ok_or_else(|| io::Error::other("no answer"))
        }
        .boxed()
    }
}

const LIMIT: Duration = Duration::from_millis(800);

#[test]
fn a_name_that_does_not_resolve_for_a_moment_keeps_its_last_address() {
    let names = Remembering::new(Duration::from_secs(2));
    let lost = || Err(io::Error::other("no answer"));
    assert!(names.settle("laptop.local", lost()).is_err());
    assert!(names.settle("laptop.local", Ok(Vec::new())).unwrap_err().to_string().contains("laptop.local"));
    names.settle("laptop.local", Ok(at("10.0.0.7:0"))).unwrap();
    assert_eq!(names.settle("laptop.local", lost()).unwrap(), at("10.0.0.7:0"));
    assert_eq!(names.settle("laptop.local", Ok(at("10.0.0.9:0"))).unwrap(), at("10.0.0.9:0"));
    assert_eq!(names.settle("laptop.local", lost()).unwrap(), at("10.0.0.9:0"), "the new address, not the old one");
    assert!(names.settle("other.local", lost()).is_err());
}

#[tokio::test]
async fn a_name_that_the_system_does_not_know_is_asked_for_in_the_house() {
    let (system, house) = (Scripted::new(None, 0), Scripted::new(Some("10.0.0.7:0"), 10));
    let names = Remembering::with(LIMIT, system.clone(), house.clone());
    assert_eq!(names.addresses("laptop.local").await.unwrap(), at("10.0.0.7:0"));
    assert!(names.addresses("laptop.example").await.is_err(), "only names in .local are the house's");
    assert_eq!((system.asked(), house.asked()), (2, 1));
}

#[tokio::test]
async fn a_system_that_knows_the_name_is_believed_and_one_that_hangs_is_not_waited_for() {
    let (system, house) = (Scripted::new(Some("10.0.0.1:0"), 5), Scripted::new(Some("10.0.0.7:0"), 5));
    let names = Remembering::with(LIMIT, system, house.clone());
    assert_eq!(names.addresses("laptop.local").await.unwrap(), at("10.0.0.1:0"));
    assert_eq!(house.asked(), 0);
    let names = Remembering::with(LIMIT, Scripted::new(None, 60_000), Scripted::new(Some("10.0.0.7:0"), 5));
    let began = Instant::now();
    assert_eq!(names.addresses("laptop.local").await.unwrap(), at("10.0.0.7:0"));
    assert!(began.elapsed() < LIMIT);
}

#[tokio::test]
async fn a_house_in_which_nobody_answers_ends_within_the_limit() {
    let names = Remembering::with(LIMIT, Scripted::new(None, 60_000), Scripted::new(None, 60_000));
    let began = Instant::now();
    let why = names.addresses("laptop.local").await.unwrap_err();
    assert!(began.elapsed() < LIMIT && why.to_string().contains("laptop.local"), "{why}");
}

#[tokio::test]
async fn the_last_address_outlives_the_process_and_a_broken_file_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("laptop-address.json");
    let mut names = Remembering::with(LIMIT, Scripted::new(None, 0), Scripted::new(Some("10.0.0.7:0"), 0));
    names.keep_in(file.clone());
    names.addresses("laptop.local").await.unwrap();
    let lost = || Remembering::with(LIMIT, Scripted::new(None, 0), Scripted::new(None, 0));
    let mut later = lost();
    later.keep_in(file.clone());
    assert_eq!(later.addresses("laptop.local").await.unwrap(), at("10.0.0.7:0"));
    std::fs::write(&file, "{ not json").unwrap();
    let mut later = lost();
    later.keep_in(file);
    assert!(later.addresses("laptop.local").await.is_err());
}

#[test]
fn addresses_that_a_url_cannot_reach_are_left_out_and_the_rest_is_in_order() {
    let found = ["fe80::1", "fd00::2", "10.0.0.7"].map(|ip| ip.parse().unwrap());
    let wanted: Vec<SocketAddr> = ["10.0.0.7:0", "[fd00::2]:0"].map(|address| address.parse().unwrap()).into();
    assert_eq!(in_order(found.into_iter()), wanted);
}

/// A port of the test's own: the machine's 5353 may be taken by its own responder.
const TEST_PORT: u16 = 35_353;

#[tokio::test]
async fn a_laptop_that_answers_by_multicast_is_found() {
    let Ok(laptop) = ServiceDaemon::new_with_port(TEST_PORT) else {
        println!("skipped: this machine has no multicast");
        return;
    };
    let properties: [(&str, &str); 0] = [];
    let service = mdns_sd::ServiceInfo::new(
        "_reachy-test._tcp.local.",
        "laptop",
        "reachy-test-laptop.local.",
        "",
        8080,
        &properties[..],
    )
    .unwrap()
    .enable_addr_auto();
    laptop.register(service).unwrap();
    let names =
        Remembering::with(Duration::from_secs(8), Scripted::new(None, 0), Arc::new(HouseLookup { port: TEST_PORT }));
    let found = names.addresses("reachy-test-laptop.local").await;
    let _ = laptop.shutdown();
    match found {
        Ok(addresses) => assert!(!addresses.is_empty()),
        Err(why) if multicast_is_blocked().await => println!("skipped: multicast does not come back here ({why})"),
        Err(why) => panic!("{why}"),
    }
}

/// Whether a plain packet to the multicast group does not come back to this machine.
async fn multicast_is_blocked() -> bool {
    use std::net::Ipv4Addr;
    let group = Ipv4Addr::new(224, 0, 0, 251);
    let comes_back = async {
        let socket = tokio::net::UdpSocket::bind(("0.0.0.0", 0)).await?;
        socket.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED)?;
        socket.set_multicast_loop_v4(true)?;
        let port = socket.local_addr()?.port();
        socket.send_to(b"?", (group, port)).await?;
        let mut byte = [0; 1];
        timeout(Duration::from_secs(1), socket.recv(&mut byte)).await.map_err(io::Error::other)?
    };
    let outcome: io::Result<usize> = comes_back.await;
    outcome.is_err()
}
