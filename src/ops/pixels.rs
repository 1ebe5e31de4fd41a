//! One pass over the pixels of a picture: selections first, then maps, each row while it is in cache.

use std::sync::Arc;

use super::kernel::{Elementwise, RowContext, RowOut, Selection, Window};
use crate::types::{AlignedBuf, DType, TensorView};

/// A sequence of selections followed by a sequence of maps, run as one pass with the scratch memory of one thread.
///
/// Selections commute exactly with maps, because a map sees the value and the channel of an element and not its place;
/// so whoever has them mixed may put the selections first.
pub struct PixelPass {
    selections: Vec<Arc<dyn Selection>>,
    maps: Vec<Arc<dyn Elementwise>>,
    line: AlignedBuf,
    between: [AlignedBuf; 2],
}

/// A failure inside a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassFailure {
    /// The place of the op among the selections, or, after them, among the maps.
    pub at: usize,
    /// Why, in words.
    pub reason: String,
}

impl PixelPass {
    /// A pass of those ops.
    #[must_use]
    pub fn new(selections: Vec<Arc<dyn Selection>>, maps: Vec<Arc<dyn Elementwise>>) -> Self {
        Self { selections, maps, line: AlignedBuf::new(), between: [AlignedBuf::new(), AlignedBuf::new()] }
    }

    /// Processes one row. `contexts` has a context for each selection.
    ///
    /// # Errors
    /// Which op failed, and why.
    pub fn run(
        &mut self,
        contexts: &mut [RowContext],
        input: TensorView<'_>,
        out: &mut RowOut<'_>,
    ) -> Result<(), PassFailure> {
        let (height, width, channels) = match *input.shape {
            [height, width, channels] => (height, width, channels),
            // Without selections a tensor of another rank is one long line.
            [.., channels] if self.selections.is_empty() => {
                (1, input.data.len() / (channels * input.dtype.size()).max(1), channels)
            }
            _ if self.selections.is_empty() => (1, input.data.len() / input.dtype.size(), 1),
            _ => return Err(PassFailure { at: 0, reason: "not a picture".to_owned() }),
        };
        let mut window = Window::whole(height, width);
        for (at, (selection, context)) in self.selections.iter().zip(contexts).enumerate() {
            let inner =
                selection.window(context, window.height, window.width).map_err(|reason| PassFailure { at, reason })?;
            window = window.then(inner);
        }
        let dtype = self.maps.last().map_or(input.dtype, |map| map.dtype());
        let shape = match input.shape.len() {
            3 => vec![window.height, window.width, channels],
            _ => input.shape.to_vec(),
        };
        let maps_from = self.selections.len();
        let out = out.allocate(dtype, &shape).map_err(|reason| PassFailure { at: maps_from, reason })?;
        self.fill(input, channels, width, window, out)
    }

    fn fill(
        &mut self,
        input: TensorView<'_>,
        channels: usize,
        width: usize,
        window: Window,
        out: &mut [u8],
    ) -> Result<(), PassFailure> {
        let pixel = channels * input.dtype.size();
        let from_stride = width * pixel;
        let mut lines = window.height;
        let mut line_bytes = window.width * pixel;
        if window.width == width && !window.mirrored && !window.flipped {
            // Whole lines lie one after another: treat them as one.
            line_bytes *= lines;
            lines = lines.min(1);
        }
        let to_line = out.len().checked_div(lines).unwrap_or(0);
        if to_line == 0 {
            return Ok(());
        }
        for (row, to) in out.chunks_exact_mut(to_line).enumerate() {
            let line = if window.flipped { window.height - 1 - row } else { row };
            let start = (window.top + line) * from_stride + window.left * pixel;
            let from = input
                .data
                .get(start..start + line_bytes)
                .ok_or_else(|| PassFailure { at: 0, reason: "the tensor is shorter than its shape says".to_owned() })?;
            let from = if window.mirrored {
                let reversed = self.line.resize(line_bytes);
                for (to, from) in reversed.chunks_exact_mut(pixel).zip(from.chunks_exact(pixel).rev()) {
                    to.copy_from_slice(from);
                }
                self.line.as_slice()
            } else if is_aligned(from, input.dtype) {
                from
            } else {
                self.line.resize(line_bytes).copy_from_slice(from);
                self.line.as_slice()
            };
            map_line(&self.maps, self.selections.len(), input.dtype, channels, from, &mut self.between, to)?;
        }
        Ok(())
    }
}

