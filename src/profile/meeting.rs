//! Threads that do the same thing at the same time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where threads wait for each other.
pub struct Meeting {
    barrier: Barrier,
    decision: AtomicBool,
}

impl Meeting {
    /// A meeting of that many threads.
    pub fn new(threads: usize) -> Self {
        Self { barrier: Barrier::new(threads.max(1)), decision: AtomicBool::new(false) }
    }

    /// One thread's part: it will meet the others that many times, whatever comes in between.
    pub const fn meets(&self, times: usize) -> Meets<'_> {
        Meets { meeting: self, left: times }
    }
}

/// The meetings that a thread still has to come to. One that fails comes to the rest of them at once, so that nobody
/// waits for it for ever.
pub struct Meets<'m> {
    meeting: &'m Meeting,
    left: usize,
}

impl Meets<'_> {
    /// Waits for the others.
    pub fn meet(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.meeting.barrier.wait();
    }

    /// What one of the threads says, the same for all: two meetings.
    pub fn agree(&mut self, mine: bool) -> bool {
        self.left = self.left.saturating_sub(2);
        if self.meeting.barrier.wait().is_leader() {
            self.meeting.decision.store(mine, Ordering::SeqCst);
        }
        self.meeting.barrier.wait();
        self.meeting.decision.load(Ordering::SeqCst)
    }
}

impl Drop for Meets<'_> {
    fn drop(&mut self) {
        for _ in 0..self.left {
            self.meeting.barrier.wait();
        }
    }
}
