//! Units as people write and read them: bytes, seconds, rates.

/// Reads `"150 GB"`, `"64MiB"`, `"12345"` as a number of bytes (kB, MB, GB, TB are powers of 1000; KiB, ... of 1024).
///
/// # Errors
/// Says what was expected when the text is not a size.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        "tib" => 1_099_511_627_776.0,
        other => return Err(format!("unknown unit `{other}`: expected B, kB, MB, GB, TB, KiB, MiB, GiB or TiB")),
    };
    let number: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a size: expected a number and a unit, such as \"150 GB\""))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is never negative")]
    Ok((number * factor).round() as u64)
}

/// A byte count with three significant digits and a decimal unit, e.g. `1.54 GB`.
#[must_use]
pub fn show_bytes(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes;
    let mut unit = 0;
    while value.abs() >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{} {}", three_digits(value), units[unit]) }
}

/// A duration, e.g. `850 ms`, `12.3 s`, `4 min 05 s`, `2 h 31 min`.
#[must_use]
pub fn show_seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "for ever".to_owned();
    }
    if seconds < 1e-3 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{} ms", three_digits(seconds * 1e3))
    } else if seconds < 100.0 {
        format!("{} s", three_digits(seconds))
    } else if seconds < 6000.0 {
        format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), (seconds % 60.0).floor())
    } else {
        format!("{:.0} h {:02.0} min", (seconds / 3600.0).floor(), ((seconds / 60.0) % 60.0).floor())
    }
}

/// A count per second with three significant digits, e.g. `1,230`, `47.5`.
#[must_use]
pub fn show_rate(rate: f64) -> String {
    if rate < 999.5 {
        return three_digits(rate);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let rounded = rate.round() as u64;
    show_count(rounded)
}

/// A whole number with thousands separated by commas.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn three_digits(value: f64) -> String {
    let digits = if value.abs() >= 99.95 {
        0
    } else if value.abs() >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!(parse_bytes("150 GB"), Ok(150_000_000_000));
        assert_eq!(parse_bytes("64MiB"), Ok(67_108_864));
        assert_eq!(parse_bytes("1.5kb"), Ok(1500));
        assert!(parse_bytes("many").is_err());
        assert!(parse_bytes("3 parsecs").unwrap_err().contains("unknown unit"));
    }

    #[test]
    fn quantities_show_three_digits() {
        assert_eq!(show_bytes(999.0), "999 B");
        assert_eq!(show_bytes(1_540_000_000.0), "1.54 GB");
        assert_eq!(show_seconds(0.85), "850 ms");
        assert_eq!(show_seconds(245.0), "4 min 05 s");
        assert_eq!(show_rate(1234.4), "1,234");
        assert_eq!(show_count(1_000_000), "1,000,000");
    }
}