fn is_aligned(bytes: &[u8], dtype: DType) -> bool {
    bytes.as_ptr().addr().is_multiple_of(dtype.size())
}

/// Runs the maps over one line, from one scratch line to the other, the last one into `to`.
fn map_line(
    maps: &[Arc<dyn Elementwise>],
    maps_from: usize,
    mut dtype: DType,
    channels: usize,
    from: &[u8],
    between: &mut [AlignedBuf; 2],
    to: &mut [u8],
) -> Result<(), PassFailure> {
    let failed = |at: usize| move |reason: String| PassFailure { at: maps_from + at, reason };
    let Some((last, first)) = maps.split_last() else {
        to.copy_from_slice(from);
        return Ok(());
    };
    let elements = from.len() / dtype.size();
    let [source, target] = between;
    for (at, map) in first.iter().enumerate() {
        let made = target.resize(elements * map.dtype().size());
        let from = if at == 0 { from } else { source.as_slice() };
        map.map(dtype, channels, from, made).map_err(failed(at))?;
        dtype = map.dtype();
        std::mem::swap(source, target);
    }
    let from = if first.is_empty() { from } else { source.as_slice() };
    last.map(dtype, channels, from, to).map_err(failed(first.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::RowKey;

    struct Fixed(Window);

    impl Selection for Fixed {
        fn window(&self, _row: &mut RowContext, _height: usize, _width: usize) -> Result<Window, String> {
            Ok(self.0)
        }
    }

    fn context() -> RowContext {
        RowContext { key: RowKey::of_fragment("a", 0), random: None }
    }

    fn run(windows: &[Window], pixels: &[u8], shape: [usize; 3]) -> Vec<u8> {
        let selections = windows.iter().map(|window| Arc::new(Fixed(*window)) as Arc<dyn Selection>).collect();
        let mut scratch = AlignedBuf::new();
        let mut contexts: Vec<RowContext> = windows.iter().map(|_| context()).collect();
        let mut out = RowOut::scratch(&mut scratch, Vec::new());
        let view = TensorView { dtype: DType::U8, shape: &shape, data: pixels };
        PixelPass::new(selections, Vec::new()).run(&mut contexts, view, &mut out).expect("the windows fit");
        scratch.as_slice().to_vec()
    }

    /// The 3x4 picture with values `10 * row + column`; expected values by reading them off the picture.
    #[test]
    fn windows_compose_as_if_one_after_another() {
        let picture: Vec<u8> = (0..3).flat_map(|row| (0..4).map(move |column| 10 * row + column)).collect();
        let whole = Window::whole(3, 4);
        let crop = Window { top: 1, left: 1, height: 2, width: 2, ..whole };
        let mirror = Window { mirrored: true, ..whole };
        let flip = Window { flipped: true, ..whole };
        assert_eq!(run(&[crop], &picture, [3, 4, 1]), [11, 12, 21, 22]);
        assert_eq!(run(&[mirror], &picture, [3, 4, 1]), [3, 2, 1, 0, 13, 12, 11, 10, 23, 22, 21, 20]);
        assert_eq!(run(&[flip], &picture, [3, 4, 1]), [20, 21, 22, 23, 10, 11, 12, 13, 0, 1, 2, 3]);
        assert_eq!(run(&[mirror, crop], &picture, [3, 4, 1]), [12, 11, 22, 21]);
        assert_eq!(run(&[flip, crop], &picture, [3, 4, 1]), [11, 12, 1, 2]);
        let small_mirror = Window { mirrored: true, ..Window::whole(2, 2) };
        assert_eq!(run(&[crop, small_mirror], &picture, [3, 4, 1]), [12, 11, 22, 21]);
        assert_eq!(run(&[mirror, crop, small_mirror], &picture, [3, 4, 1]), [11, 12, 21, 22]);
    }

    #[test]
    fn mirroring_keeps_the_channels_of_a_pixel_in_order() {
        let mirror = Window { mirrored: true, ..Window::whole(1, 2) };
        assert_eq!(run(&[mirror], &[1, 2, 3, 4, 5, 6], [1, 2, 3]), [4, 5, 6, 1, 2, 3]);
    }
}
