//! The report of a soak, as text.

use std::collections::BTreeMap;
use std::fmt;

use super::{Report, noticed};

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = &self.ended;
        writeln!(to, "{}\n", self.judgement)?;
        writeln!(to, "before the first message: {}", self.before)?;
        writeln!(to, "at rest after the last:   {}", self.after)?;
        writeln!(to, "started again on the same: {}", self.restarted)?;
        let (kib, handles) = noticed(&self.samples);
        writeln!(
            to,
            "{} looks; noticed would have been an even loss of {kib} KiB or of {handles} handles\n",
            self.samples.len()
        )?;
        let reviews: usize = ended.reviews.values().sum();
        match self.drained_in {
            Some(took) => writeln!(
                to,
                "{reviews} reviews ended, the last {:.0} s after no more were opened:",
                took.as_secs_f64()
            )?,
            None => writeln!(to, "{reviews} reviews, and not all of them ended:")?,
        }
        lines(to, &ended.reviews)?;
        writeln!(
            to,
            "the slowest request was open {} ms longer than its seconds",
            ended.latest_ms
        )?;
        writeln!(to, "\nrecords of the ledger:")?;
        lines(to, &ended.records)?;
        writeln!(to, "refused:")?;
        lines(to, &ended.refused)?;
        writeln!(to, "commands started:")?;
        lines(to, &ended.starts)?;
        self.wrong
            .iter()
            .try_for_each(|what| writeln!(to, "wrong: {what}"))?;
        if let Some(directory) = &self.kept {
            writeln!(to, "its workspace is kept in {}", directory.display())?;
        }
        write!(to, "{} wrong", self.wrong.len())
    }
}

fn lines(to: &mut fmt::Formatter<'_>, counts: &BTreeMap<String, usize>) -> fmt::Result {
    counts
        .iter()
        .try_for_each(|(name, count)| writeln!(to, "  {count:6} {name}"))
}
