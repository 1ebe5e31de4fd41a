//! Fingerprints of programs: what the stored bytes depend on, and nothing else.

use crate::types::{Fingerprint, FingerprintBuilder};

use super::program::Program;

impl Program {
    /// The fingerprint of what this program makes: op, version and arguments of every step, and how they are wired.
    ///
    /// Names of steps and of inner columns are left out where they change no byte: a step's name counts only if the op
    /// is random, a column's name only if it comes out of the program. Settings such as threads or batch sizes are no
    /// part of a program.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut made: Vec<Fingerprint> = self
            .input_columns()
            .iter()
            .map(|column| {
                FingerprintBuilder::new("input").text(&column.name).text(&column.column_type.to_string()).finish()
            })
            .collect();
        for call in &self.calls {
            let mut builder = FingerprintBuilder::new("call");
            builder.text(&call.op).number(u64::from(call.version));
            for (name, value) in &call.args.0 {
                builder.text(name).text(&value.to_string());
            }
            if crate::ops::find(&call.op).is_some_and(|op| op.info().random) {
                builder.text(&call.step).number(self.seed);
            }
            for input in &call.inputs {
                builder.fingerprint(made[*input]);
            }
            made.push(builder.finish());
        }
        let mut builder = FingerprintBuilder::new("program");
        for output in &self.outputs {
            let column = &self.columns[*output];
            builder.text(&column.name).text(&column.column_type.to_string()).fingerprint(made[*output]);
        }
        builder.finish()
    }
}
