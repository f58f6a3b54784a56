//! The wire protocol: one JSON object per line, a request and then its answer.
//!
//! ```text
//! {"req":"stats","args":{"target":"top"}}
//! {"errno":0,"args":{"resp":{"nr_dispatches":17}}}
//! ```
//!
//! `req` is "stats" or "stats_meta". In a request, `args` may be missing. On failure, `errno` of
//! the answer is a positive Linux errno, and `resp` is a message.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::Value;

/// Where servers listen and clients connect by default.
pub const DEFAULT_PATH: &str = "/var/run/scx/root/stats";

/// The default target of requests.
pub const DEFAULT_TARGET: &str = "top";

/// The argument that names the target.
pub const TARGET_ARG: &str = "target";

/// The argument that requests totals instead of the changes since the last answer.
pub(crate) const TOTAL_ARG: &str = "total";

/// A request for statistics.
pub(crate) const STATS: &str = "stats";

/// A request for the descriptions of the structs.
pub(crate) const STATS_META: &str = "stats_meta";

/// Arguments of a request.
pub type Args = BTreeMap<String, String>;

/// A request, in one line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) req: String,
    #[serde(default, skip_serializing_if = "Args::is_empty")]
    pub(crate) args: Args,
}

/// An answer, in one line.
#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    pub(crate) errno: i32,
    pub(crate) args: ResponseArgs,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ResponseArgs {
    #[serde(default)]
    pub(crate) resp: Value,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// A Linux errno, positive.
    pub(crate) errno: i32,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(errno: Errno, message: impl Into<String>) -> Self {
        Self {
            errno: errno.raw_os_error(),
            message: message.into(),
        }
    }

    /// A failure with EINVAL.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Errno::INVAL, message)
    }
}

/// The line that answers a request: a payload that is JSON already, or a failure.
pub(crate) fn answer_line(result: Result<Vec<u8>, Failure>) -> Vec<u8> {
    let (errno, payload) = match result {
        Ok(payload) => (0, payload),
        Err(failure) => {
            let text = Value::String(failure.message).to_string();
            (failure.errno, text.into_bytes())
        }
    };
    let mut line = format!("{{\"errno\":{errno},\"args\":{{\"resp\":").into_bytes();
    line.extend(payload);
    line.extend(b"}}\n");
    line
}

/// The line of a request.
pub(crate) fn request_line(name: &str, args: &Args) -> Result<Vec<u8>, serde_json::Error> {
    let request = Request {
        req: name.to_string(),
        args: args.clone(),
    };
    let mut line = serde_json::to_vec(&request)?;
    line.push(b'\n');
    Ok(line)
}

/// Statistics as JSON. A float that is not finite becomes 0.0: JSON cannot express it, and
/// clients do not expect null.
pub(crate) fn to_json<T: Serialize>(stats: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = Vec::new();
    stats.serialize(&mut Serializer::with_formatter(&mut json, Numbers))?;
    Ok(json)
}

/// The compact format, in which floats that are not finite are 0.0 instead of null.
struct Numbers;

impl Formatter for Numbers {
    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        CompactFormatter.write_f64(writer, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines() {
        let line = answer_line(Ok(b"{\"a\":1}".to_vec()));
        assert_eq!(line, b"{\"errno\":0,\"args\":{\"resp\":{\"a\":1}}}\n");
        let line = answer_line(Err(Failure::invalid("a \"b\"\n")));
        let text = "{\"errno\":22,\"args\":{\"resp\":\"a \\\"b\\\"\\n\"}}\n";
        assert_eq!(line, text.as_bytes());
    }

    #[test]
    fn requests_are_lines() {
        let line = request_line("stats", &Args::new()).unwrap();
        assert_eq!(line, b"{\"req\":\"stats\"}\n");
        let args = Args::from([("a".to_string(), "\n".to_string())]);
        let line = request_line("stats", &args).unwrap();
        assert_eq!(line, b"{\"req\":\"stats\",\"args\":{\"a\":\"\\n\"}}\n");
    }

    #[test]
    fn floats_are_numbers() {
        let json = to_json(&[1.5, f64::NAN, f64::INFINITY, -0.0]).unwrap();
        assert_eq!(json, b"[1.5,0.0,0.0,-0.0]");
        assert_eq!(to_json(&0.1f32).unwrap(), b"0.1");
    }
}
