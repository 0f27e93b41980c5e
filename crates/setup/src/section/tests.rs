//! Tests the text of a section, and what a file keeps when one is written into it.

use super::*;

fn agent() -> AgentName {
    AgentName::new("codex").expect("a name")
}

fn set_up(program: KnownProgram) -> SetUp {
    program.set_up(
        Path::new("/usr/bin/it"),
        Path::new("/srv/project"),
        SetUpForm::Plain,
    )
}

#[test]
fn every_set_up_is_a_section_that_the_config_reads() {
    for program in KnownProgram::ALL {
        for form in [SetUpForm::Plain, SetUpForm::Mcp, SetUpForm::Sandbox] {
            let set_up = program.set_up(Path::new("/usr/bin/it"), Path::new("/srv/project"), form);
            let text = set_up.section(&agent());
            let config = Config::parse(&text, Path::new("t"))
                .unwrap_or_else(|error| panic!("{error}:\n{text}"));
            let section = &config.agents[&agent()];
            assert_eq!(section.command[0], "/usr/bin/it", "{text}");
            assert!(text.contains("It may "), "{text}");
            assert_eq!(
                section.sandbox.is_some(),
                form == SetUpForm::Sandbox,
                "{text}"
            );
            assert!(!program.login().is_empty());
        }
    }
}

#[test]
fn a_program_is_known_by_the_name_of_its_file_and_was_tried_in_one_version() {
    for program in KnownProgram::ALL {
        let command = [format!("/usr/bin/{}", program.word()), "-x".to_owned()];
        assert_eq!(KnownProgram::of_command(&command), Some(program));
        let tried = program.tried();
        let is_number = |part: &str| part.parse::<u32>().is_ok();
        assert!(
            tried.split('.').count() == 3 && tried.split('.').all(is_number),
            "{tried}"
        );
    }
    assert_eq!(KnownProgram::of_command(&["/opt/other".to_owned()]), None);
    assert_eq!(KnownProgram::of_command(&[]), None);
}

#[test]
fn the_variables_of_the_tools_come_with_the_tools_alone() {
    let has_tools = |form| {
        let set_up =
            KnownProgram::OpenCode.set_up(Path::new("/usr/bin/it"), Path::new("/srv"), form);
        set_up.section(&agent()).contains("OPENCODE_CONFIG_CONTENT")
    };
    assert!(has_tools(SetUpForm::Mcp));
    assert!(!has_tools(SetUpForm::Plain) && !has_tools(SetUpForm::Sandbox));
}

#[test]
fn commands_at_once_each_leave_their_section() {
    let root = tempfile::tempdir().expect("a directory");
    let names = (0..8).map(|n| AgentName::new(format!("r{n}")).expect("a name"));
    let names: Vec<AgentName> = names.collect();
    let add = |name: &AgentName| {
        set_up(KnownProgram::Codex)
            .write(root.path(), name, OtherCommand::Kept)
            .expect("written");
    };
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| add(name));
        }
    });
    let text = std::fs::read_to_string(root.path().join(FILE)).expect("a file");
    for name in &names {
        assert!(text.contains(&format!("[agents.{name}]")), "{name}: {text}");
    }
}

#[test]
fn a_persons_comments_keys_and_sections_stay() {
    let root = tempfile::tempdir().expect("a directory");
    let file = root.path().join(FILE);
    let before = "# ours\nprofile = \"gate\" # why\n\n[agents.codex]\nroles = [\"reviewer\"] # only\n\n[agents.claude]\nconcurrent = 2\n\n# the end\n";
    std::fs::write(&file, before).expect("a file");
    let written = set_up(KnownProgram::Codex)
        .write(root.path(), &agent(), OtherCommand::Kept)
        .expect("written");
    assert_eq!(written, AddOutcome::Written);
    let after = std::fs::read_to_string(&file).expect("a file");
    for line in before.lines() {
        assert!(after.contains(line), "{line} is gone:\n{after}");
    }
    let gemini = AgentName::new("gemini").expect("a name");
    set_up(KnownProgram::Gemini)
        .write(root.path(), &gemini, OtherCommand::Kept)
        .expect("written");
    let whole = std::fs::read_to_string(&file).expect("a file");
    assert!(
        whole.find("# the end") < whole.find("[agents.gemini]"),
        "{whole}"
    );
    std::fs::write(&file, &after).expect("a file");
    let again = set_up(KnownProgram::Codex)
        .write(root.path(), &agent(), OtherCommand::Kept)
        .expect("nothing to do");
    assert_eq!(again, AddOutcome::Same);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), after);
}

