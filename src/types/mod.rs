//! The nouns every layer shares: dtypes, columns, tensors, row keys, fingerprints, random streams, units.

pub mod aligned;
pub mod batch;
pub mod canonical;
pub mod codec;
pub mod column;
pub mod digesting;
pub mod dtype;
pub mod fingerprint;
pub mod pool;
pub mod random;
pub mod row_digest;
pub mod row_key;
pub mod units;

pub use aligned::AlignedBuf;
pub use batch::{Batch, TensorColumn, TensorView};
pub use codec::Codec;
pub use column::{ColumnType, Dim, NamedColumn, TensorType};
pub use digesting::Digesting;
pub use dtype::DType;
pub use fingerprint::{Fingerprint, FingerprintBuilder};
pub use pool::{BufferPool, PooledBuf};
pub use random::RandomStream;
pub use row_digest::{RowDigest, row_digests};
pub use row_key::RowKey;
