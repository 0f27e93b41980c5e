//! Two commits in a real repository: whether they make the same change, whether a reviewer was shown all of it, and what a
//! commit changes since it left its branch.

use inspect::verdict::{Comparison, GitError, Patches};
use message_schema::id::CommitSha;

use crate::sh::sh;

/// What every script begins with: `main` has a file of twelve lines, and `work` leaves it there.
const BEGIN: &str = r#"
git init -q -b main .; seq 12 > text; git add -A; git commit -qm 1; git checkout -qb work
commit() { git add -A; git commit -qm x --allow-empty; }
# Changes a line of the file.
line() { sed -i "$1s/.*/$2/" text; commit; }
# Commits something on `main`, and leaves the tree as it is now there.
main() { git checkout -q main; eval "$1"; git checkout -q work; git reset -q --hard main; }
was() { git tag was; }
is() { git tag is; }
"#;

/// A repository after a script, and the commits that its tags name.
struct Repository(tempfile::TempDir);

impl Repository {
    fn after(script: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        sh(directory.path(), &format!("{BEGIN}\n{script}"));
        Self(directory)
    }

    fn commit(&self, name: &str) -> CommitSha {
        let found = sh(
            self.0.path(),
            &format!("git rev-parse -q --verify {name} || echo {name}"),
        );
        CommitSha::new(found).expect("a commit")
    }

    fn patches(&self, base: &str) -> Patches {
        Patches {
            directory: self.0.path().to_owned(),
            base: base.to_owned(),
        }
    }

    /// Writes names in place of commits.
    fn named(&self, mut text: String) -> String {
        for name in ["was", "is", "main"] {
            text = text.replace(self.commit(name).as_str(), name);
        }
        text.replace(&self.0.path().display().to_string(), "DIR")
    }

    fn compared(&self, was: &CommitSha, is: &CommitSha, base: &str) -> String {
        self.named(match self.patches(base).compare(was, is) {
            Ok(Comparison::Itself) => "itself".to_owned(),
            Ok(Comparison::Same { .. }) => "same".to_owned(),
            Ok(Comparison::Void { why, fetch }) => match fetch {
                Some(fetch) => format!("{why}; git {fetch}"),
                None => why,
            },
            Err(error) => format!("error: {error}"),
        })
    }
}

#[test]
fn only_what_git_shows_as_the_same_change_is_the_same() {
    for (script, expected) in [
        ("line 2 TWO; was; is", "itself"),
        // Another base, another place in the file, several commits in place of one.
        (
            "line 2 TWO; was; main 'echo > other; commit'; line 2 TWO; is",
            "same",
        ),
        (
            "line 10 TEN; was; main 'sed -i 1i0 text; commit'; line 11 TEN; is",
            "same",
        ),
        (
            "line 2 TWO; line 11 ELEVEN; was; git reset -q --soft main; commit; is",
            "same",
        ),
        (
            "printf 'a\\000b' > image; commit; was; main 'echo > other; commit'; printf 'a\\000b' > image; commit; is",
            "same",
        ),
        (
            "chmod +x text; commit; was; main 'line 3 THREE'; chmod +x text; commit; is",
            "same",
        ),
        // Other lines, other blanks, other bytes, another mode, a file more, a file less.
        (
            "line 2 TWO; was; git reset -q --hard main; line 2 2.; is",
            "is does not make the change of was: they differ in text",
        ),
        (
            "line 2 'a b'; was; git reset -q --hard main; line 2 'a  b'; is",
            "is does not make the change of was: they differ in text",
        ),
        (
            "printf 'a\\000b' > image; commit; was; git reset -q --hard main; printf 'a\\000c' > image; commit; is",
            "is does not make the change of was: they differ in image",
        ),
        (
            "line 2 TWO; was; chmod +x text; commit; is",
            "is does not make the change of was: they differ in text",
        ),
        (
            "line 2 TWO; was; echo > 'a b'; commit; is",
            "is does not make the change of was: they differ in a b",
        ),
        (
            "line 2 TWO; echo > more; commit; was; git rm -q more; commit; is",
            "is does not make the change of was: they differ in more",
        ),
        (
            "was; for name in a b c d e; do echo > $name; done; commit; is; git tag -f was is~1; git reset -q --hard main; line 2 TWO; git tag -f was",
            "is does not make the change of was: they differ in text, a, b and 3 more",
        ),
        (
            "line 1 x; was; git reset -q --hard main; for name in a b; do echo > $name; done; commit; is",
            "is does not make the change of was: they differ in text, a, b",
        ),
        // Equal lines that land where they mean something else.
        (
            "printf '%s\\n' a x b x c > twice; commit; git branch -f main; sed -i '2a new' twice; commit; was; git reset -q --hard main; sed -i '4a new' twice; commit; is",
            "is does not make the change of was: they differ in twice",
        ),
        (
            "echo '@@ -1 +1 @@' > hunk; echo 'index 1..2' >> hunk; commit; was; main 'echo > other; commit'; echo '@@ -1 +1 @@' > hunk; echo 'index 1..3' >> hunk; commit; is",
            "is does not make the change of was: they differ in hunk",
        ),
        // Nothing to compare.
        ("was; commit; is", "was changes nothing against main"),
        (
            "line 2 TWO; was; main ''; commit; is",
            "is changes nothing against main",
        ),
        (
            "git checkout -q --orphan alone; commit; was; is; commit; git tag -f is",
            "was and main have no common commit in the clone; git fetch --unshallow origin",
        ),
        (
            "line 1 a; git checkout -q main; line 9 b; git merge -q work; git checkout -q work; git merge -q main~1 2> no; git merge-base --all main work > no; line 2 c; was; line 3 d; is",
            "was and main have several merge bases",
        ),
    ] {
        let repository = Repository::after(script);
        let [was, is] = ["was", "is"].map(|name| repository.commit(name));
        assert_eq!(repository.compared(&was, &is, "main"), expected, "{script}");
    }
}

