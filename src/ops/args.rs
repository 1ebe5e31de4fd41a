//! Parameters of ops: what each accepts, and the checked values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ArgValue {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(String),
    /// Several values.
    List(Vec<ArgValue>),
}

impl ArgValue {
    /// The kind of value, in words.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
        }
    }
}

impl std::fmt::Display for ArgValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArgKind {
    /// `true` or `false`.
    Bool,
    /// A whole number in that closed range.
    Int(i64, i64),
    /// A number in that closed range; a whole number is read as one.
    Float(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// `[height, width]` in pixels, both at least 1; one whole number stands for a square.
    Size,
    /// One number, or one for each channel; kept as a list.
    PerChannel,
    /// A list of strings.
    Words,
    /// Any string.
    Text,
    /// A string or a list of strings; kept as a list.
    Names,
}

impl ArgKind {
    /// What is accepted, in words.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Int(low, high) if high == i64::MAX => format!("a whole number of at least {low}"),
            Self::Int(low, high) => format!("a whole number from {low} to {high}"),
            Self::Float(low, high) if low == f64::NEG_INFINITY && high == f64::INFINITY => "a number".to_owned(),
            Self::Float(low, high) => format!("a number from {low} to {high}"),
            Self::Word(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Size => "`[height, width]` in pixels, or one number for a square".to_owned(),
            Self::PerChannel => "a number, or a list with a number for each channel".to_owned(),
            Self::Words => "a list of strings".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Names => "a string or a list of strings".to_owned(),
        }
    }

    /// Brings a value into its canonical form (`224` as a size becomes `[224, 224]`, `1` as a float `1.0`).
    ///
    /// # Errors
    /// Says what was expected and what was found.
    pub fn check(self, value: &ArgValue) -> Result<ArgValue, String> {
        let wrong = || format!("expected {}, found {} ({value})", self.expected(), value.kind());
        match (self, value) {
            (Self::Bool, ArgValue::Bool(_)) | (Self::Text, ArgValue::Text(_)) => Ok(value.clone()),
            (Self::Int(low, high), ArgValue::Int(number)) if (low..=high).contains(number) => Ok(value.clone()),
            (Self::Float(low, high), _) => {
                let number = as_float(value).ok_or_else(wrong)?;
                if number >= low && number <= high { Ok(ArgValue::Float(number)) } else { Err(wrong()) }
            }
            (Self::Word(words), ArgValue::Text(text)) if words.contains(&text.as_str()) => Ok(value.clone()),
            (Self::Word(words), ArgValue::Text(text)) => Err(match crate::diag::nearest(text, words.iter().copied()) {
                Some(word) => format!("expected {}, found \"{text}\": did you mean \"{word}\"?", self.expected()),
                None => wrong(),
            }),
            (Self::Size, ArgValue::Int(side)) if is_side(*side) => {
                Ok(ArgValue::List(vec![value.clone(), value.clone()]))
            }
            (Self::Size, ArgValue::List(sides)) => match sides.as_slice() {
                [ArgValue::Int(height), ArgValue::Int(width)] if is_side(*height) && is_side(*width) => {
                    Ok(value.clone())
                }
                _ => Err(wrong()),
            },
            (Self::PerChannel, ArgValue::List(values)) if (1..=4).contains(&values.len()) => values
                .iter()
                .map(|value| as_float(value).map(ArgValue::Float))
                .collect::<Option<_>>()
                .map(ArgValue::List)
                .ok_or_else(wrong),
            (Self::PerChannel, _) => {
                as_float(value).map(|number| ArgValue::List(vec![ArgValue::Float(number)])).ok_or_else(wrong)
            }
            (Self::Words | Self::Names, ArgValue::List(values))
                if values.iter().all(|v| matches!(v, ArgValue::Text(_))) =>
            {
                Ok(value.clone())
            }
            (Self::Names, ArgValue::Text(_)) => Ok(ArgValue::List(vec![value.clone()])),
            _ => Err(wrong()),
        }
    }
}

/// The largest side of a picture: 65,535 is what JPEG, the most common format, can say.
fn is_side(side: i64) -> bool {
    (1..=65_535).contains(&side)
}
fn as_float(value: &ArgValue) -> Option<f64> {
    match value {
        ArgValue::Int(number) => Some(*number as f64),
        ArgValue::Float(number) if number.is_finite() => Some(*number),
        _ => None,
    }
}

/// One parameter of an op.
#[derive(Debug, Clone, Copy)]
pub struct ParamSpec {
    /// Its key in the step.
    pub name: &'static str,
    /// What it accepts.
    pub kind: ArgKind,
    /// The value when it isn't given, as TOML; none: it may stay away (`required` false) or must be given.
    pub default: Option<&'static str>,
    /// Whether it must be given.
    pub required: bool,
    /// What it does, with its unit.
    pub doc: &'static str,
}

/// Checked arguments of one step, in canonical form, defaults filled in, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Args(pub BTreeMap<String, ArgValue>);

impl Args {
    /// The value of that parameter, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ArgValue> {
        self.0.get(name)
    }

    /// A boolean; false when it isn't there.
    #[must_use]
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Some(ArgValue::Bool(true)))
    }

    /// A whole number.
    #[must_use]
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            ArgValue::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn float(&self, name: &str) -> Option<f64> {
        as_float(self.get(name)?)
    }

    /// Text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            ArgValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// `[height, width]`.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<(usize, usize)> {
        match self.get(name)? {
            ArgValue::List(sides) => match sides.as_slice() {
                [ArgValue::Int(height), ArgValue::Int(width)] => {
                    Some((usize::try_from(*height).ok()?, usize::try_from(*width).ok()?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// A number for each channel.
    #[must_use]
    pub fn floats(&self, name: &str) -> Option<Vec<f64>> {
        match self.get(name)? {
            ArgValue::List(values) => values.iter().map(as_float).collect(),
            _ => None,
        }
    }

    /// A list of strings.
    #[must_use]
    pub fn words(&self, name: &str) -> Option<Vec<String>> {
        match self.get(name)? {
            ArgValue::List(values) => values
                .iter()
                .map(|value| match value {
                    ArgValue::Text(text) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        }
    }
}
