use super::*;

/// A picture with the noise of a camera around a grey ramp, from a seed.
fn noisy(width: u32, height: u32, seed: u64) -> Rgb {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let pixels = (0..width * height * 3)
        .map(|index| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let ramp = (index / 3 / width) * 120 / height.max(1) + 60;
            (ramp + (state % 9) as u32) as u8
        })
        .collect();
    Rgb { width, height, pixels }
}

fn png(picture: &Rgb) -> Vec<u8> {
    let mut bytes = Vec::new();
    let image = image::RgbImage::from_raw(picture.width, picture.height, picture.pixels.clone()).unwrap();
    image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    bytes
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

#[test]
fn a_jpeg_and_a_png_are_read_and_a_png_comes_back_as_it_was() {
    let picture = noisy(320, 180, 1);
    assert_eq!(decode(&png(&picture)).unwrap(), picture);
    let back = decode(&picture.to_jpeg().unwrap()).unwrap();
    assert_eq!((back.width, back.height), (320, 180));
    assert!((back.brightness() - picture.brightness()).abs() < 2.0);
}

#[test]
fn twelve_megapixels_are_scaled_down_and_more_is_refused() {
    let large = decode(&noisy(4056, 3040, 2).to_jpeg_at(50).unwrap()).unwrap();
    assert_eq!((large.width, large.height), (1280, 959));
    let upright = decode(&noisy(1000, 2000, 2).to_jpeg_at(50).unwrap()).unwrap();
    assert_eq!((upright.width, upright.height), (640, 1280));
    let larger = decode(&noisy(4600, 3000, 2).to_jpeg_at(30).unwrap());
    assert_eq!(larger, Err(PictureFault::Size { width: 4600, height: 3000 }));
    assert!(matches!(decode(&noisy(300, 8, 2).to_jpeg().unwrap()), Err(PictureFault::Size { .. })));
}

#[test]
fn a_header_that_promises_a_huge_picture_takes_no_memory() {
    // The sizes in the headers of small files, overwritten.
    let mut jpeg = noisy(64, 64, 3).to_jpeg().unwrap();
    let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF]);
    assert_eq!(decode(&jpeg), Err(PictureFault::Size { width: 65_535, height: 65_535 }));
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0, 0, 0, 0]);
    assert!(matches!(decode(&jpeg), Err(PictureFault::Corrupt { .. } | PictureFault::Size { .. })));
    let mut png = png(&noisy(64, 64, 3));
    png[16..24].copy_from_slice(&[0; 8]);
    assert!(matches!(decode(&png), Err(PictureFault::Corrupt { .. } | PictureFault::Size { .. })));
}

#[test]
fn what_is_no_picture_is_a_fault() {
    assert_eq!(decode(&[]), Err(PictureFault::Empty));
    for bytes in [&b"<html>404</html>"[..], &[0xFF, 0xD8], &[0xFF, 0xD8, 0xFF, 0xD9], &[0; 5000], b"\x89PNG\r\n\x1a\n"]
    {
        let fault = decode(bytes).unwrap_err();
        assert!(matches!(fault, PictureFault::Corrupt { .. } | PictureFault::Torn), "{fault:?}");
    }
}

#[test]
fn a_torn_file_is_never_a_picture_wherever_it_was_cut() {
    let jpeg = noisy(320, 180, 4).to_jpeg().unwrap();
    let png = png(&noisy(320, 180, 4));
    for percent in [1, 5, 20, 50, 80, 95, 99] {
        let cut = |file: &[u8]| file[..file.len() * percent / 100].to_vec();
        decode(&cut(&jpeg)).map(|_| percent).expect_err("a cut JPEG");
        decode(&cut(&png)).map(|_| percent).expect_err("a cut PNG");
    }
    let mut padded = jpeg.clone();
    padded.extend([0; 512]);
    decode(&padded).expect("zeros behind the end are a camera's padding");
}

#[test]
fn a_jpeg_that_lost_its_lower_part_but_has_its_end_is_torn() {
    let jpeg = noisy(640, 360, 5).to_jpeg().unwrap();
    for percent in [30, 50, 70] {
        let mut torn = jpeg[..jpeg.len() * percent / 100].to_vec();
        torn.extend([0xFF, 0xD9]);
        let fault = decode(&torn).map(|_| percent).expect_err("a lost lower part");
        assert!(matches!(fault, PictureFault::Torn | PictureFault::Corrupt { .. }), "{fault:?}");
    }
}

#[test]
fn a_white_table_or_a_black_edge_is_not_torn() {
    for value in [0_u8, 255] {
        let mut picture = noisy(320, 180, 6);
        let half = picture.pixels.len() / 2;
        picture.pixels[half..].fill(value);
        decode(&picture.to_jpeg().unwrap()).expect("a clipped lower half");
    }
}

#[test]
fn the_inside_of_the_shell_is_dark_and_a_dim_room_is_not() {
    let mut picture = noisy(160, 90, 7);
    picture.check_light().unwrap();
    for value in &mut picture.pixels {
        *value /= 12;
    }
    assert!(matches!(picture.check_light(), Err(PictureFault::Dark { brightness: 5..16 })));
    for value in &mut picture.pixels {
        *value *= 3;
    }
    picture.check_light().unwrap();
}

#[test]
fn a_camera_that_hangs_is_found_and_a_still_room_is_not() {
    let mut watch = FrozenWatch::new(Some(SignedDuration::from_secs(10)));
    let same = noisy(160, 90, 8);
    let faults: Vec<_> = (0..30).map(|second| watch.judge(&same, at(second)).is_err()).collect();
    assert_eq!(faults.iter().position(|fault| *fault), Some(10));
    assert!(faults[10..].iter().all(|fault| *fault));
    for second in 30..60 {
        watch.judge(&noisy(160, 90, second as u64), at(second)).expect("noise is life");
    }
}

#[test]
fn two_pictures_at_one_moment_or_far_apart_do_not_make_a_camera_hang() {
    let mut watch = FrozenWatch::new(Some(SignedDuration::from_secs(10)));
    let same = noisy(160, 90, 9);
    for second in [0, 0, 3600] {
        watch.judge(&same, at(second)).expect("fewer than five pictures");
    }
    let mut never = FrozenWatch::new(None);
    for second in 0..100 {
        never.judge(&same, at(second)).expect("a camera that repeats its files");
    }
}

#[test]
fn a_kept_picture_is_never_larger_than_the_cap() {
    let mut state = 1_u64;
    let pixels = (0..1280 * 1280 * 3)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    let worst = Rgb { width: 1280, height: 1280, pixels };
    assert!(worst.to_jpeg_at(80).unwrap().len() > LARGEST_KEPT, "the worst picture is not bad enough");
    let kept = worst.to_jpeg().unwrap();
    assert!(kept.len() <= LARGEST_KEPT);
    decode(&kept).unwrap();
}

#[test]
fn a_picture_without_its_pixels_is_a_fault_and_no_panic() {
    for picture in [
        Rgb { width: 0, height: 0, pixels: Vec::new() },
        Rgb { width: 10, height: 10, pixels: vec![0; 299] },
        Rgb { width: u32::MAX, height: u32::MAX, pixels: vec![1; 30] },
    ] {
        assert!(picture.to_jpeg().is_err());
        assert!(picture.resized(5, 5).is_err());
        assert!(!picture.is_torn() || picture.width < 100);
        picture.scaled_to(1280).map(drop).unwrap_err();
    }
}
