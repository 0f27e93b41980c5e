//! Real repositories: the digest is what `git` and a shell compute from its definition, and nothing in a repository
//! runs.

#[path = "../../../tests/sh.rs"]
mod sh;

use std::path::Path;
use std::time::Duration;

use git::{MergeBase, Repository};
use message_schema::id::CommitSha;
use tempfile::TempDir;

/// Runs a script whose commits are all of one instant.
fn sh(directory: &Path, script: &str) -> String {
    const AT: &str =
        "export GIT_AUTHOR_DATE=2026-02-13T10:00:00Z GIT_COMMITTER_DATE=2026-02-13T10:00:00Z";
    sh::sh(directory, &format!("{AT}\n{script}"))
}

/// The definition of the digest as one line of shell, as in `docs/protocol.md`.
const DEFINITION: &str = r"git diff-tree -r --no-renames -z --full-index --ignore-submodules=none BASE HEAD |
  sed -z 'N; s/^:\([0-9a-f ]*\) [A-Z]\x00/\1 /' | LC_ALL=C sort -z | sha256sum";

fn by_definition(directory: &Path, base: &str, head: &str) -> String {
    let script = DEFINITION.replace("BASE", base).replace("HEAD", head);
    let sum = sh(directory, &script);
    format!("sha256:{}", sum.split(' ').next().expect("a sum"))
}

/// A repository with a branch that makes every kind of change git distinguishes.
fn repository() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    sh(
        directory.path(),
        "git init -q -b main .
         mkdir src; echo 1 > src/a.rs; echo x > src/gone; echo y > 'a b'; ln -s src link; echo t > type
         printf 'a\\000b' > image; echo e > exec
         git add -A; git commit -qm 1
         git checkout -qb topic
         echo 2 >> src/a.rs; rm src/gone; mv 'a b' 'grün'; ln -sfn src/a.rs link; rm type; ln -s src type
         printf 'a\\000c' > image; chmod +x exec; printf z > \"$(printf 'tab\\there')\"
         printf '[submodule \"m\"]\\npath = m\\nurl = m\\nignore = all\\n' > .gitmodules
         git add -A; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),m; git commit -qm 2
         git checkout -q main; echo other > other; git add -A; git commit -qm 3",
    );
    directory
}

#[test]
fn the_digest_is_what_git_and_the_shell_make_of_the_definition() {
    let directory = repository();
    let repository = Repository::at(directory.path());
    let [main, topic] =
        ["main", "topic"].map(|name| repository.resolve(name).expect("git").expect("a commit"));
    let base = match repository.merge_base(&main, &topic).expect("git") {
        MergeBase::One(base) => base,
        other @ (MergeBase::None | MergeBase::Several) => panic!("{other:?}"),
    };
    let changes = repository.changes(&base, &topic).expect("changes");
    assert_eq!(
        changes.digest.as_str(),
        by_definition(directory.path(), &base, &topic)
    );
    let files: Vec<&str> = changes.files.iter().map(|file| file.as_str()).collect();
    let expected = [
        r#""tab\there""#,
        ".gitmodules",
        "a b",
        "exec",
        "grün",
        "image",
        "link",
        "m",
        "src/a.rs",
        "src/gone",
        "type",
    ];
    assert_eq!(files, expected);

    let links: Vec<&str> = changes.links.iter().map(|file| file.as_str()).collect();
    assert_eq!(links, ["link", "m", "type"]);

    let same = repository.changes(&topic, &topic).expect("nothing differs");
    assert!(same.files.is_empty());
    assert_eq!(
        same.digest.as_str(),
        by_definition(directory.path(), &topic, &topic)
    );
}

