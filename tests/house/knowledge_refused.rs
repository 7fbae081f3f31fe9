//! Snapshots that would do harm are refused before anything of them touches the disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::knowledge::check::check;
use reachy_remembers::remember::knowledge::restore::Workshop;
use tar::{Builder, EntryType, Header};

use crate::knowledge::{TEA, snapshot};

fn header(kind: EntryType, name: &str, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    // Written past the library, which would not write a path that leads out.
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_mode(0o644);
    header.set_size(size);
    header.set_cksum();
    header
}

/// A tar file of these entries and bodies.
fn archive(entries: &[(Header, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (header, body) in entries {
        builder.append(header, *body).unwrap();
    }
    builder.into_inner().unwrap()
}

fn file(name: &str, body: &[u8]) -> Vec<u8> {
    archive(&[(header(EntryType::Regular, name, body.len() as u64), body)])
}

/// Why it is refused; nothing may be unpacked and nothing left.
fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    fs::write(&path, bytes).unwrap();
    refused_file(&path, folder.path())
}

fn refused_file(path: &Path, folder: &Path) -> String {
    let workshop = Workshop { embedder: &StandIn::new(), search_threads: 1, min_free_bytes: 0 };
    let inside = folder.join("inside");
    fs::create_dir(&inside).unwrap();
    let why = workshop.prepare(path, &inside.join("shard")).unwrap_err().to_string();
    let left: Vec<PathBuf> = fs::read_dir(&inside).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?} after {why}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2, "something got out of the folder: {why}");
    why
}

#[test]
fn paths_that_lead_out_of_the_folder() {
    for name in ["../evil", "segments/../../evil", "/etc/evil", "segments/a/../../../evil", ".."] {
        assert!(refused(&file(name, b"evil")).contains("leads out"), "{name}");
    }
}

#[test]
fn links_and_devices() {
    for (kind, words) in [
        (EntryType::Symlink, "a link"),
        (EntryType::Link, "a link"),
        (EntryType::Char, "a device"),
        (EntryType::Block, "a device"),
        (EntryType::Fifo, "a device"),
        (EntryType::Continuous, "neither a file nor a folder"),
    ] {
        let mut entry = header(kind, "segments/a", 0);
        entry.set_link_name("/etc/passwd").unwrap();
        entry.set_cksum();
        let why = refused(&archive(&[(entry, b"")]));
        assert!(why.contains(words), "{kind:?}: {why}");
    }
}

#[test]
fn entries_that_are_there_twice_or_lie_inside_a_file() {
    let plain = |name| header(EntryType::Regular, name, 1);
    let twice = archive(&[(plain("a"), b"1".as_slice()), (plain("a"), b"2")]);
    assert!(refused(&twice).contains("twice"));
    let dotted = archive(&[(plain("a"), b"1".as_slice()), (plain("./a"), b"2")]);
    assert!(refused(&dotted).contains("twice"));
    let inside = archive(&[(plain("a"), b"1".as_slice()), (plain("a/b"), b"2")]);
    assert!(refused(&inside).contains("inside a file"));
    let file_then_folder = archive(&[(plain("a"), b"1".as_slice()), (header(EntryType::Directory, "a/", 0), b"")]);
    assert!(refused(&file_then_folder).contains("twice"));
}

#[test]
fn a_snapshot_that_lies_about_its_size() {
    // More is claimed than there is.
    let mut long = header(EntryType::Regular, "a", 9_000).as_bytes().to_vec();
    long.extend([1; 512]);
    long.extend([0; 1_024]);
    assert!(refused(&long).contains("damaged or cut short"), "{}", refused(&long));
    // More than there could ever be.
    let mut huge = header(EntryType::Regular, "a", 10_000_000_000).as_bytes().to_vec();
    huge.extend([0; 2_048]);
    assert!(refused(&huge).contains("larger than a snapshot may be"), "{}", refused(&huge));
    // A number that no length has.
    let mut absurd = header(EntryType::Regular, "a", u64::MAX / 2).as_bytes().to_vec();
    absurd.extend([0; 1_024]);
    let why = refused(&absurd);
    assert!(why.contains("larger than") || why.contains("damaged"), "{why}");
    // A sparse file whose pieces and length do not agree.
    let mut sparse = header(EntryType::GNUSparse, "a", 0);
    let gnu = sparse.as_gnu_mut().unwrap();
    gnu.sparse[0].set_offset(4_096);
    gnu.sparse[0].set_length(0);
    gnu.set_real_size(8_192);
    sparse.set_cksum();
    assert!(refused(&archive(&[(sparse, b"")])).contains("damaged"));
}

