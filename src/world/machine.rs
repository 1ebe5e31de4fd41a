//! Clocks, cores and memory.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Logical cores that this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A monotonic instant.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn unix_milliseconds() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// CPU seconds that the calling thread has used.
#[must_use]
pub fn thread_cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU seconds that all threads of this process have used.
#[must_use]
pub fn process_cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}
fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The largest resident set of this process so far, in bytes; none where the system doesn't say.
#[must_use]
pub fn peak_resident_bytes() -> Option<u64> {
    status_kib("VmHWM:")
}

/// Memory that new work could use without swapping, in bytes; none where the system doesn't say.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    line_kib(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn status_kib(key: &str) -> Option<u64> {
    line_kib(&std::fs::read_to_string("/proc/self/status").ok()?, key)
}

fn line_kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    let kib: u64 = line[key.len()..].trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

/// An environment variable.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
