//! `settled-VERSION-TRIPLE.tar.gz`: an archive to unpack and run.

use super::stage::Stage;
use super::{VERSION, copy, files};

/// Returns the name of an archive without its extension.
pub(super) fn name(stage: &Stage) -> String {
    format!("settled-{VERSION}-{}", stage.platform.triple)
}

/// Packs the folder under its name.
pub(super) fn pack(stage: &Stage) -> Result<(), String> {
    let name = name(stage);
    let folder = stage.work.join("archive");
    for path in files(&stage.root)? {
        let below = path.strip_prefix(&stage.root).expect("it is below");
        copy(&path, &folder.join(&name).join(below))?;
    }
    super::pack(stage, "tar", &folder, &(name + ".tar.gz"))
}