/// The vectors of `docs/protocol.md`: two commits that anybody can make.
#[test]
fn the_vectors_of_the_protocol_hold() {
    let directory = tempfile::tempdir().expect("a directory");
    sh(
        directory.path(),
        "git init -q -b main .
         mkdir src; printf 'one\\n' > src/a.rs; printf 'old\\n' > b.txt; git add -A; git commit -qm base; git tag base
         printf 'one\\ntwo\\n' > src/a.rs; rm b.txt; printf 'new\\n' > 'c d.txt'; git add -A; git commit -qm head",
    );
    let repository = Repository::at(directory.path());
    let changes = |base: &str| {
        repository
            .changes(base, "main")
            .expect("changes")
            .digest
            .as_str()
            .to_owned()
    };
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/protocol.md"
    ))
    .expect("the protocol");
    let line = DEFINITION.replace("BASE HEAD", r#""$BASE" "$HEAD""#);
    assert!(page.contains(&line), "the page has no {line}");
    for digest in [changes("base"), changes("main")] {
        assert!(
            page.contains(&digest),
            "the protocol has no vector {digest}"
        );
        assert!(digest.starts_with("sha256:"));
    }
    assert_eq!(
        changes("base"),
        by_definition(directory.path(), "base", "main")
    );
}

#[test]
fn the_diff_has_a_part_for_each_file_and_says_which_shows_nothing() {
    let directory = repository();
    let repository = Repository::at(directory.path());
    let base = sh(directory.path(), "git merge-base main topic");
    let parts = repository.diff(&base, "topic").expect("a diff");
    let changes = repository.changes(&base, "topic").expect("changes");
    let mut named: Vec<_> = parts.iter().map(|part| part.path.clone()).collect();
    named.sort();
    assert_eq!(named, changes.files);
    let hidden: Vec<&str> = parts
        .iter()
        .filter(|part| !part.has_content)
        .map(|part| part.path.as_str())
        .collect();
    assert_eq!(hidden, ["image"]);
    let text = |name: &str| {
        let part = parts.iter().find(|part| part.path.as_str() == name);
        String::from_utf8_lossy(&part.expect("a part").text).into_owned()
    };
    assert!(text("src/a.rs").ends_with("+2\n"), "{}", text("src/a.rs"));
    assert_eq!(text("type").matches("diff --git").count(), 2);
}

#[test]
fn nothing_that_a_repository_names_is_run_and_no_attribute_hides_a_file_unseen() {
    let directory = repository();
    let trap = directory.path().join("trap");
    sh(
        directory.path(),
        "printf '#!/bin/sh\\necho ran >> \"%s\"\\ncat \"$1\"\\n' \"$PWD/trap\" > run; chmod +x run
         git config core.fsmonitor \"$PWD/run\"; git config diff.external \"$PWD/run\"
         git config diff.evil.textconv \"$PWD/run\"; git config diff.evil.command \"$PWD/run\"
         git config core.pager \"$PWD/run\"; git config core.hooksPath \"$PWD/hooks\"
         mkdir hooks; cp run hooks/post-index-change; cp run hooks/reference-transaction
         printf '*.rs diff=evil\\nexec -diff\\nother -diff\\n' > .git/info/attributes
         git config diff.renames copies; git config diff.noprefix true; git config diff.orderFile nowhere
         git config core.quotePath false; git config diff.ignoreSubmodules all; rm -f trap",
    );
    let repository = Repository::at(directory.path());
    let base = sh(
        directory.path(),
        "git -c core.fsmonitor= merge-base main topic",
    );
    let _ = std::fs::remove_file(&trap);
    let parts = repository.diff(&base, "topic").expect("a diff");
    let rust = parts
        .iter()
        .find(|part| part.path.as_str() == "src/a.rs")
        .expect("a part");
    assert!(String::from_utf8_lossy(&rust.text).contains("diff --git a/src/a.rs b/src/a.rs"));
    assert!(!trap.exists(), "a program of the repository was run");

    let main = repository.resolve("main").expect("git").expect("a commit");
    let parts = repository.diff(&base, &main).expect("a diff");
    assert!(
        parts.iter().all(|part| !part.has_content),
        "an attribute hides what is in `other`, and it counts as shown"
    );
}

#[test]
fn a_directory_without_a_repository_and_names_that_are_no_commit_are_told_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let none = Repository::at(directory.path());
    assert!(!none.exists() && !none.look_for().expect("git"));
    let nowhere = Repository::at(&directory.path().join("nowhere"));
    assert!(!nowhere.look_for().expect("there is nothing to ask git"));
    let made = repository();
    let repository = Repository::at(made.path());
    assert!(repository.exists());
    assert_eq!(repository.resolve("nowhere").expect("git"), None);
    assert_eq!(repository.resolve("--help").expect("git"), None);
    let zeros = "0".repeat(40);
    assert!(repository.changes(&zeros, "main").is_err());
    // An unreadable repository is not the same as none.
    std::fs::write(made.path().join(".git/config"), "[nonsense").expect("a file");
    assert!(!repository.exists());
    let error = repository.look_for().expect_err("its config is broken");
    assert!(error.to_string().contains("bad config"), "{error}");
}

