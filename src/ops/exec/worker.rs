//! A started command: batches go in on one thread and come out on another, so that neither side waits for ever.

use std::io::BufWriter;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::types::canonical::{output_schema, to_output};
use crate::types::{Batch, NamedColumn, RowKey};
use crate::world::process::Process;

/// A command at work.
pub struct Worker {
    process: Process,
    batches: SyncSender<RecordBatch>,
    answers: Receiver<Result<RecordBatch, String>>,
    columns: Vec<NamedColumn>,
}

impl Worker {
    /// Starts a command that reads those columns.
    pub fn start(command: &[String], folder: &Path, columns: &[NamedColumn]) -> std::io::Result<Self> {
        let (process, input, output) = Process::start(command, folder)?;
        let (batches, waiting) = sync_channel::<RecordBatch>(1);
        let (answer, answers) = sync_channel(1);
        let schema = output_schema(columns);
        std::thread::spawn(move || {
            // A command that has gone is told of by what it wrote, or didn't.
            let Ok(mut writer) = StreamWriter::try_new(BufWriter::new(input), &schema) else { return };
            if writer.flush().is_err() {
                return;
            }
            while let Ok(batch) = waiting.recv() {
                if writer.write(&batch).and_then(|()| writer.flush()).is_err() {
                    return;
                }
            }
            let _ = writer.finish();
        });
        std::thread::spawn(move || {
            let mut reader = match StreamReader::try_new(output, None) {
                Ok(reader) => reader,
                Err(error) => {
                    let _ = answer.send(Err(format!("wrote no Arrow stream ({error})")));
                    return;
                }
            };
            loop {
                let next = match reader.next() {
                    Some(Ok(batch)) => Ok(batch),
                    Some(Err(error)) => Err(format!("wrote a damaged Arrow stream ({error})")),
                    None => Err("ended its stream before its input ended".to_owned()),
                };
                let last = next.is_err();
                if answer.send(next).is_err() || last {
                    return;
                }
            }
        });
        Ok(Self { process, batches, answers, columns: columns.to_vec() })
    }

    /// What the command makes of a batch.
    ///
    /// # Errors
    /// Why there is no answer, in words that go on after the command's name.
    pub fn ask(&mut self, inputs: &[ArrayRef], timeout: Duration) -> Result<RecordBatch, String> {
        let rows = inputs.first().map_or(0, Array::len);
        let batch = Batch { keys: vec![RowKey([0; 16]); rows], columns: inputs.to_vec() };
        let batch = to_output(&batch, &self.columns, &output_schema(&self.columns))?;
        match self.answers.try_recv() {
            Ok(Ok(_)) => return Err("gave more batches than it got".to_owned()),
            Ok(Err(what)) => return Err(what),
            Err(_) => {}
        }
        if self.batches.send(batch).is_err() {
            // Why is told by its answer, if it gave one.
            return match self.answers.recv_timeout(timeout) {
                Ok(Err(what)) => Err(what),
                _ => Err("takes no more batches".to_owned()),
            };
        }
        match self.answers.recv_timeout(timeout) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("gave no answer within {} s (does it flush after each batch?)", timeout.as_secs_f64()))
            }
            Err(RecvTimeoutError::Disconnected) => Err("gave no answer".to_owned()),
        }
    }

    /// Ends it; says how it ended and what it said last.
    pub fn end(mut self) -> String {
        self.process.end()
    }
}