#[test]
fn a_commit_or_a_branch_that_is_not_there_is_named_with_what_brings_it() {
    let repository = Repository::after("line 2 TWO; was; line 3 THREE; is");
    let [was, is] = ["was", "is"].map(|name| repository.commit(name));
    let short = CommitSha::new(&was.as_str()[..9]).expect("a commit");
    assert_eq!(repository.compared(&was, &short, "main"), "itself");
    let nowhere = CommitSha::new("0".repeat(40)).expect("a commit");
    let few = CommitSha::new("0123456").expect("a commit");
    for (was, is, base, expected) in [
        (
            &nowhere,
            &is,
            "main",
            format!(
                "{nowhere} is not in the clone, so its change cannot be compared; git fetch origin {nowhere}"
            ),
        ),
        (
            &was,
            &few,
            "main",
            format!(
                "{few} is not in the clone, or several commits begin so, so its change cannot be compared; git fetch origin {few}"
            ),
        ),
        (
            &was,
            &is,
            "nowhere",
            "error: nowhere is not a commit of the repository in DIR".to_owned(),
        ),
    ] {
        assert_eq!(repository.compared(was, is, base), expected);
    }
}

#[test]
fn a_change_that_was_shown_in_part_hides_the_rest() {
    let repository = Repository::after("line 2 TWO; was; echo > more; commit; is");
    let [main, was, is] = ["main", "was", "is"].map(|name| repository.commit(name));
    let nowhere = CommitSha::new("0".repeat(40)).expect("a commit");
    let hidden = |from: &CommitSha, to: &CommitSha| {
        let hidden = repository.patches("main").hidden(from, to).expect("git");
        hidden.map(|why| repository.named(why))
    };
    assert_eq!(hidden(&main, &is), None);
    assert_eq!(
        hidden(&was, &is).as_deref(),
        Some(
            "the request shows the change since was (1 files), but merging into main brings the one since main (2 files)"
        )
    );
    assert_eq!(
        hidden(&nowhere, &is),
        Some(format!(
            "the change from {nowhere} to is, which the request names, is not in the clone"
        ))
    );
    let repository = Repository::after(
        "git checkout -q main; commit; git tag was main; git branch -f work main~1; git checkout -q work; line 2 TWO; is",
    );
    let [was, is] = ["was", "is"].map(|name| repository.commit(name));
    let other_base = repository.patches("main").hidden(&was, &is).expect("git");
    assert_eq!(other_base, None, "another commit with the same files");
}

#[test]
fn what_a_commit_changes_is_counted_since_it_left_the_branch() {
    let repository = Repository::after(
        "line 2 TWO; echo > more; commit; is; git checkout -q main; line 9 NINE; was; git checkout -q --orphan alone; commit; git tag alone",
    );
    let changes = |name: &str| repository.patches("main").changes(&repository.commit(name));
    let files = |name: &str| {
        let changes = changes(name).expect("git");
        changes.map(|changes| {
            changes
                .files
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(
        files("is"),
        Some(vec!["more".to_owned(), "text".to_owned()])
    );
    assert_eq!(files("was"), None, "the branch has it");
    for (name, expected) in [
        (
            "alone",
            format!(
                "{} and main have no single merge base",
                repository.commit("alone")
            ),
        ),
        (
            "0123456",
            "0123456 is not a commit of the repository in DIR".to_owned(),
        ),
    ] {
        let error: GitError = changes(name).expect_err(name);
        let directory = repository.0.path().display().to_string();
        assert_eq!(error.to_string().replace(&directory, "DIR"), expected);
    }
}
