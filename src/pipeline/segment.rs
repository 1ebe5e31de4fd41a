//! Segments: chains of tensor ops that run row by row without materialising what lies between.

use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::Bytes;

use crate::ops::{Elementwise, Kernel, PixelPass, RowContext, RowOut, RowRunner, Selection};
use crate::types::batch::{binary_view, binary_view_of_rows, tensor_array};
use crate::types::random::StreamKey;
use crate::types::{AlignedBuf, BufferPool, ColumnType, DType, RowKey, TensorColumn, TensorType, TensorView};

/// A tensor op that was bound, with what a segment needs to know of its call.
pub struct BoundCall {
    /// The step's name.
    pub step: String,
    /// The column of the keys by which it draws, if that isn't the rows' own.
    pub key: Option<usize>,
    /// The random stream, for a random op.
    pub stream: Option<StreamKey>,
    /// The number of frozen draws.
    pub variants: Option<u32>,
    /// The draw that is made whatever the epoch is.
    pub draw: Option<u32>,
    /// The code.
    pub kernel: Kernel,
    /// The dtype of what the call reads.
    pub reads: DType,
}

/// A chain of calls, each reading only what the one before made.
pub struct Segment {
    output_type: TensorType,
    stages: Vec<Stage>,
    scratch: [AlignedBuf; 2],
}

enum Stage {
    Rows { runner: Box<dyn RowRunner>, step: String, stream: Option<Draws> },
    Pixels { pass: PixelPass, selections: Vec<(String, Option<Draws>)>, maps: Vec<String>, contexts: Vec<RowContext> },
}

/// A row that a step couldn't process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFailure {
    /// Its index in the batch that went in.
    pub row: usize,
    /// The step.
    pub step: String,
    /// Why, in words.
    pub reason: String,
}

impl Segment {
    /// Makes a segment of bound calls, in order. Selections are moved before the maps that they commute with.
    #[must_use]
    pub fn new(calls: Vec<BoundCall>, output_type: TensorType) -> Self {
        let mut stages = Vec::new();
        let mut run = PixelRun::default();
        for call in calls {
            let stream = call.stream.map(|key| Draws { key, variants: call.variants, draw: call.draw });
            match call.kernel {
                Kernel::Select(selection) => {
                    if !run.all_total {
                        run.close(&mut stages);
                    }
                    run.selections.push((call.step, stream, selection));
                }
                Kernel::Elementwise(map) => {
                    run.all_total &= map.is_total(call.reads);
                    run.maps.push((call.step, map));
                }
                Kernel::Rows(kernel) => {
                    run.close(&mut stages);
                    stages.push(Stage::Rows { runner: kernel.runner(), step: call.step, stream });
                }
                // A machine puts no other kernel into a segment.
                _ => {}
            }
        }
        run.close(&mut stages);
        Self { output_type, stages, scratch: [AlignedBuf::new(), AlignedBuf::new()] }
    }

    /// Runs the chain over the rows that are still good.
    ///
    /// # Errors
    /// When the input doesn't have the layout of its type, or a batch is too large for one column.
    #[expect(clippy::too_many_arguments, reason = "the pieces of one batch")]
    pub fn run(
        &mut self,
        input: &ArrayRef,
        input_type: &ColumnType,
        keys: &[RowKey],
        epoch: u64,
        pool: &BufferPool,
        alive: &mut [bool],
        failures: &mut Vec<StepFailure>,
    ) -> Result<ArrayRef, String> {
        let rows = TensorColumn::new(input, input_type)?;
        let mut shape = Vec::new();
        let mut sink = Sink::new(&self.output_type, keys.len(), pool);
        for (row, key) in keys.iter().enumerate() {
            if !alive[row] {
                sink.skip();
                continue;
            }
            rows.shape(row, &mut shape);
            let view = TensorView { dtype: rows.dtype(), shape: &shape, data: rows.data(row) };
            match run_row(&mut self.stages, &mut self.scratch, *key, epoch, view, &mut sink) {
                Ok(()) => {}
                Err((step, reason)) => {
                    alive[row] = false;
                    sink.skip();
                    failures.push(StepFailure { row, step, reason });
                }
            }
        }
        sink.finish()
    }
}

/// A run of selections and maps that becomes one pass.
struct PixelRun {
    selections: Vec<(String, Option<Draws>, Arc<dyn Selection>)>,
    maps: Vec<(String, Arc<dyn Elementwise>)>,
    all_total: bool,
}

impl Default for PixelRun {
    fn default() -> Self {
        Self { selections: Vec::new(), maps: Vec::new(), all_total: true }
    }
}

impl PixelRun {
    fn close(&mut self, stages: &mut Vec<Stage>) {
        let run = std::mem::take(self);
        if run.selections.is_empty() && run.maps.is_empty() {
            return;
        }
        let mut selections = Vec::new();
        let mut kernels = Vec::new();
        for (step, stream, selection) in run.selections {
            selections.push((step, stream));
            kernels.push(selection);
        }
        let (maps, map_kernels) = run.maps.into_iter().unzip();
        stages.push(Stage::Pixels {
            pass: PixelPass::new(kernels, map_kernels),
            selections,
            maps,
            contexts: Vec::new(),
        });
    }
}

