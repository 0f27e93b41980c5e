//! What the mailroom finds in its way and cannot mend itself: outboxes of the wrong owner, files it may not
//! read, mail that nobody is proven to have sent.

use std::os::unix::fs::MetadataExt as _;

use workspace::troubles::{Kind, Trouble, is_unreadable};

use super::Mailroom;
use crate::unproven;

impl Mailroom {
    /// Tells which outboxes belong to another user than the config says, and forgets what is mended.
    pub(super) fn look_for_troubles(&mut self) {
        let users = self.config.users();
        let layout = self.spool.layout();
        let mut doubtful = Vec::new();
        for (agent, user) in users {
            let path = layout.outbox(agent.as_str());
            let Some(owner) = path
                .symlink_metadata()
                .ok()
                .map(|data| data.uid())
                .filter(|uid| *uid != user)
            else {
                continue;
            };
            let what = format!(
                "this outbox belongs to uid {owner}, and settled.toml says that {agent} is uid {user}: its owner can \
                 remove and withhold what {agent} sends; `settled init --separate-users` mends it"
            );
            doubtful.push(Trouble {
                kind: Kind::OutboxOwner,
                path,
                what,
            });
        }
        let troubles = &mut self.docket.troubles;
        troubles.review(|trouble| match trouble.kind {
            Kind::OutboxOwner => !doubtful.contains(trouble),
            Kind::Unreadable => !is_unreadable(&trouble.path),
            Kind::SenderUnproven => trouble.path.symlink_metadata().is_err(),
        });
        doubtful
            .into_iter()
            .for_each(|trouble| troubles.tell(trouble));
        troubles.keep();
    }

    /// Looks through the inboxes for files that nothing accounts for. For the sweep by time: a file is told
    /// if it is found by two looks, between which its original had the time to come.
    pub fn look_for_unproven(&mut self) {
        let agents = std::sync::Arc::clone(self.docket.agents());
        let mut desk = unproven::Desk {
            proofs: &self.docket.proofs,
            troubles: &mut self.docket.troubles,
        };
        self.unproven
            .look(&agents, &self.spool.view(), self.spool.layout(), &mut desk);
        self.docket.troubles.keep();
    }
}