#[test]
fn a_section_that_is_no_part_of_a_config_is_not_written_and_named_by_no_line() {
    let root = tempfile::tempdir().expect("a directory");
    let nothing = SetUp::custom(&[String::new()], Path::new("/srv/project"));
    let refused = nothing.write(root.path(), &agent(), OtherCommand::Kept);
    let error = refused.expect_err("a program has a name").to_string();
    assert!(
        error.contains("command") && !error.contains(FILE),
        "{error}"
    );
    assert!(!root.path().join(FILE).exists());
}

#[test]
fn another_command_is_replaced_only_on_demand() {
    let root = tempfile::tempdir().expect("a directory");
    set_up(KnownProgram::OpenCode)
        .write(root.path(), &agent(), OtherCommand::Kept)
        .expect("written");
    let before = std::fs::read_to_string(root.path().join(FILE)).expect("a file");
    let refused = set_up(KnownProgram::Codex).write(root.path(), &agent(), OtherCommand::Kept);
    assert!(
        matches!(refused, Err(SectionError::Other { .. })),
        "{refused:?}"
    );
    assert_eq!(
        std::fs::read_to_string(root.path().join(FILE)).expect("a file"),
        before
    );
    let written = set_up(KnownProgram::Codex)
        .write(root.path(), &agent(), OtherCommand::Replaced)
        .expect("written");
    assert_eq!(written, AddOutcome::Written);
    let after = Config::load(root.path()).expect("a config");
    // The variables of the previous program are gone.
    assert!(after.agents[&agent()].env.is_empty(), "{after:?}");
    // So are its vendor and the comment on what it may do.
    for custom in ["./mine", "./other"] {
        let command = [custom.to_owned()];
        SetUp::custom(&command, Path::new("/srv/project"))
            .write(root.path(), &agent(), OtherCommand::Replaced)
            .expect("written");
        let text = std::fs::read_to_string(root.path().join(FILE)).expect("a file");
        assert!(
            !text.contains("vendor") && !text.contains("Codex"),
            "{text}"
        );
        assert_eq!(text.matches("It may ").count(), 1, "{text}");
        assert!(text.contains("nothing confines it"), "{text}");
        std::fs::write(root.path().join(FILE), text + "vendor = \"mine\"\n").expect("a file");
    }
    let longer = ["./other".to_owned(), "--quick".to_owned()];
    SetUp::custom(&longer, Path::new("/srv/project"))
        .write(root.path(), &agent(), OtherCommand::Replaced)
        .expect("written");
    let text = std::fs::read_to_string(root.path().join(FILE)).expect("a file");
    assert!(text.contains("vendor = \"mine\""), "{text}");
}
#[test]
fn a_section_says_above_what_its_program_may_do() {
    let section = |form| {
        let gemini = KnownProgram::Gemini;
        let set_up = gemini.set_up(Path::new("/usr/bin/gemini"), Path::new("/srv/code"), form);
        set_up.section(&agent())
    };
    let may = "read the code and the folder of its run";
    let keys = "output = \"gemini\"\nworkdir = \"/srv/code\"\n\
                leave_out = [\".env\", \"GEMINI.md\", \".gemini\", \".geminiignore\", \".agents\"]\n";
    let command = "\"/usr/bin/gemini\", \"--output-format\", \"stream-json\", \"--skip-trust\", \"--include-directories\", \"{run}\"";
    let title = format!(
        "# Gemini CLI {}. It may {may}",
        KnownProgram::Gemini.tried()
    );
    assert_eq!(
        section(SetUpForm::Plain),
        format!(
            "{title}; it has no shell and changes nothing.\n[agents.codex]\ncommand = [{command}]\n{keys}vendor = \"google\"\n"
        )
    );
    assert_eq!(
        section(SetUpForm::Mcp),
        format!(
            "{title}; it has no shell and changes nothing.\n[agents.codex]\n\
             command = [{command}, \"--allowed-mcp-server-names\", \"settled\"]\n{keys}vendor = \"google\"\n"
        )
    );
    let host = "generativelanguage.googleapis.com";
    assert_eq!(
        section(SetUpForm::Sandbox),
        format!(
            "{title}, and reach {host}; a sandbox keeps the rest of this machine from it.\n[agents.codex]\n\
             command = [{command}]\n{keys}sandbox = {{ network = [\"{host}\"], env = [\"GEMINI_API_KEY\"] }}\nvendor = \"google\"\n"
        )
    );
    let custom = SetUp::custom(
        &["bin/review".to_owned(), "./x".to_owned()],
        Path::new("/srv/code"),
    );
    let here = std::env::current_dir().expect("a directory");
    assert_eq!(
        custom.section(&agent()),
        format!(
            "# A command of your own. It may do whatever the daemon's user may: nothing confines it.\n\
             [agents.codex]\ncommand = [\"{}/bin/review\", \"./x\"]\noutput = \"text\"\nworkdir = \"/srv/code\"\n",
            here.display()
        )
    );
}

