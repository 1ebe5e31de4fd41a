//! A fence around libraries that panic on damaged input.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static FENCED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a reader of outside bytes; its panic becomes an error. Only for calls into libraries whose state is thrown
/// away when they fail.
///
/// # Errors
/// What the reader returned, or what it panicked with.
pub fn fenced<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let before = FENCED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    FENCED.set(before);
    result.unwrap_or_else(|panic| Err(format!("damaged: {}", message(panic.as_ref()))))
}

/// Whether the calling thread is inside of a fence: then a panic is no news for the user.
#[must_use]
pub fn is_fenced() -> bool {
    FENCED.get()
}

/// What a panic says.
#[must_use]
pub fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}
