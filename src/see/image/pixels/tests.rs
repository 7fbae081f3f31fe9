use std::fs;
use std::path::PathBuf;

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/embedding/siglip")
}

fn plain(width: u32, height: u32, colour: [u8; 3]) -> Rgb {
    Rgb { width, height, pixels: colour.repeat((width * height) as usize) }
}

#[test]
fn a_patch_holds_its_red_then_its_green_then_its_blue_rows() {
    let mut square: Vec<u8> = vec![0; SIDE * SIDE * 3];
    // The second pixel of the third row of the patch in the second row and third column.
    let (x, y) = (2 * PATCH + 1, PATCH + 2);
    square[(y * SIDE + x) * 3..][..3].copy_from_slice(&[255, 51, 102]);
    let patches = patches(&square);
    let place = (14 + 2) * PATCH_NUMBERS + 2 * PATCH + 1;
    let colours: Vec<f32> = (0..3).map(|colour| patches[place + colour * PATCH * PATCH]).collect();
    for (number, expected) in colours.iter().zip([1.0, -0.6, -0.2]) {
        assert!((number - expected).abs() < 1e-6, "{number} {expected}");
    }
    assert_eq!(patches.iter().filter(|number| **number != -1.0).count(), 3);
}

#[test]
fn one_colour_stays_that_colour_at_any_size() {
    for (width, height) in [(1, 1), (3, 1000), (224, 224), (1280, 720)] {
        let square = square(&plain(width, height, [10, 128, 250])).unwrap();
        assert_eq!(square.len(), SIDE * SIDE * 3);
        assert!(square.chunks_exact(3).all(|pixel| pixel == [10, 128, 250]), "{width} by {height}");
    }
}

#[test]
fn a_picture_whose_bytes_do_not_fit_its_size_is_refused() {
    let mut torn = plain(8, 8, [1, 2, 3]);
    torn.pixels.pop();
    for picture in [torn, plain(0, 5, [0; 3]), Rgb { width: u32::MAX, height: u32::MAX, pixels: vec![0; 3] }] {
        assert!(square(&picture).is_err_and(|why| why.contains("cannot have")));
    }
}

#[test]
fn a_checkpoint_that_wants_other_pixels_is_refused() {
    let good = fs::read_to_string(fixtures().join("preprocessor_config.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("preprocessor_config.json");
    assert!(check_settings(&fixtures().join("preprocessor_config.json")).is_ok());
    for (from, to) in [
        ("\"resample\": 2", "\"resample\": 3"),
        ("\"height\": 224", "\"height\": 256"),
        ("0.00392156862745098", "0.5"),
        ("\"image_mean\"", "\"image_median\""),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(&path, good.replace(from, to)).unwrap();
        assert!(check_settings(&path).is_err(), "{to}");
    }
}