#[test]
fn a_head_is_clean_until_a_file_that_git_knows_is_changed() {
    let made = repository();
    let repository = Repository::at(made.path());
    let head = sh(made.path(), "git rev-parse HEAD");
    let clean = || repository.clean_head().map(|head| head.to_string());
    assert_eq!(clean().as_deref(), Some(&*head));
    sh(made.path(), "echo new > unknown");
    assert_eq!(
        clean().as_deref(),
        Some(&*head),
        "git does not know the file"
    );
    sh(made.path(), "echo 3 >> src/a.rs");
    assert_eq!(clean(), None);
    assert_eq!(Repository::at(Path::new("/")).clean_head(), None);
}

#[test]
fn nothing_hides_a_changed_file_from_the_comparison_with_the_commit() {
    let changed = "printf 3 > src/a.rs";
    for hide in [
        format!("git update-index --skip-worktree src/a.rs; {changed}"),
        format!("git update-index --assume-unchanged src/a.rs; {changed}"),
        "git update-index --skip-worktree src/a.rs; rm src/a.rs".to_owned(),
        "git config core.fileMode false; chmod +x src/a.rs".to_owned(),
        format!("echo '*.rs filter=x' > .git/info/attributes; git config filter.x.clean 'git show HEAD:src/a.rs'; {changed}"),
        "echo '*.rs text' > src/.gitattributes; sed -i 's/$/\\r/' src/a.rs".to_owned(),
        // The same size and the same time.
        "git config core.trustctime false; touch -d @9 src/a.rs; git status; sed -i 's/./~/' src/a.rs; touch -d @9 src/a.rs".to_owned(),
        "git worktree add -q ../clean; git config core.worktree \"$PWD/../clean\"; printf 3 > src/a.rs".to_owned(),
    ] {
        let made = tempfile::tempdir().expect("a directory");
        let place = made.path().join("code");
        std::fs::create_dir(&place).expect("a directory");
        sh(&place, "git init -q; mkdir src; printf 'one\\ntwo\\n' > src/a.rs; git add .; git -c user.name=a -c user.email=a@b commit -qm one");
        let repository = Repository::at(&place);
        assert!(repository.clean_head().is_some(), "{hide}");
        sh(&place, &hide);
        assert_eq!(repository.clean_head(), None, "{hide}");
    }
}

#[test]
fn a_submodule_that_is_checked_out_is_compared_too() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path();
    sh(
        place,
        "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
         git init -q lib; cd lib; echo 1 > a; git add .; git commit -qm lib; cd ..
         git init -q code; cd code; git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm code
         cd ..; git clone -q code bare-of-lib",
    );
    let clean = |name: &str| Repository::at(&place.join(name)).clean_head().is_some();
    assert!(clean("code") && clean("bare-of-lib"));
    sh(
        place,
        "git -C code/lib update-index --assume-unchanged a; echo 2 > code/lib/a; echo 2 > bare-of-lib/lib/a",
    );
    assert!(!clean("code") && !clean("bare-of-lib"));
}

