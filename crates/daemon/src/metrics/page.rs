//! Renders the metrics in the text format of Prometheus, 0.0.4.

use std::fmt::{Display, Write as _};

use super::Meter;
use super::histogram::Histogram;

/// A page that is being written. Nothing in it needs escaping, because labels are our own words.
struct Page(String);

impl Meter {
    /// Renders all metrics.
    pub(super) fn page(&self) -> String {
        let mut page = Page(String::new());
        page.head("settled_info", "gauge", "The version that runs; always 1.");
        page.line("settled_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.counters(&mut page);
        self.histograms(&mut page);
        self.gauges(&mut page);
        page.0
    }

    fn counters(&self, page: &mut Page) {
        page.head(
            "settled_messages_accepted_total",
            "counter",
            "Messages accepted, by type.",
        );
        for (kind, count) in &self.accepted {
            page.line("settled_messages_accepted_total", &[("type", kind)], count);
        }
        page.head(
            "settled_messages_refused_total",
            "counter",
            "Messages refused, by code.",
        );
        for (code, count) in &self.refused {
            page.line("settled_messages_refused_total", &[("code", code)], count);
        }
        page.counter(
            "settled_messages_duplicate_total",
            "Messages archived as duplicates.",
            self.duplicates,
        );
        page.counter(
            "settled_events_total",
            "Deadlines, decisions and other events recorded.",
            self.events,
        );
        page.counter(
            "settled_files_delivered_total",
            "Files made in mailboxes.",
            self.delivered,
        );
        page.counter(
            "settled_budgets_spent_total",
            "Reviewers whose turns or seconds ran out.",
            self.budgets_spent,
        );
        page.counter(
            "settled_ledger_failures_total",
            "Commits that failed and that the daemon retries.",
            self.ledger_failures,
        );
        page.head(
            "settled_reviews_ended_total",
            "counter",
            "Reviews that ended, by outcome.",
        );
        for outcome in ["approved", "closed", "escalated"] {
            let count = self.ended.get(outcome).unwrap_or(&0);
            page.line(
                "settled_reviews_ended_total",
                &[("outcome", outcome)],
                count,
            );
        }
        page.head(
            "settled_escalations_total",
            "counter",
            "Reviews escalated to a person, by reason.",
        );
        for (reason, count) in &self.escalated {
            page.line("settled_escalations_total", &[("reason", reason)], count);
        }
    }

    fn histograms(&self, page: &mut Page) {
        page.histogram(
            "settled_review_rounds",
            "The round in which reviews ended.",
            &self.rounds,
        );
        page.histogram(
            "settled_delivery_seconds",
            "From the commit of a message to its delivery.",
            &self.delivery,
        );
        page.histogram(
            "settled_commit_seconds",
            "One write and one sync of the ledger.",
            &self.commit,
        );
        page.histogram(
            "settled_checkpoint_seconds",
            "One sync of delivered files.",
            &self.checkpoint,
        );
        page.histogram(
            "settled_sweep_seconds",
            "One sweep of every outbox.",
            &self.sweep,
        );
    }

    fn gauges(&self, page: &mut Page) {
        let gauges = &self.gauges;
        page.gauge("settled_agents", "Agents with a mailbox.", gauges.agents);
        page.head("settled_reviews", "gauge", "Reviews, by phase.");
        for (phase, count) in &gauges.reviews {
            page.line("settled_reviews", &[("phase", phase)], count);
        }
        page.gauge(
            "settled_files_unjudged",
            "Files in outboxes that wait for judgement.",
            gauges.unjudged,
        );
        page.gauge(
            "settled_files_undelivered",
            "Committed files that wait for delivery or archiving.",
            gauges.undelivered,
        );
        page.gauge(
            "settled_mailboxes_parked",
            "Mailboxes the daemon cannot write to.",
            gauges.parked,
        );
        page.gauge(
            "settled_ledger_bytes",
            "The size of the ledger.",
            gauges.ledger_bytes,
        );
        page.gauge(
            "settled_config_refused",
            "1 if settled.toml was refused and an older one still applies.",
            u8::from(gauges.config_refused),
        );
        if let Some((hosts, sharing_state)) = gauges.hosts {
            page.gauge("settled_hosts", "Hosts that share the ledger.", hosts);
            page.head(
                "settled_shared_ledger",
                "gauge",
                "1 for the state of this host on the shared ledger: in_step, waiting, frozen or stopped.",
            );
            for word in ["in_step", "waiting", "frozen", "stopped"] {
                let labels = [("state", word)];
                page.line(
                    "settled_shared_ledger",
                    &labels,
                    u8::from(word == sharing_state),
                );
            }
        }
    }
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.0 += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{text}\""))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        writeln!(self.0, "{name}{labels} {value}").expect("a text can always be made longer");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.buckets() {
            self.line(&bucket, &[("le", &bound.to_string())], count);
        }
        self.line(&bucket, &[("le", "+Inf")], histogram.count());
        self.line(&format!("{name}_sum"), &[], histogram.sum());
        self.line(&format!("{name}_count"), &[], histogram.count());
    }
}