#[test]
fn ten_gigabytes_of_zeros_sparse_inside_or_as_a_file() {
    let ten = 10_000_000_000_u64;
    let mut sparse = header(EntryType::GNUSparse, "segments/a", 0);
    let gnu = sparse.as_gnu_mut().unwrap();
    gnu.sparse[0].set_offset(ten);
    gnu.sparse[0].set_length(0);
    gnu.set_real_size(ten);
    sparse.set_cksum();
    let bomb = archive(&[(sparse, b"")]);
    assert!(bomb.len() < 4_096);
    assert!(refused(&bomb).contains("larger than a snapshot may be"), "{}", refused(&bomb));
    // The file itself: refused by its length, without being read or copied.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    File::create(&path).unwrap().set_len(ten).unwrap();
    let began = std::time::Instant::now();
    assert!(refused_file(&path, folder.path()).contains("larger than a snapshot may be"));
    assert!(began.elapsed() < std::time::Duration::from_secs(2));
}

#[test]
fn too_many_entries_or_too_deep_or_badly_named() {
    let empty: &[u8] = b"";
    let many: Vec<_> = (0..5_000).map(|n| (header(EntryType::Regular, &format!("f{n}"), 0), empty)).collect();
    assert!(refused(&archive(&many)).contains("entries"));
    assert!(refused(&file("a/b/c/d/e/f/g/h/i/j/k", b"x")).contains("too deep"));
    assert!(refused(&file("a\nb", b"x")).contains("control characters"));
}

#[test]
fn compressed_empty_and_other_files() {
    assert!(refused(&[0x1f, 0x8b, 8, 0, 0, 0]).contains("compressed"));
    assert!(refused(b"").contains("end is missing"));
    assert!(refused(b"not a tar file").contains("end is missing"));
    assert!(refused(&[0; 2_048]).contains("empty"));
    let mut no_end = file("a", b"x");
    no_end.truncate(no_end.len() - 1_024);
    assert!(refused(&no_end).contains("end is missing"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    fs::create_dir(&path).unwrap();
    assert!(refused_file(&path, folder.path()).contains("not a regular file"));
}

#[test]
fn what_is_wrong_inside_the_tar_of_a_segment_is_found_too() {
    for inner in [
        archive(&[(header(EntryType::Regular, "../evil", 4), b"evil".as_slice())]),
        archive(&[(
            {
                let mut link = header(EntryType::Symlink, "a", 0);
                link.set_link_name("/etc").unwrap();
                link.set_cksum();
                link
            },
            b"".as_slice(),
        )]),
    ] {
        let why = refused(&file("segments/0b0c6b1e-0000-4000-8000-000000000000.tar", &inner));
        assert!(why.contains("leads out") || why.contains("a link"), "{why}");
    }
}

#[test]
fn a_tar_file_that_is_no_shard_is_refused_by_the_engine_and_leaves_nothing() {
    let why = refused(&file("hello.txt", b"hello"));
    assert!(why.contains("engine"), "{why}");
}

#[test]
fn a_sound_snapshot_passes_and_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = snapshot(folder.path(), "tea", TEA, &StandIn::new());
    let checked = check(&path).unwrap();
    assert_eq!(checked.label.unwrap().facts, 2);
    assert!(checked.entries > 3 && checked.apparent > 0);
    // Whatever is put behind its end makes it another file.
    let mut longer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    longer.write_all(b"and more").unwrap();
    assert!(check(&path).unwrap_err().to_string().contains("end is missing"));
}
