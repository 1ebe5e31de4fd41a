"""compare_stream.py DATASET STREAM: the shards of a data set cut before `image.normalize`, read by pyarrow, against the
stream that parbake made of it."""
import glob, json, sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

dataset, stream = sys.argv[1:]
manifest = json.load(open(f"{dataset}/manifest.json"))
stored = []
for shard in manifest["shards"]:
    table = pq.read_table(f"{dataset}/shards/{shard['id']}.parquet")
    field = table.schema.field("image")
    dtype, shape = field.metadata[b"parbake.dtype"].decode(), json.loads(field.metadata[b"parbake.shape"])
    stored += [
        (np.frombuffer(value.as_py(), dtype).reshape(shape), label.as_py())
        for value, label in zip(table["image"], table["label"])
    ]
reader = pa.ipc.open_stream(open(stream, "rb"))
assert reader.schema.field("image").type == pa.fixed_shape_tensor(pa.float32(), shape), reader.schema
streamed = []
for batch in reader:
    images = batch.column("image").to_numpy_ndarray()
    streamed += list(zip(images, batch.column("label").to_pylist()))
assert len(stored) == len(streamed)
for (pixels, label), (values, streamed_label) in zip(stored, streamed):
    assert pixels.dtype == np.uint8 and label == streamed_label
    expected = pixels.astype(np.float32) / np.float32(127.5) - np.float32(1.0)
    assert np.array_equal(values, expected)
print(len(stored), "rows equal")
