//! Tests trees of runs in real repositories: they contain only the commit, are removed whatever was done to them, and
//! affect no other worktree of the repository.

#[path = "../../../tests/sh.rs"]
mod sh;

use message_schema::id::CommitSha;
use runner::checkout::{self, Checkout};
use tempfile::TempDir;

use self::sh::sh;

/// A workspace and a repository with one commit, and a tree that is not made yet.
struct Begun {
    place: TempDir,
    checkout: Checkout,
}

impl Begun {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        sh(
            place.path(),
            "mkdir -p room/.settled code; cd code; git init -q -b main .
             mkdir src; echo 1 > src/a.rs; git add -A; git commit -qm 1; echo 2 > src/a.rs",
        );
        let code = place.path().join("code");
        let head = CommitSha::new(sh(&code, "git rev-parse HEAD")).expect("a commit");
        let root = place.path().join("room").canonicalize().expect("a path");
        let checkout = Checkout::of(&root, "01abc", &code, (None, head));
        Self { place, checkout }
    }

    fn left(&self) -> Vec<Checkout> {
        checkout::left(&self.place.path().join("room")).expect("a list")
    }

    /// The number of worktrees that the repository knows.
    fn known(&self) -> usize {
        let list = "git worktree list --porcelain | grep -c ^worktree";
        let count = sh(&self.place.path().join("code"), list);
        count.parse::<usize>().expect("a number") - 1
    }
}

#[test]
fn a_tree_holds_the_commit_and_is_forgotten_when_it_is_removed() {
    let begun = Begun::new();
    assert_eq!(begun.left(), []);
    begun.checkout.make().expect("a tree");
    let tree = &begun.checkout.tree;
    assert_eq!(sh(tree, "cat src/a.rs; git status --porcelain"), "1");
    assert_eq!(
        begun.left().as_slice(),
        std::slice::from_ref(&begun.checkout)
    );
    // What an agent may leave behind, even without write permission.
    sh(
        tree,
        "mkdir -p target/x; echo y > target/x/y; ln -s / outside; chmod 500 target/x; chmod 500 src",
    );
    begun.checkout.remove().expect("a removal");
    assert!(!tree.exists());
    assert_eq!((begun.left(), begun.known()), (Vec::new(), 0));
    begun.checkout.remove().expect("idempotent");
}

#[test]
fn a_removal_that_was_cut_off_is_completed_and_other_worktrees_stay_known() {
    let begun = Begun::new();
    let code = begun.place.path().join("code");
    // Somebody else's worktree, whose disk is not mounted.
    sh(&code, "git worktree add -q ../other; rm -r ../other");
    begun.checkout.make().expect("a tree");
    std::fs::remove_dir_all(&begun.checkout.tree).expect("the tree");
    assert_eq!((begun.left().len(), begun.known()), (1, 2));
    begun.left()[0].remove().expect("a removal");
    assert_eq!((begun.left().len(), begun.known()), (0, 1));

    // Git or a person may have pruned it meanwhile.
    begun.checkout.make().expect("a tree");
    std::fs::remove_dir_all(&begun.checkout.tree).expect("the tree");
    sh(&code, "git worktree prune");
    begun.checkout.remove().expect("a removal");
    assert_eq!((begun.left().len(), begun.known()), (0, 0));
}

#[test]
fn a_live_tree_survives_a_prune_and_a_repository_that_is_gone_holds_nothing_up() {
    let begun = Begun::new();
    let code = begun.place.path().join("code");
    begun.checkout.make().expect("a tree");
    sh(&code, "git worktree prune");
    assert_eq!(sh(&begun.checkout.tree, "git status --porcelain"), "");
    std::fs::remove_dir_all(&code).expect("the repository");
    begun.checkout.remove().expect("a removal");
    assert!(!begun.checkout.tree.exists());
    assert_eq!(begun.left(), []);
}

#[test]
fn a_tree_of_a_commit_that_is_not_there_says_so() {
    let begun = Begun::new();
    let missing = Checkout {
        commit: CommitSha::new("0".repeat(40)).expect("a commit"),
        ..begun.checkout.clone()
    };
    let error = missing.make().expect_err("no such commit").to_string();
    assert!(error.contains("does not have the commit 0000"), "{error}");
    missing.remove().expect("a removal");
    assert_eq!(begun.left(), []);
}

