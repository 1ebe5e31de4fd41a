//! Other programs, spoken to on their standard streams.

use std::io::{BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The last bytes of a program's messages that are kept.
const KEPT: usize = 4 << 10;

/// A program that was started: killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    messages: Arc<Mutex<Vec<u8>>>,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl Process {
    /// Starts a command in that folder; gives its standard input and output besides.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(command: &[String], folder: &Path) -> std::io::Result<(Self, ChildStdin, ChildStdout)> {
        let [program, arguments @ ..] = command else {
            return Err(std::io::Error::other("the command is empty"));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            // A group of its own: what the program starts ends with it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let gone = || std::io::Error::other("a standard stream is missing");
        let input = child.stdin.take().ok_or_else(gone)?;
        let output = child.stdout.take().ok_or_else(gone)?;
        let stderr = child.stderr.take().ok_or_else(gone)?;
        let messages = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&messages);
        let listener = std::thread::spawn(move || {
            let mut stderr = BufReader::new(stderr);
            let mut piece = [0; 1024];
            while let Ok(count) = stderr.read(&mut piece) {
                if count == 0 {
                    return;
                }
                let mut kept = heard.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&piece[..count]);
                let excess = kept.len().saturating_sub(KEPT);
                kept.drain(..excess);
            }
        });
        Ok((Self { child, messages, listener: Some(listener) }, input, output))
    }

    /// Ends the program, if it runs, and says how it ended and what it said last.
    pub fn end(&mut self) -> String {
        // One that has closed its streams is about to end: how, is worth a moment.
        let deadline = Instant::now() + Duration::from_millis(300);
        let mut before = self.child.try_wait().ok().flatten();
        while before.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            before = self.child.try_wait().ok().flatten();
        }
        self.kill();
        if let Some(listener) = self.listener.take() {
            // What it said last may still be under way; one that has left a child behind is not waited for.
            let deadline = Instant::now() + Duration::from_millis(300);
            while !listener.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let said = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let how = match before {
            Some(status) => format!("it ended ({status})"),
            None => "it was still running and was stopped".to_owned(),
        };
        if said.is_empty() { format!("{how} and said nothing") } else { format!("{how} and said:\n{said}") }
    }
}

impl Process {
    fn kill(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
