//! The protocol, line by line.

use scx_stats::{Args, Server, Stats};
use serde::{Deserialize, Serialize};

use crate::common::{Counter, Metrics, Place, Raw};

const META: &str = concat!(
    r#"{"errno":0,"args":{"resp":{"Metrics":{"name":"Metrics","top":"true","fields":"#,
    r#"{"nr_cpus":{"datum":"u64"},"#,
    r#""nr_dispatches":{"datum":"u64","user":{"_counter":"true"}}}}}}}"#,
    "\n"
);

fn answer(nr_dispatches: u64) -> String {
    let resp = format!("{{\"nr_dispatches\":{nr_dispatches},\"nr_cpus\":4}}");
    format!("{{\"errno\":0,\"args\":{{\"resp\":{resp}}}}}\n")
}

#[test]
fn statistics_since_the_last_answer() {
    let (place, counter) = (Place::new(), Counter::default());
    let _server = place.builder(&counter).launch().unwrap();
    counter.add(5);
    let mut first = Raw::connect(&place.path);
    // The answer shows that the connection was accepted.
    assert_eq!(first.ask(r#"{"req":"stats_meta"}"#), META);
    counter.add(3);
    assert_eq!(first.ask(r#"{"req":"stats"}"#), answer(3));
    assert_eq!(first.ask(r#"{"req":"stats","args":{}}"#), answer(0));
    counter.add(2);
    let mut second = Raw::connect(&place.path);
    assert_eq!(
        second.ask(r#"{"req":"stats","args":{"target":"top"}}"#),
        answer(0)
    );
    assert_eq!(
        first.ask(r#"{"args":{"target":"top"},"req":"stats"}"#),
        answer(2)
    );
}

#[test]
fn totals_leave_the_baseline_alone() {
    let (place, counter) = (Place::new(), Counter::default());
    let _server = place.builder(&counter).launch().unwrap();
    counter.add(5);
    let mut raw = Raw::connect(&place.path);
    assert_eq!(raw.ask(r#"{"req":"stats"}"#), answer(0));
    counter.add(3);
    assert_eq!(
        raw.ask(r#"{"req":"stats","args":{"total":"true"}}"#),
        answer(8)
    );
    assert_eq!(
        raw.ask(r#"{"req":"stats","args":{"total":"false"}}"#),
        answer(3)
    );
    assert_eq!(
        raw.ask_errno(r#"{"req":"stats","args":{"total":"yes"}}"#),
        22
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    let requests = "{\"req\":\"stats\"}\n{\"req\":\"what\"}\n{\"req\":\"stats_meta\"}\n";
    raw.send(requests.repeat(100));
    for _ in 0..100 {
        assert_eq!(raw.receive(), answer(0));
        assert_eq!(raw.receive_errno(), 22);
        assert_eq!(raw.receive(), META);
    }
}

#[test]
fn requests_in_pieces() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    for byte in "{\"req\":\"stats\"}\r\n {\"req\" : \"stats\", \"more\": [1]}\n".bytes() {
        raw.send([byte]);
    }
    assert_eq!(raw.receive(), answer(0));
    assert_eq!(raw.receive(), answer(0));
}

#[test]
fn a_last_request_before_the_end_is_answered() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    raw.send("{\"req\":\"stats\"}\n{\"req\":\"st");
    raw.0.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(raw.receive(), answer(0));
    assert_eq!(raw.receive(), "");
}

#[test]
fn refusals_name_the_reason() {
    let place = Place::new();
    let _server = place.launch();
    let mut raw = Raw::connect(&place.path);
    let expected = r#"{"errno":22,"args":{"resp":"unknown target \"x\""}}"#;
    let line = raw.ask(r#"{"req":"stats","args":{"target":"x"}}"#);
    assert_eq!(line.trim_end(), expected);
    let expected = r#"{"errno":22,"args":{"resp":"unknown request \"x\""}}"#;
    assert_eq!(raw.ask(r#"{"req":"x"}"#).trim_end(), expected);
}

#[test]
fn several_targets_with_arguments() {
    #[derive(Clone, Debug, Default, Serialize, Deserialize, Stats)]
    struct Samples {
        count: u32,
        all: Vec<f64>,
    }
    let place = Place::new();
    let samples = |args: &Args| -> Result<Samples, Box<dyn std::error::Error + Send + Sync>> {
        let count = args.get("count").ok_or("how many?")?.parse()?;
        Ok(Samples {
            count,
            all: vec![0.5, f64::NAN],
        })
    };
    let server = Server::builder(&place.path).stats("top", Counter::default().source());
    let _server = server.stats("samples", samples).launch().unwrap();
    let mut raw = Raw::connect(&place.path);
    let line = raw.ask(r#"{"req":"stats","args":{"target":"samples","count":"7"}}"#);
    let expected = r#"{"errno":0,"args":{"resp":{"count":7,"all":[0.5,0.0]}}}"#;
    assert_eq!(line.trim_end(), expected);
    let line = raw.ask(r#"{"req":"stats","args":{"target":"samples"}}"#);
    assert_eq!(
        line.trim_end(),
        r#"{"errno":22,"args":{"resp":"how many?"}}"#
    );
    let metas = raw.ask(r#"{"req":"stats_meta"}"#);
    assert!(metas.contains(r#""Samples":{"#) && metas.contains(r#""Metrics":{"#));
    assert_eq!(raw.ask(r#"{"req":"stats"}"#), answer(0));
    assert_eq!(Metrics::meta().name, "Metrics");
}
