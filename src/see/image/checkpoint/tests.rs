use std::fs;

use super::*;

/// Writes a safetensors file of these tensors; the last part is the numbers' bytes.
fn file(tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]) -> tempfile::NamedTempFile {
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".into(), serde_json::json!({ "format": "pt" }));
    let mut body = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [body.len(), body.len() + bytes.len()];
        header.insert((*name).into(), serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets }));
        body.extend_from_slice(bytes);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let written = tempfile::NamedTempFile::new().unwrap();
    let whole = [&(header.len() as u64).to_le_bytes()[..], &header, &body].concat();
    fs::write(written.path(), whole).unwrap();
    written
}

/// A table of 5 rows of 3 numbers that every format can say exactly: row · 4 + column / 4.
fn table(dtype: &str) -> Vec<u8> {
    let numbers = (0..15).map(|place| (place / 3 * 4) as f32 + (place % 3) as f32 / 4.0);
    match dtype {
        "F32" => numbers.flat_map(f32::to_le_bytes).collect(),
        "BF16" => numbers.flat_map(|number| narrowed(number).to_le_bytes()).collect(),
        _ => {
            let halves = Tensor::from_iter(numbers, &Device::Cpu).unwrap().to_dtype(DType::F16).unwrap();
            let mut bytes = Vec::new();
            halves.write_bytes(&mut bytes).unwrap();
            bytes
        }
    }
}

#[test]
fn picked_rows_are_the_right_ones_in_every_number_format() {
    for dtype in ["F32", "F16", "BF16"] {
        let before = vec![0xff; 6];
        let written = file(&[("other", "U8", vec![6], before), ("table", dtype, vec![5, 3], table(dtype))]);
        let checkpoint = Checkpoint::open(written.path()).unwrap();
        let rows = checkpoint.picked_rows("table", &[4, 0, 4, 2], 3).unwrap();
        assert_eq!(rows, [16.0, 16.25, 16.5, 0.0, 0.25, 0.5, 16.0, 16.25, 16.5, 8.0, 8.25, 8.5], "{dtype}");
    }
}

#[test]
fn a_row_beyond_the_table_is_an_error_and_no_other_tensor() {
    let after = [9.0_f32; 3].iter().flat_map(|number| number.to_le_bytes()).collect();
    let written = file(&[("table", "F32", vec![5, 3], table("F32")), ("after", "F32", vec![3], after)]);
    let checkpoint = Checkpoint::open(written.path()).unwrap();
    assert!(checkpoint.picked_rows("table", &[5], 3).is_err_and(|why| why.contains("it has 5")));
    assert!(checkpoint.picked_rows("table", &[0], 4).is_err());
    assert!(checkpoint.picked_rows("missing", &[0], 3).is_err());
}

#[test]
fn a_file_that_is_cut_short_is_found_when_it_is_opened() {
    let written = file(&[("table", "F32", vec![5, 3], table("F32"))]);
    let whole = fs::read(written.path()).unwrap();
    for kept in [0, 5, 40, whole.len() - 1] {
        fs::write(written.path(), &whole[..kept]).unwrap();
        assert!(Checkpoint::open(written.path()).is_err(), "{kept} bytes");
    }
    fs::write(written.path(), &whole).unwrap();
    assert!(Checkpoint::open(written.path()).is_ok());
}

#[test]
fn a_header_that_lies_about_its_tensors_is_refused() {
    for (shape, bytes) in [(vec![5, 4], 60), (vec![usize::MAX, usize::MAX], 60), (vec![5, 3], 59)] {
        let written = file(&[("table", "F32", shape.clone(), vec![0; bytes])]);
        assert!(Checkpoint::open(written.path()).is_err(), "{shape:?} in {bytes} bytes");
    }
}

#[test]
fn measuring_reads_nothing_and_filling_gives_the_same_places() {
    let written = file(&[("a", "F32", vec![5, 3], table("F32")), ("b", "BF16", vec![5, 3], table("BF16"))]);
    let checkpoint = Checkpoint::open(written.path()).unwrap();
    let mut measuring = Shelf::measuring(&checkpoint);
    measuring.matrix("a", &[5, 3]).unwrap();
    measuring.matrix("b", &[5, 3]).unwrap();
    assert!(measuring.matrix("a", &[3, 5]).is_err_and(|why| why.contains("expected is [3, 5]")));
    assert_eq!(measuring.used(), 30);
    assert!(measuring.into_numbers().is_none());
    for at_rest in [AtRest::F32, AtRest::Bf16] {
        let mut shelf = Shelf::with_room(&checkpoint, 30, at_rest);
        shelf.matrix("a", &[5, 3]).unwrap();
        let second = shelf.matrix("b", &[5, 3]).unwrap();
        let numbers = shelf.into_numbers().unwrap();
        let rows = numbers.tensor(second.slice(1, 2)).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(rows, [[4.0, 4.25, 4.5], [8.0, 8.25, 8.5]], "{at_rest:?}");
    }
}

#[test]
fn sixteen_bits_round_to_the_nearest_and_ties_to_even() {
    let through = |number: f32| widened(narrowed(number));
    for exact in [0.0, -0.0, 1.0, -1.5, 256.0, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(through(exact).to_bits(), exact.to_bits());
    }
    assert_eq!(through(1.0 + 1.0 / 256.0), 1.0, "a tie goes to the even one below");
    assert_eq!(through(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0, "a tie goes to the even one above");
    assert_eq!(through(1.0 + 1.1 / 256.0), 1.0 + 2.0 / 256.0);
    assert!(through(f32::NAN).is_nan() && through(f32::from_bits(0x7f80_0001)).is_nan());
}
