//! What the storage of the data set can do.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::facts::{Measured, StorageFacts};
use crate::diag::{Error, Result};
use crate::world::files;
use crate::world::machine::now;

/// Bytes of the trial file: a few shards' worth.
const TRIAL: usize = 64 << 20;
const PIECE: usize = 1 << 20;
/// Small files that are made to last.
const COMMITS: u32 = 8;

/// Writes a trial file with a sync, drops it from the page cache, and reads it back from the device.
///
/// # Errors
/// When the folder can't be written.
pub fn measure(folder: &Path) -> Result<StorageFacts> {
    let path = folder.join(format!(".profile-{}-storage", std::process::id()));
    let facts = trial(&path).map_err(|error| Error::io("measuring storage with", &path, error));
    files::remove_if_there(&path)?;
    let begun = now();
    for _ in 0..COMMITS {
        files::write_atomic(&path, &[0; 4096])?;
    }
    let commit_seconds = begun.elapsed().as_secs_f64() / f64::from(COMMITS);
    files::remove_if_there(&path)?;
    facts.map(|facts| StorageFacts { commit_seconds, ..facts })
}

fn trial(path: &Path) -> io::Result<StorageFacts> {
    // Bytes that no file system can compress away.
    let mut piece = vec![0_u8; PIECE];
    blake3::Hasher::new().finalize_xof().fill(&mut piece);
    let mut rates = Vec::new();
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    for _ in 0..2 {
        let begun = now();
        for _ in 0..TRIAL / 2 / PIECE {
            file.write_all(&piece)?;
        }
        file.sync_data()?;
        rates.push((TRIAL / 2) as f64 / begun.elapsed().as_secs_f64().max(1e-9));
    }
    drop(file);
    let file = File::open(path)?;
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    let mut file = file;
    let mut reads = Vec::new();
    for _ in 0..2 {
        let begun = now();
        for _ in 0..TRIAL / 2 / PIECE {
            file.read_exact(&mut piece)?;
        }
        reads.push((TRIAL / 2) as f64 / begun.elapsed().as_secs_f64().max(1e-9));
    }
    Ok(StorageFacts {
        write_bytes_per_second: Measured::of(&rates),
        commit_seconds: 0.0,
        read_bytes_per_second: Measured::of(&reads),
    })
}
