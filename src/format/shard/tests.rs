//! Round trips and damage.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use bytes::Bytes;

use super::{ShardReader, ShardWriter};
use crate::types::batch::{binary_view_of_rows, tensor_array};
use crate::types::{Batch, BufferPool, Codec, ColumnType, DType, Dim, NamedColumn, RowKey, TensorColumn, TensorType};
use crate::world::ReadAt;

struct Memory(Vec<u8>);

impl ReadAt for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(from..from.saturating_add(into.len())).ok_or(std::io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

fn columns() -> Vec<NamedColumn> {
    let tensor = |dtype, shape| ColumnType::Tensor(TensorType { dtype, shape });
    let types = [
        ("path", ColumnType::Text),
        ("bytes", ColumnType::Bytes),
        ("label", ColumnType::Scalar(DType::I64)),
        ("fixed", tensor(DType::U8, vec![Dim::Fixed(100), Dim::Fixed(100), Dim::Fixed(3)])),
        ("small", tensor(DType::F32, vec![Dim::Fixed(2), Dim::Fixed(2)])),
        ("ragged", tensor(DType::U8, vec![Dim::ANY, Dim::ANY, Dim::Fixed(3)])),
    ];
    types.map(|(name, column_type)| NamedColumn { name: name.to_owned(), column_type }).to_vec()
}

/// Bytes that differ from row to row and from place to place.
fn pattern(row: usize, length: usize) -> Bytes {
    (0..length).map(|at| u8::try_from((row * 31 + at * 7 + at / 251) % 251).unwrap_or(0)).collect::<Vec<u8>>().into()
}

fn batch(rows: std::ops::Range<usize>, ragged_side: usize) -> Batch {
    let columns = columns();
    let tensor = |at: usize| columns[at].column_type.tensor().expect("a tensor");
    let values = |length: &dyn Fn(usize) -> usize| {
        binary_view_of_rows(rows.clone().map(|row| pattern(row, length(row))).collect()).expect("fits")
    };
    let side = |row: usize| ragged_side + row % 3;
    let shapes = rows
        .clone()
        .flat_map(|row| [i32::try_from(side(row)).expect("small"), i32::try_from(ragged_side).expect("small"), 3]);
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(rows.clone().map(|row| Some(format!("folder/ä {row}.jpg"))).collect::<StringArray>()),
        Arc::new(values(&|row| row % 5 * 4)),
        Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| i64::try_from(row).expect("small") - 3))),
        tensor_array(tensor(3), values(&|_| 30_000), Vec::new()).expect("fits"),
        tensor_array(tensor(4), values(&|_| 16), Vec::new()).expect("fits"),
        tensor_array(tensor(5), values(&|row| side(row) * ragged_side * 3), shapes.collect()).expect("fits"),
    ];
    Batch { keys: rows.map(|row| RowKey::of_fragment("x", row as u64)).collect(), columns: arrays }
}

fn write(batches: &[Batch], codec: Codec) -> Vec<u8> {
    let mut writer = ShardWriter::new(Vec::new(), &columns(), codec).expect("begins");
    for batch in batches {
        writer.write(batch).expect("writes");
    }
    writer.finish().expect("ends")
}

fn open(bytes: Vec<u8>, columns: &[NamedColumn]) -> Result<ShardReader, String> {
    ShardReader::open(Arc::new(Memory(bytes)), columns)
}

#[test]
fn every_type_comes_back_under_every_codec_in_any_order() {
    for codec in Codec::ALL {
        for ragged_side in [4, 90] {
            let whole = batch(0..20, ragged_side);
            assert!(whole.columns.iter().all(super::writer::has_no_nulls));
            let reader =
                open(write(&[batch(0..7, ragged_side), batch(7..20, ragged_side)], codec), &columns()).expect("opens");
            assert_eq!(reader.rows(), 20);
            assert_eq!(reader.keys().expect("keys"), whole.keys);
            let order = [19, 3, 3, 0, 12];
            let indices = arrow::array::UInt32Array::from_iter_values(
                order.iter().map(|row| u32::try_from(*row).expect("small")),
            );
            let got = reader.fetch(&order, &BufferPool::new(4)).expect("fetches");
            for (got, (all, column)) in got.iter().zip(whole.columns.iter().zip(columns())) {
                let expected = arrow::compute::take(all, &indices, None).expect("takes");
                assert_eq!(got.data_type(), &column.column_type.arrow(), "{}", column.name);
                assert_eq!(got, &expected, "{} {codec:?} {ragged_side}", column.name);
            }
            assert_eq!(reader.fetch(&[], &BufferPool::new(4)).expect("fetches")[0].len(), 0);
            assert!(reader.fetch(&[20], &BufferPool::new(4)).is_err());
        }
    }
}