/// Where a random step's numbers come from.
#[derive(Debug, Clone, Copy)]
struct Draws {
    key: StreamKey,
    variants: Option<u32>,
    draw: Option<u32>,
}

impl Draws {
    /// The draw that an epoch has: its own, or one of those that are frozen.
    fn of(self, epoch: u64) -> u64 {
        match (self.draw, self.variants) {
            (Some(draw), Some(variants)) => u64::from(draw % variants.max(1)),
            (Some(draw), None) => u64::from(draw),
            (None, Some(variants)) => epoch % u64::from(variants.max(1)),
            (None, None) => epoch,
        }
    }
}

fn context(key: RowKey, epoch: u64, draws: Option<Draws>) -> RowContext {
    RowContext { key, random: draws.map(|draws| draws.key.stream(draws.of(epoch), key)) }
}

fn run_row(
    stages: &mut [Stage],
    [source, target]: &mut [AlignedBuf; 2],
    key: RowKey,
    epoch: u64,
    input: TensorView<'_>,
    sink: &mut Sink<'_>,
) -> Result<(), (String, String)> {
    let last = stages.len().saturating_sub(1);
    let mut shape: Vec<usize> = input.shape.to_vec();
    let mut dtype = input.dtype;
    for (at, stage) in stages.iter_mut().enumerate() {
        let data = if at == 0 { input.data } else { source.as_slice() };
        let view = TensorView { dtype, shape: &shape, data };
        if at == last {
            return sink.write(|out| stage.run(key, epoch, view, out).map(|_| ()));
        }
        let mut out = RowOut::scratch(target, Vec::new());
        dtype = stage.run(key, epoch, view, &mut out)?;
        shape = out.shape;
        std::mem::swap(source, target);
    }
    Ok(())
}

impl Stage {
    /// Runs the stage; gives the dtype that it made.
    fn run(
        &mut self,
        key: RowKey,
        epoch: u64,
        input: TensorView<'_>,
        out: &mut RowOut<'_>,
    ) -> Result<DType, (String, String)> {
        match self {
            Self::Rows { runner, step, stream } => {
                runner.run(&mut context(key, epoch, *stream), input, out).map_err(|reason| (step.clone(), reason))?;
                Ok(out.dtype().unwrap_or(input.dtype))
            }
            Self::Pixels { pass, selections, maps, contexts } => {
                contexts.clear();
                contexts.extend(selections.iter().map(|(_, stream)| context(key, epoch, *stream)));
                pass.run(contexts, input, out).map_err(|failure| {
                    let step = match failure.at.checked_sub(selections.len()) {
                        None => selections[failure.at].0.clone(),
                        Some(at) => maps.get(at).or(maps.last()).cloned().unwrap_or_default(),
                    };
                    (step, failure.reason)
                })?;
                Ok(out.dtype().unwrap_or(input.dtype))
            }
        }
    }
}

/// Collects the rows of an output column.
enum Sink<'p> {
    Fixed {
        tensor: &'p TensorType,
        shape: Vec<usize>,
        row_bytes: usize,
        buffer: crate::types::PooledBuf,
        at: usize,
        rows: usize,
    },
    Ragged {
        tensor: &'p TensorType,
        pool: &'p BufferPool,
        rows: Vec<Bytes>,
        shapes: Vec<i32>,
    },
}

impl<'p> Sink<'p> {
    fn new(tensor: &'p TensorType, rows: usize, pool: &'p BufferPool) -> Self {
        match (tensor.fixed_shape(), tensor.row_bytes()) {
            (Some(shape), Some(row_bytes)) => {
                Self::Fixed { tensor, shape, row_bytes, buffer: pool.take(rows * row_bytes), at: 0, rows }
            }
            _ => Self::Ragged { tensor, pool, rows: Vec::with_capacity(rows), shapes: Vec::new() },
        }
    }

    fn skip(&mut self) {
        match self {
            Self::Fixed { at, .. } => *at += 1,
            Self::Ragged { tensor, rows, shapes, .. } => {
                rows.push(Bytes::new());
                shapes.extend(tensor.shape.iter().map(|_| 0));
            }
        }
    }

    fn write(
        &mut self,
        produce: impl FnOnce(&mut RowOut<'_>) -> Result<(), (String, String)>,
    ) -> Result<(), (String, String)> {
        match self {
            Self::Fixed { shape, row_bytes, buffer, at, .. } => {
                let slot = &mut buffer.as_mut_slice()[*at * *row_bytes..(*at + 1) * *row_bytes];
                produce(&mut RowOut::slot(slot, shape.clone()))?;
                *at += 1;
            }
            Self::Ragged { pool, rows, shapes, .. } => {
                let mut buffer = pool.take(0);
                let mut out = RowOut::scratch(buffer.aligned_mut(), Vec::new());
                produce(&mut out)?;
                shapes.extend(out.shape.iter().map(|extent| i32::try_from(*extent).unwrap_or(i32::MAX)));
                rows.push(buffer.into_bytes());
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef, String> {
        match self {
            Self::Fixed { tensor, row_bytes, buffer, rows, .. } => {
                let data = binary_view(buffer.into_arrow(), std::iter::repeat_n(row_bytes, rows))?;
                tensor_array(tensor, data, Vec::new())
            }
            Self::Ragged { tensor, rows, shapes, .. } => tensor_array(tensor, binary_view_of_rows(rows)?, shapes),
        }
    }
}