#[test]
fn a_worktree_is_the_commit_as_it_is_stored_and_nothing_that_a_config_names_is_run() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path();
    sh(
        place,
        "printf '#!/bin/sh\\necho ran >> \"%s\"\\n' \"$PWD/trap\" > run; chmod +x run
         git init -q -b main inner; git -C inner commit -q --allow-empty -m inner
         git init -q -b main code; cd code
         printf '*.a filter=one\\n*.b filter=two\\n*.c filter=od.d=x\\n*.d text eol=lf\\n*.e filter=three\\n' > .gitattributes
         for name in a b c d e; do echo $name > it.$name; done
         git add -A; git -c protocol.file.allow=always submodule -q add ../inner sub; git commit -qm 1
         git config filter.one.smudge ../run; git config filter.one.required true
         git config filter.two.process ../run; git config filter.two.required true
         git config filter.od.d=x.smudge ../run; git config filter.od.d=x.clean ../run
         git config core.fsmonitor \"$PWD/../run\"; git config core.hooksPath \"$PWD/hooks\"
         git config hook.evil.event post-checkout; git config hook.evil.command \"$PWD/../run\"
         git config includeIf.gitdir:**/worktrees/**.path evil
         printf '[filter \"three\"]\n\tsmudge = ../run\n\trequired = true\n' > .git/evil
         git config submodule.recurse true; git config core.sparseCheckout true
         mkdir -p hooks .git/hooks .git/info; echo /it.a > .git/info/sparse-checkout
         for at in hooks .git/hooks; do for name in post-checkout reference-transaction post-index-change; do
             cp ../run $at/$name; done; done; rm -f ../trap",
    );
    let repository = Repository::at(&place.join("code"));
    let head = CommitSha::new(sh(&place.join("code"), "git rev-parse HEAD")).expect("a commit");
    let _ = std::fs::remove_file(place.join("trap"));
    let tree = place.join("tree");
    repository.add_worktree(&tree, &head).expect("a worktree");
    assert!(!place.join("trap").exists(), "something of it was run");
    assert_eq!(
        sh(&tree, "cat it.*; ls sub").replace('\n', " "),
        "a b c d e"
    );
    repository.forget_worktree(&tree).expect("a removal");
    assert!(!place.join("trap").exists() && !tree.exists());
    // The traps work: git alone falls for them.
    sh(
        &place.join("code"),
        "git worktree add -q --detach ../plain 2>&1 || :",
    );
    assert!(place.join("trap").exists());
}

#[test]
fn what_a_partial_clone_lacks_is_not_fetched() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path();
    sh(
        place,
        "git init -q -b main full; cd full; git config uploadpack.allowFilter true
         echo 1 > a; git add -A; git commit -qm 1; cd ..
         git clone -q --no-checkout --filter=blob:none \"file://$PWD/full\" part",
    );
    let repository = Repository::at(&place.join("part"));
    let head = CommitSha::new(sh(&place.join("part"), "git rev-parse HEAD")).expect("a commit");
    let error = repository
        .add_worktree(&place.join("tree"), &head)
        .expect_err("its files are elsewhere");
    assert!(error.to_string().contains("cannot check out"), "{error}");
    let objects = sh(
        &place.join("part"),
        "git cat-file --batch-all-objects --batch-check | grep -c blob || :",
    );
    assert_eq!(objects, "0");
}

#[test]
fn a_commit_is_no_branch_of_its_name_and_a_directory_has_its_place_in_the_tree() {
    let made = repository();
    let repository = Repository::at(made.path());
    let topic = sh(made.path(), "git rev-parse topic");
    let sha = |text: &str| CommitSha::new(text).expect("a commit");
    let found = |text: &str| repository.commit(&sha(text)).expect("git");
    assert_eq!(found(&topic[..9]), Some(sha(&topic)));
    assert_eq!(found("0123456789"), None);
    sh(made.path(), "git branch abcdef1 main");
    assert_eq!(found("abcdef1"), None, "a branch of that name");
    sh(made.path(), &format!("git tag {} main", &topic[..9]));
    assert_eq!(found(&topic[..9]), Some(sha(&topic)), "a tag of that name");

    let below = Repository::at(&made.path().join("src"));
    assert_eq!(below.prefix().expect("git"), Path::new("src"));
    assert_eq!(repository.prefix().expect("git"), Path::new(""));
    let has = |path: &str| repository.has_directory(&sha(&topic), Path::new(path));
    assert!(has("src").expect("git") && !has("exec").expect("git") && !has("x").expect("git"));
}

#[test]
fn an_object_with_other_bytes_than_its_name_says_is_not_checked_out() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path();
    sh(
        place,
        "git init -q -b main code; cd code; echo evil > x.rs; git add -A; git commit -qm 1
         echo good > ../good; other=$(git hash-object -w ../good); id=$(git rev-parse HEAD:x.rs)
         object() { echo .git/objects/$(echo $1 | cut -c-2)/$(echo $1 | cut -c3-); }
         chmod u+w $(object $id); cp $(object $other) $(object $id)",
    );
    let code = place.join("code");
    assert_eq!(sh(&code, "git show HEAD:x.rs"), "good", "git alone");
    let head = CommitSha::new(sh(&code, "git rev-parse HEAD")).expect("a commit");
    let error = Repository::at(&code)
        .add_worktree(&place.join("tree"), &head)
        .expect_err("its file is another");
    assert!(error.to_string().contains("cannot check out"), "{error}");
}

#[test]
fn a_commit_that_cannot_be_checked_out_is_named_with_the_last_words_of_git() {
    let made = repository();
    let nothing = CommitSha::new("0".repeat(40)).expect("a name");
    let error = Repository::at(made.path())
        .add_worktree(&made.path().join("tree"), &nothing)
        .expect_err("there is no such commit");
    let error = error.to_string();
    let why = error.strip_prefix(&format!("git cannot check out {nothing}: "));
    assert!(
        why.is_some_and(|why| why.contains("not our ref")),
        "{error}"
    );
}

#[test]
fn grafts_and_commit_graphs_of_a_repository_do_not_move_a_merge_base() {
    let made = repository();
    let place = made.path();
    let repository = Repository::at(place);
    let ids = sh(place, "git rev-parse main topic");
    let (main, topic) = ids.split_once('\n').expect("two commits");
    let base = || repository.merge_base(main, topic).expect("git");
    let before = base();
    sh(
        place,
        "mkdir -p .git/info; git rev-parse main topic | tr '\\n' ' ' > .git/info/grafts",
    );
    let alone = sh(place, "git merge-base main topic 2>&1 | tail -1");
    assert_eq!(alone, topic, "git alone");
    assert_eq!(base(), before);
}

#[test]
fn a_branch_is_never_a_tag_of_its_name() {
    let made = repository();
    let place = made.path();
    let repository = Repository::at(place);
    let ids = sh(place, "git rev-parse main topic main~1");
    let [main, topic, first] = ids.lines().collect::<Vec<_>>()[..] else {
        panic!("{ids}")
    };
    sh(
        place,
        "git update-ref refs/remotes/origin/main main; git tag origin/main topic; git tag lone topic
         git branch both main; git update-ref refs/remotes/both topic",
    );
    assert_eq!(
        sh(place, "git rev-parse origin/main 2>&1 | tail -1"),
        topic,
        "git alone"
    );
    let branch = |name: &str| repository.branch(name);
    let found = |name: &str| branch(name).expect("git");
    assert_eq!(found("origin/main").as_deref(), Some(main));
    assert_eq!(found("origin/main~1").as_deref(), Some(first));
    assert_eq!(found("refs/tags/origin/main").as_deref(), Some(topic));
    assert_eq!(found(main).as_deref(), Some(main));
    assert_eq!(found("nowhere"), None);
    let error = |name: &str| branch(name).expect_err("no branch").to_string();
    assert_eq!(
        error("lone"),
        "lone is a tag and no branch; write refs/tags/lone if you mean it"
    );
    assert_eq!(
        error("both"),
        "both is ambiguous: write refs/heads/both or refs/remotes/both"
    );
}

#[test]
fn a_pipe_in_the_repository_keeps_nobody_waiting() {
    let directory = repository();
    sh(directory.path(), "rm .git/HEAD; mkfifo .git/HEAD");
    let moment = Duration::from_millis(50);
    let repository = Repository::at(directory.path()).within(moment);
    let error = repository.resolve("main").expect_err("it does not answer");
    let said = error.to_string();
    assert!(said.contains("took longer than 0.05 s"), "{said}");
    assert!(
        said.contains(&directory.path().display().to_string()),
        "{said}"
    );
}

#[test]
fn files_beyond_a_size_are_not_listed_to_their_end() {
    let directory = repository();
    // Each level has its subtree ten times: more files than git could list within the time limit.
    let levels = "tree=$(git write-tree)
        for level in 1 2 3 4 5 6 7 8 9 10; do
            tree=$(for at in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\t%s\n' $tree $at; done | git mktree)
        done
        git commit-tree -m many $tree";
    let commit = CommitSha::new(sh(directory.path(), levels)).expect("a commit");
    let repository = Repository::at(directory.path());
    let size = repository.size_up_to(&commit, 1 << 20).expect("git");
    assert_eq!(size, None);
}

#[test]
fn a_change_is_carried_over_if_its_merge_gives_the_result() {
    let made = repository();
    let repository = Repository::at(made.path());
    let blob = |text: &str| {
        sh(
            made.path(),
            &format!("printf '{text}' | git hash-object -w --stdin"),
        )
    };
    let [before, after] = ["1\\n2\\n3\\n4\\n5\\n", "1\\n2\\n3\\n4\\nnew\\n"].map(blob);
    let [onto, result, other, conflict] = [
        "one\\n2\\n3\\n4\\n5\\n",
        "one\\n2\\n3\\n4\\nnew\\n",
        "one\\n2\\n3\\n4\\nnewer\\n",
        "1\\n2\\n3\\n4\\nfive\\n",
    ]
    .map(blob);
    let carries = |onto: &str, result: &str| repository.carries(&before, &after, onto, result);
    assert!(carries(&onto, &result).expect("git"));
    assert!(!carries(&onto, &other).expect("git"), "another result");
    assert!(!carries(&conflict, &result).expect("git"), "a conflict");
    let error = carries(&onto, &"0".repeat(40)).expect_err("there is no such content");
    assert!(error.to_string().contains("is missing"), "{error}");
}

#[test]
fn a_store_is_the_history_and_how_it_is_stored_without_any_other_setting() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path().canonicalize().expect("a path");
    sh(
        &place,
        "git init -q -b main code; git -C code commit -q --allow-empty -m one; git init -q --bare lender
         cd code; printf '#no\\n../../../lender/objects\\n' > .git/objects/info/alternates
         git config extensions.preciousObjects true; git config extensions.odd 'a b'; git config user.token secret
         git worktree add -q ../linked",
    );
    let store = |name: &str| Repository::at(&place.join(name)).store().expect("git");
    let code = store("code").expect("a worktree");
    let common = place.join("code/.git");
    let parts = [
        "HEAD",
        "index",
        "objects",
        "packed-refs",
        "refs",
        "reftable",
        "shallow",
    ];
    let parts: Vec<_> = parts.iter().map(|part| common.join(part)).collect();
    assert_eq!((&code.top, &code.common), (&place.join("code"), &common));
    assert_eq!(code.parts, parts);
    assert_eq!(
        code.borrowed,
        [common.join("objects").join("../../../lender/objects")]
    );
    assert_eq!(
        code.config,
        "[core]\n\trepositoryformatversion = 0\n[extensions]\n\tpreciousobjects = true\n"
    );
    let linked = store("linked").expect("a worktree");
    assert_eq!(
        (&linked.top, &linked.common),
        (&place.join("linked"), &common)
    );
    assert_eq!(
        linked.parts,
        [&parts[..], &[common.join("worktrees/linked")]].concat()
    );
    assert_eq!(store("lender"), None, "a bare repository has no worktree");
}

#[test]
fn what_is_left_out_of_a_worktree_is_not_seen_as_deleted() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path();
    sh(
        place,
        "git init -q -b main inner; git -C inner commit -q --allow-empty -m inner; git init -q -b main code; cd code
         mkdir -p docs deep/Docs; echo 1 > docs/a; echo 2 > deep/Docs/b; echo 3 > agents.MD; echo 4 > docs.txt
         git -c protocol.file.allow=always submodule -q add ../inner SUB; git add -A; git commit -qm 1",
    );
    let head = CommitSha::new(sh(&place.join("code"), "git rev-parse HEAD")).expect("a commit");
    let tree = place.join("tree.d");
    Repository::at(&place.join("code"))
        .add_worktree(&tree, &head)
        .expect("a worktree");
    assert_eq!(git::copy_of(&tree), place.join("tree.git"));
    assert!(!git::copy_of(&tree).exists(), "the copy is gone");
    let here = Repository::at(&tree);
    let listed = || {
        sh(
            &tree,
            "find . -type f -not -name .git | sort | tr '\\n' ' '",
        )
    };
    here.leave_out(&[]).expect("nothing to do");
    assert_eq!(
        listed(),
        "./.gitmodules ./agents.MD ./deep/Docs/b ./docs.txt ./docs/a"
    );
    sh(
        &place.join("code"),
        "git config filter.trap.clean 'tee ../trap'; echo '*  filter=trap' > .git/info/attributes",
    );
    let names = ["AGENTS.md", "docs", "sub"].map(str::to_owned);
    here.leave_out(&names).expect("files");
    assert_eq!(listed(), "./.gitmodules ./docs.txt");
    assert!(!place.join("trap").exists(), "the filter was run");
    // The trap works: git alone falls for it.
    sh(
        &tree,
        "touch docs.txt; git update-index --skip-worktree docs.txt",
    );
    assert!(place.join("trap").exists());
    assert!(!tree.join("SUB").exists());
    assert_eq!(sh(&tree, "git status --porcelain"), "");
    let again = here.leave_out(&names).expect_err("they are gone");
    assert!(again.to_string().contains("cannot leave out"), "{again}");
}

#[test]
fn each_file_takes_whole_blocks_and_an_empty_one_takes_one() {
    let made = tempfile::tempdir().expect("a directory");
    sh(
        made.path(),
        "git init -q -b main .; : > empty; head -c 4096 /dev/zero > block; head -c 4097 /dev/zero > more
         git add -A; git update-index --add --cacheinfo 160000,$(printf '%040d' 1),m; git commit -qm 1",
    );
    let repository = Repository::at(made.path());
    let head = CommitSha::new(sh(made.path(), "git rev-parse HEAD")).expect("a commit");
    let size = |max| repository.size_up_to(&head, max).expect("git");
    assert_eq!([size(5 * 4096), size(5 * 4096 - 1)], [Some(5 * 4096), None]);
    let nothing = CommitSha::new("0".repeat(40)).expect("a name");
    let error = repository
        .size_up_to(&nothing, 1 << 20)
        .expect_err("no commit");
    assert!(
        error.to_string().contains("cannot list the files"),
        "{error}"
    );
}

#[test]
fn a_worktree_that_git_does_not_know_is_forgotten_already() {
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path().canonicalize().expect("a path");
    sh(
        &place,
        "git init -q -b main code; cd code; git commit -q --allow-empty -m 1; git worktree add -q ../gone
         git worktree add -q ../other; rm -r ../gone ../other",
    );
    let repository = Repository::at(&place.join("code"));
    for name in ["gone", "gone", "unknown"] {
        repository.forget_worktree(&place.join(name)).expect(name);
    }
    let known = sh(
        &place.join("code"),
        "git worktree list --porcelain | grep -c '^worktree '",
    );
    assert_eq!(known, "2", "the other one stays known");
    let own = repository
        .forget_worktree(&place.join("code"))
        .expect_err("the main one");
    assert!(
        own.to_string().contains("cannot forget the worktree"),
        "{own}"
    );
}

#[test]
fn commits_without_a_common_ancestor_and_with_several_are_told_apart() {
    let made = tempfile::tempdir().expect("a directory");
    let ids = sh(
        made.path(),
        "git init -q -b main .; tree=$(git write-tree); new() { git commit-tree -m \"$@\" $tree; }
         a=$(new a); b=$(new b); one=$(new one -p $a -p $b); two=$(new two -p $b -p $a); echo $a $b $one $two",
    );
    let [a, b, one, two] = ids.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{ids}")
    };
    let base = |one: &str, other: &str| {
        Repository::at(made.path())
            .merge_base(one, other)
            .expect("git")
    };
    assert_eq!(base(a, b), MergeBase::None);
    assert_eq!(base(one, a), MergeBase::One(a.to_owned()));
    assert_eq!(base(one, two), MergeBase::Several);
}

#[test]
fn a_submodule_that_is_not_checked_out_is_an_empty_directory_and_one_at_another_commit_is_changed()
{
    let made = tempfile::tempdir().expect("a directory");
    let place = made.path();
    sh(
        place,
        "git init -q lib; cd lib; echo 1 > a; git add .; git commit -qm lib; cd ..
         git init -q code; cd code; git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm code
         cd ..; git clone -q code bare",
    );
    let clean = |name: &str| Repository::at(&place.join(name)).clean_head().is_some();
    assert!(clean("code") && clean("bare"));
    sh(
        place,
        "echo x > bare/lib/stray; git -C code/lib commit -q --allow-empty -m more",
    );
    assert!(!clean("bare") && !clean("code"));
}