#[test]
fn a_subset_of_the_columns_can_be_read_and_others_are_refused() {
    let bytes = write(&[batch(0..5, 4)], Codec::None);
    let all = columns();
    let reader = open(bytes.clone(), &[all[3].clone(), all[2].clone()]).expect("opens");
    let got = reader.fetch(&[4], &BufferPool::new(1)).expect("fetches");
    assert_eq!(&got[1], &batch(4..5, 4).columns[2]);
    let unknown = NamedColumn { name: "nothing".to_owned(), column_type: ColumnType::Text };
    assert!(open(bytes.clone(), &[unknown]).is_err_and(|error| error.contains("no column `nothing`")));
    let other_type = NamedColumn { column_type: ColumnType::Text, ..all[2].clone() };
    assert!(open(bytes, &[other_type]).is_err_and(|error| error.contains("not of type text")));
}

#[test]
fn the_same_rows_give_the_same_bytes_however_they_are_batched() {
    let one = write(&[batch(0..20, 90)], Codec::Zstd1);
    let many: Vec<Batch> = (0..20).map(|row| batch(row..row + 1, 90)).collect();
    assert_eq!(one, write(&many, Codec::Zstd1));
}

#[test]
fn batches_dont_show_in_narrow_pages_nor_in_what_is_wide() {
    // 30,000 rows are more than the 20,000 at which the library ends a page.
    let label = [NamedColumn { name: "label".to_owned(), column_type: ColumnType::Scalar(DType::I64) }];
    // The first value alone is narrow, their mean is wide.
    let file = [NamedColumn { name: "file".to_owned(), column_type: ColumnType::Bytes }];
    let labels = |rows: std::ops::Range<usize>| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.map(|row| i64::try_from(row).expect("small"))))
    };
    let files = |rows: std::ops::Range<usize>| -> ArrayRef {
        let values = rows.map(|row| pattern(row, if row == 0 { 100 } else { 30_000 })).collect();
        Arc::new(binary_view_of_rows(values).expect("fits"))
    };
    let cut =
        |columns: &[NamedColumn], rows: usize, size: usize, array: &dyn Fn(std::ops::Range<usize>) -> ArrayRef| {
            let mut writer = ShardWriter::new(Vec::new(), columns, Codec::None).expect("begins");
            for from in (0..rows).step_by(size) {
                let rows = from..rows.min(from + size);
                let keys = rows.clone().map(|row| RowKey::of_fragment("x", row as u64)).collect();
                writer.write(&Batch { keys, columns: vec![array(rows)] }).expect("writes");
            }
            writer.finish().expect("ends")
        };
    assert!(cut(&label, 30_000, 30_000, &labels) == cut(&label, 30_000, 777, &labels));
    assert!(cut(&file, 20, 20, &files) == cut(&file, 20, 1, &files));
}

#[test]
fn values_that_contradict_their_type_are_refused() {
    let mut wrong = batch(0..2, 4);
    wrong.columns[4] = Arc::new(binary_view_of_rows(vec![pattern(0, 16), pattern(1, 15)]).expect("fits"));
    let mut writer = ShardWriter::new(Vec::new(), &columns(), Codec::None).expect("begins");
    assert_eq!(writer.write(&wrong), Err("column `small`: a value of 15 bytes for f32[2, 2]".to_owned()));
    let twice = [columns()[0].clone(), columns()[0].clone()];
    assert!(ShardWriter::new(Vec::new(), &twice, Codec::None).is_err());
}

#[test]
fn damage_of_any_byte_of_the_footer_is_no_panic_and_shapes_keep_fitting_their_values() {
    for codec in [Codec::None, Codec::Zstd1] {
        let whole = write(&[batch(0..6, 90)], codec);
        for at in whole.len() - 6000..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let Ok(reader) = open(damaged, &columns()) else { continue };
            let _ = reader.keys();
            let everything: Vec<usize> = (0..reader.rows().min(6)).collect();
            let Ok(got) = reader.fetch(&everything, &BufferPool::new(2)) else { continue };
            let tensors = TensorColumn::new(&got[5], &columns()[5].column_type).expect("a tensor");
            let mut shape = Vec::new();
            for row in 0..tensors.len() {
                tensors.shape(row, &mut shape);
                assert_eq!(shape.iter().product::<usize>(), tensors.data(row).len(), "byte {at}");
            }
        }
    }
}

#[test]
fn an_empty_shard_opens() {
    let reader = open(write(&[], Codec::None), &columns()).expect("opens");
    assert_eq!((reader.rows(), reader.keys()), (0, Ok(Vec::new())));
}

#[test]
fn damage_is_an_error_or_other_values_but_never_a_panic() {
    let whole = write(&[batch(0..12, 90)], Codec::Zstd1);
    let everything: Vec<usize> = (0..12).collect();
    for cut in (0..whole.len()).step_by(whole.len() / 40) {
        assert!(open(whole[..cut].to_vec(), &columns()).is_err(), "cut at {cut}");
    }
    for at in (0..whole.len()).step_by(whole.len() / 400) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        if let Ok(reader) = open(damaged, &columns()) {
            let _ = reader.keys();
            let _ = reader.fetch(&everything, &BufferPool::new(2));
        }
    }
}

#[test]
fn an_output_that_fails_is_an_error() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = ShardWriter::new(Full(1000), &columns(), Codec::None).expect("begins");
    let written = writer.write(&batch(0..5, 90)).and_then(|()| writer.finish().map(|_| ()));
    assert!(written.is_err());
}
