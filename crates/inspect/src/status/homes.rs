//! Agents of a shared ledger whose mail no host handles, and files that wait where their agent no longer lives.

use message_schema::id::AgentName;
use message_schema::line::counted;
use spool::dirs;
use workspace::remote_agent::RemoteAgent;

use super::WorkspaceStatus;
use super::fix::{FixCommand, FixCommands};
use super::problems::{Problem, ProblemKind};

impl WorkspaceStatus {
    /// The reason this host does not handle the agent's mail; none if it does.
    pub(super) fn away(&self, agent: &AgentName) -> Option<RemoteAgent> {
        RemoteAgent::among(&self.index.fleet, self.host.as_ref()?, agent)
    }

    /// The reason no host handles the agent's mail, with the command that makes this one do so.
    pub(super) fn homeless(
        &self,
        agent: &AgentName,
        commands: &FixCommands<'_>,
    ) -> Option<(String, FixCommand)> {
        let away = self.away(agent).filter(|away| away.elsewhere().is_none())?;
        let why = format!("{away}: no host reads its outbox, and messages to it wait");
        let fix = commands.operator(&away.command(), "makes this host its home");
        Some((why, fix))
    }

    /// Agents whose mail no host handles, and outboxes that are no longer read here.
    pub(super) fn home_problems(&self, commands: &FixCommands<'_>) -> Vec<Problem> {
        let problem = |kind, what, fix| Problem {
            kind,
            what,
            since: None,
            review: None,
            path: None,
            fix,
        };
        let mut agents: Vec<&AgentName> = self.index.fleet.agents().chain(&self.agents).collect();
        agents.sort_unstable();
        agents.dedup();
        let homeless = agents
            .into_iter()
            .filter_map(|agent| self.homeless(agent, commands))
            .map(|(what, fix)| problem(ProblemKind::NoHome, what, fix));
        let left = self.unjudged.counts.iter().filter_map(|(agent, count)| {
            let away = self.away(agent)?;
            let home = away.elsewhere()?;
            let outbox = dirs::of_agent(agent.as_str(), dirs::OUTBOX);
            let files = counted(*count, "file", "files");
            let what = format!(
                "{away}: nobody sends the {files} in its outbox here; move to {outbox} on host {home}"
            );
            let fix = commands.operator(&away.command(), "moves its home back here, where they are sent");
            Some(Problem {
                path: Some(outbox.into()),
                ..problem(ProblemKind::MailLeft, what, fix)
            })
        });
        homeless.chain(left).collect()
    }
}
