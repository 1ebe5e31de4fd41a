//! parbake
fn main() {}
