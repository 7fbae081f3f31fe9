use std::fs;

use super::*;

#[test]
fn numbers_that_do_not_fill_the_shape_are_refused() {
    assert!(Tensor::new(vec![2, 3], vec![0.0; 6]).is_ok());
    assert!(Tensor::new(vec![2, 3], vec![0.0; 5]).is_err());
    assert!(Tensor::new(vec![usize::MAX, 2], Vec::new()).is_err());
}

#[test]
fn without_a_library_rten_runs_and_the_line_says_why() {
    let engine = Engine::start(Backend::Auto, &Places::default(), 1).unwrap();
    assert_eq!(engine.name(), "rten");
    assert!(engine.in_use().contains("no library of it was found"), "{}", engine.in_use());
    let error = Engine::start(Backend::OnnxRuntime, &Places::default(), 1).unwrap_err();
    assert!(matches!(error, InferError::Library { .. }));
    assert!(error.to_string().contains("models fetch"), "{error}");
}

/// What is said of a file that is offered as the library.
fn refusal(path: &Path) -> String {
    let places = Places { configured: Some(path.to_owned()), ..Places::default() };
    let engine = Engine::start(Backend::Auto, &places, 1).unwrap();
    assert_eq!(engine.name(), "rten");
    let error = Engine::start(Backend::OnnxRuntime, &places, 1).unwrap_err().to_string();
    assert!(error.contains(&path.display().to_string()), "{error}");
    error
}

#[test]
fn whatever_is_no_library_is_refused_before_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libonnxruntime.so");
    assert!(refusal(&path).contains("is not there"));
    assert!(refusal(folder.path()).contains("is no file"));
    fs::write(&path, b"").unwrap();
    assert!(refusal(&path).contains("is no shared library"));
    fs::write(&path, vec![b'#'; 10_000]).unwrap();
    assert!(refusal(&path).contains("is no shared library"));
    // A program of this machine is of the same format, but is no ONNX Runtime.
    let program = std::env::current_exe().unwrap();
    assert!(refusal(&program).contains("is "), "{}", refusal(&program));
}

/// A library of the system that is not ONNX Runtime, where there is one.
fn other_library() -> Option<Vec<u8>> {
    let folder = format!("/lib/{}-linux-gnu/libm.so.6", std::env::consts::ARCH);
    let found = fs::read(folder).ok();
    if found.is_none() {
        println!("skipped: this system has no libm.so.6 in its usual place");
    }
    found
}

#[test]
fn another_library_and_one_cut_short_are_told_apart() {
    let Some(bytes) = other_library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libonnxruntime.so");
    fs::write(&path, &bytes).unwrap();
    assert!(refusal(&path).contains("but not ONNX Runtime"), "{}", refusal(&path));
    // Cut anywhere, it must be refused and not loaded.
    for part in [64, 200, 1_000, bytes.len() / 2] {
        fs::write(&path, &bytes[..part]).unwrap();
        let why = refusal(&path);
        assert!(why.contains("cut short"), "{part} bytes: {why}");
    }
    let mut foreign = bytes.clone();
    foreign[18] ^= 1;
    fs::write(&path, &foreign).unwrap();
    assert!(refusal(&path).contains("another kind of processor"));
    // The same library with the names of an old ONNX Runtime.
    for (version, why) in [("1.21.0", "1.22 or newer is needed"), ("2.40.0", "1.22 or newer is needed")] {
        fs::write(&path, renamed(&bytes, version)).unwrap();
        assert!(refusal(&path).contains(why), "{}", refusal(&path));
    }
}

/// The library with two of its names replaced, so that it looks like ONNX Runtime of this version.
fn renamed(bytes: &[u8], version: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mark = format!("VERS_{version}");
    let mut put = |name: &str| {
        // Any name of the table that is long enough; the rest of it becomes a name of its own.
        let from = bytes
            .windows(name.len() + 2)
            .position(|part| part[0] == 0 && part[1..=name.len()].iter().all(u8::is_ascii_lowercase))
            .unwrap();
        bytes[from + 1..=from + name.len()].copy_from_slice(name.as_bytes());
        bytes[from + 1 + name.len()] = 0;
    };
    put("OrtGetApiBase");
    put(&mark);
    bytes
}

#[test]
fn the_highest_version_in_a_folder_goes_first_and_the_plain_name_before_all() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libonnxruntime.so.1.9.0", "libonnxruntime.so.1.32.0", "libonnxruntime_providers_shared.so"] {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let names = || {
        let places = Places { system: vec![folder.path().to_owned()], ..Places::default() };
        let paths = places.candidates();
        paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["libonnxruntime.so.1.32.0", "libonnxruntime.so.1.9.0"]);
    fs::write(folder.path().join("libonnxruntime.so"), b"").unwrap();
    assert_eq!(names(), ["libonnxruntime.so"]);
}

#[test]
fn what_is_no_network_is_a_typed_error_in_rten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.onnx");
    let engine = Engine::start(Backend::Rten, &Places::default(), 1).unwrap();
    assert!(matches!(engine.load(&path), Err(InferError::Load { .. })));
    for bytes in [Vec::new(), vec![0; 100], vec![0xff; 5_000], b"\x08\x06\x12\x07pytorch".to_vec()] {
        fs::write(&path, &bytes).unwrap();
        let error = engine.load(&path).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("could not be loaded") && error.contains("models verify"), "{error}");
    }
}
