//! Progress of a build: rows, rate, time left; on a terminal only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::console::Console;
use crate::exec::Progress;

/// A bar that follows a run until it is dropped.
pub struct Bar {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// Follows a run over that many rows; shows nothing when nobody watches.
    pub fn follow(console: &Console, progress: &Arc<Progress>, rows: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        if !console.is_terminal() {
            return Self { stop, thread: None };
        }
        let (watched, stopped) = (Arc::clone(progress), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::new(rows);
            let template = "{bar:30} {human_pos}/{human_len} rows  {per_sec}  {eta} left  {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            while !stopped.load(Ordering::Relaxed) {
                bar.set_position(watched.rows());
                let bad = watched.bad_rows();
                if bad > 0 {
                    bar.set_message(format!("{bad} bad"));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