#[test]
fn a_removal_or_a_list_that_fails_says_so() {
    let begun = Begun::new();
    begun.checkout.make().expect("a tree");
    let note = begun.checkout.tree.with_extension("json");
    std::fs::remove_file(&note).expect("its note");
    std::fs::create_dir(&note).expect("a directory in its place");
    assert!(begun.checkout.remove().is_err(), "its note is still there");
    let room = begun.place.path().join("room");
    assert!(checkout::left(&room).is_err(), "a note cannot be read");

    let trees = begun.checkout.tree.parent().expect("a directory");
    std::fs::remove_dir_all(trees).expect("they are ours");
    std::fs::write(trees, "").expect("a file in their place");
    assert!(checkout::left(&room).is_err(), "there is no list");
}

#[test]
fn a_note_that_is_not_of_its_tree_is_removed_and_one_that_is_gone_is_passed_over() {
    let begun = Begun::new();
    begun.checkout.make().expect("a tree");
    let note = begun.checkout.tree.with_extension("json");
    let beside = |name: &str| note.with_file_name(name);
    std::fs::copy(&note, beside("02abc.json")).expect("a note of another tree");
    std::fs::write(beside("03abc.json"), "{\"repo").expect("half a note");
    // It is listed and cannot be read, like one whose run ends between the two.
    std::os::unix::fs::symlink("nowhere", beside("04abc.json")).expect("a link");
    for _ in 0..2 {
        assert_eq!(begun.left(), std::slice::from_ref(&begun.checkout));
    }
    assert!(!beside("02abc.json").exists() && !beside("03abc.json").exists());
}

#[test]
fn what_is_left_out_may_be_a_submodule_and_no_filter_sees_it() {
    let begun = Begun::new();
    let code = begun.place.path().join("code");
    let head = sh(
        &code,
        "echo '* filter=x' > .gitattributes; echo obey > GEMINI.md; git add .gitattributes GEMINI.md
         git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.agents; git commit -qm 2
         git config filter.x.process 'touch ../filtered; false'; git config filter.x.required true
         git rev-parse HEAD",
    );
    let checkout = Checkout {
        commit: CommitSha::new(head).expect("a commit"),
        leave_out: vec![".agents".to_owned(), "GEMINI.md".to_owned()],
        ..begun.checkout
    };
    checkout.make().expect("a tree");
    checkout.leave_out().expect("they are left out");
    let found = sh(&checkout.tree, "ls -A | LC_ALL=C sort");
    assert_eq!(found, ".git\n.gitattributes\nsrc");
    assert!(!begun.place.path().join("filtered").exists());
}

#[test]
fn a_note_that_is_being_written_is_left_alone_and_one_that_was_cut_off_is_removed() {
    let begun = Begun::new();
    let trees = begun.checkout.tree.parent().expect("a directory");
    std::fs::create_dir_all(trees).expect("it is ours");
    let half = begun.checkout.tree.with_extension("note");
    std::fs::write(&half, "{\"repo").expect("it is ours");
    assert_eq!(begun.left(), []);
    assert!(half.exists(), "its writer may be at work");
    let file = std::fs::File::options().write(true).open(&half);
    let an_hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    file.and_then(|file| file.set_modified(an_hour_ago))
        .expect("a file's time can be set");
    assert_eq!(begun.left(), []);
    assert!(!half.exists());
}

#[test]
fn a_commit_whose_files_take_more_than_the_limit_is_not_checked_out() {
    let begun = Begun::new();
    let code = begun.place.path().join("code");
    let commit = |script: &str| {
        let made = format!("{script}; git rev-parse HEAD");
        CommitSha::new(sh(&code, &made)).expect("a commit")
    };
    let large = commit("truncate -s 2M large; git add large; git commit -qm large");
    // Ten levels of ten directories, and one empty file: a few objects name ten billion files.
    let bomb = commit(
        "it=\"100644 blob $(git hash-object -w --stdin < /dev/null)\"
         for level in 1 2 3 4 5 6 7 8 9 10; do
             all=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '%s\\t%s\\n' \"$it\" $n; done)
             it=\"040000 tree $(echo \"$all\" | git mktree)\"
         done
         git reset -q --soft $(git commit-tree -m bomb ${it##* })",
    );
    for (commit, mib_max, is_made) in [(&large, 1, false), (&large, 3, true), (&bomb, 64, false)] {
        let checkout = Checkout {
            commit: commit.clone(),
            mib_max,
            ..begun.checkout.clone()
        };
        let made = checkout.make();
        assert_eq!(made.is_ok(), is_made, "{mib_max}: {made:?}");
        assert_eq!(checkout.tree.exists(), is_made);
        if let Err(error) = made {
            let error = error.to_string();
            assert!(error.contains("MiB"), "{error}");
        }
        checkout.remove().expect("nothing is left");
    }
    assert_eq!(begun.left(), []);
}