#[test]
fn a_person_is_told_what_a_set_up_needs() {
    let told = |known: KnownProgram, form| {
        let set_up = known.set_up(Path::new("/usr/bin/it"), Path::new("/srv/code"), form);
        (set_up.title, set_up.tried, set_up.npm, set_up.settings)
    };
    let text = |text: &str| Some(text.to_owned());
    let gemini = KnownProgram::Gemini;
    assert_eq!(
        told(gemini, SetUpForm::Mcp),
        (
            text("Gemini CLI"),
            Some(gemini.tried()),
            text("@google/gemini-cli"),
            text(
                "Gemini CLI starts only the servers of its own settings: ~/.gemini/settings.json needs \
                 {\"mcpServers\": {\"settled\": {\"command\": \"settled\", \"args\": [\"mcp\"], \"trust\": true}}}"
            )
        )
    );
    for (known, form) in [
        (gemini, SetUpForm::Plain),
        (gemini, SetUpForm::Sandbox),
        (KnownProgram::Claude, SetUpForm::Mcp),
    ] {
        assert_eq!(told(known, form).3, None, "{known:?}, {form:?}");
    }
    assert_eq!(
        KnownProgram::Codex.login(),
        "`codex login`, or set CODEX_API_KEY for the daemon"
    );
}

#[test]
fn our_old_promise_goes_and_what_a_person_wrote_about_it_stays() {
    let root = tempfile::tempdir().expect("a directory");
    let file = root.path().join(FILE);
    let old = "[agents]\n# mine: ask ann\n# Claude Code 1.0.0. It may do all.\n#odd. It may stay\n[agents.codex]\ncommand = [\n  \"old\",\n] # kept\nenv = { A = \"1\" }\n";
    std::fs::write(&file, old).expect("a file");
    let custom = SetUp::custom(&["new".to_owned()], Path::new("/srv/code"));
    custom
        .write(root.path(), &agent(), OtherCommand::Replaced)
        .expect("written");
    assert_eq!(
        std::fs::read_to_string(&file).expect("a file"),
        "[agents]\n# mine: ask ann\n# A command of your own. It may do whatever the daemon's user may: nothing confines it.\n\
         #odd. It may stay\n[agents.codex]\ncommand = [\"new\"] # kept\noutput = \"text\"\nworkdir = \"/srv/code\"\n"
    );
}

#[test]
fn the_code_is_in_a_directory_whose_whole_path_is_kept() {
    let place = tempfile::tempdir().expect("a directory");
    let whole = place.path().canonicalize().expect("a path");
    assert_eq!(directory(&place.path().join(".")), Ok(whole));
    let file = place.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let named = file.display();
    assert_eq!(directory(&file), Err(format!("{named} is not a directory")));
    std::fs::remove_file(&file).expect("a file");
    assert_eq!(
        directory(&file),
        Err(format!("{named}: No such file or directory (os error 2)"))
    );
}
