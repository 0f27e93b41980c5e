//! A small repository for `pre-commit`: our hooks from the Python wheel instead of compiled ones.

use settled_tests::repository;

use super::VERSION;
use super::stage::Stage;

/// Writes the repository's files; publishing commits them and tags the version.
pub(super) fn write(stage: &Stage) -> Result<(), String> {
    let root = stage.out.join("pre-commit-mirror");
    let read = |name: &str| {
        let path = repository().join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    for name in ["pyproject.toml", "README.md"] {
        let text = read(&format!("packaging/pre-commit/{name}"))?;
        super::write(root.join(name), text.replace("@VERSION@", VERSION))?;
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        super::write(root.join(name), read(name)?)?;
    }
    super::write(
        root.join(".pre-commit-hooks.yaml"),
        hooks(&read(".pre-commit-hooks.yaml")?),
    )
}

/// Our hooks, from a Python environment where ours are compiled or found on the `PATH`. Leaves out the hook whose name
/// says that it is from the `PATH`: here it would equal the first.
fn hooks(ours: &str) -> String {
    let hooks = &ours[ours.find("- id:").expect("our manifest has hooks")..];
    let hooks = hooks.split_inclusive("\n\n").filter(|hook| {
        let id = hook.lines().next().unwrap_or_default();
        id != "- id: validate-message-system"
    });
    let text: String = hooks.collect();
    text.replace("language: rust", "language: python")
        .replace("language: system", "language: python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hooks_of_the_mirror_need_python_and_nothing_on_the_path() {
        let ours = settled_tests::read(repository().join(".pre-commit-hooks.yaml"));
        let text = hooks(&ours);
        assert!(text.contains("- id: validate-message\n"), "{text}");
        assert!(text.contains("- id: validate-message-staged\n"), "{text}");
        assert_eq!(text.matches("language: python\n").count(), 2, "{text}");
        assert_eq!(text.matches("- id:").count(), 2, "{text}");
    }
}
