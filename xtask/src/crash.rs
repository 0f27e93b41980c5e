//! `cargo xtask crash`: kills the daemon at every system call of every mix and of a whole review, in its recovery and
//! in the recovery of that, and at random under load. The long form of `tests/it/crash.rs`.

use std::time::Instant;

use clap::Args as ClapArgs;
use settled_torture::crash::scene::Scene;
use settled_torture::crash::storm::{self, Damage};
use settled_torture::crash::sweep::{self, Form, Tally};
use settled_torture::messages::Mix;

/// Kill the daemon at every system call, and at random under load; check what is left
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Number of random kills under load
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    kills: usize,
    /// Only scenes whose name contains this: notes, requests, refusals, several, review; `storm` for the
    /// random kills alone
    #[arg(long, value_name = "M")]
    mix: Option<String>,
    /// Seed of the random kills
    #[arg(long, value_name = "S", default_value_t = 20_261_122)]
    seed: u64,
    /// Kill at every Nth call only
    #[arg(long, value_name = "N", default_value_t = 1)]
    one_in: usize,
    /// Number of daemons at a time; in the scene `refusals` most of them only wait for a packet
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
}

/// The points that are asked for, and each of them again with a second and a third kill.
fn form(args: &Args) -> Form {
    let stride = args.one_in.max(1);
    Form {
        writing: stride,
        others: stride,
        again: 1,
        threads: args.threads.max(1),
    }
}

/// The messages of each mix.
const MESSAGES: usize = 6;

/// The trials or kills between two lines of progress.
const PROGRESS: usize = 100;

/// Runs it; returns true if nothing was wrong.
pub(crate) fn run(args: &Args) -> bool {
    let is_asked = |name: &str| {
        args.mix
            .as_ref()
            .is_none_or(|word| name.contains(word.as_str()))
    };
    let mut scenes: Vec<Scene> = Mix::ALL
        .iter()
        .map(|mix| Scene::of_mix(*mix, MESSAGES))
        .collect();
    scenes.extend(Scene::of_review());
    scenes.retain(|scene| is_asked(&scene.name));
    let mut wrong = Vec::new();
    if !scenes.is_empty() {
        wrong.extend(sweep_all(&scenes, form(args)));
    }
    if is_asked("storm") && args.kills > 0 {
        let began = Instant::now();
        let damage = storm::storm(args.kills, args.seed, &|done| {
            tell("storm", done, args.kills);
        });
        print_damage(&damage, began.elapsed().as_secs());
        wrong.extend(damage.wrong);
    }
    wrong.iter().for_each(|what| println!("wrong: {what}"));
    println!("\n{} wrong", wrong.len());
    wrong.is_empty()
}

/// Tries every point of these scenes; returns the errors.
fn sweep_all(scenes: &[Scene], form: Form) -> Vec<String> {
    let began = Instant::now();
    let mut whole = Tally::default();
    println!(
        "| scene | points | not reached | kills | in a recovery | in the recovery of that | wrong | s |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for scene in scenes {
        let began = Instant::now();
        let tally = sweep::sweep(scene, form, &|done, of| tell(&scene.name, done, of));
        print_row(&scene.name, &tally, began.elapsed().as_secs());
        whole.join(tally);
    }
    print_row("all", &whole, began.elapsed().as_secs());
    println!("\nPoints by call:");
    whole
        .points
        .iter()
        .for_each(|(call, points)| println!("  {call} {points}"));
    whole.wrong
}

#[expect(clippy::print_stderr, reason = "progress is not the result")]
fn tell(name: &str, done: usize, of: usize) {
    if done.is_multiple_of(PROGRESS) || done == of {
        eprintln!("{name}: {done} of {of}");
    }
}

fn print_row(name: &str, tally: &Tally, seconds: u64) {
    let Tally {
        missed,
        second,
        third,
        wrong,
        ..
    } = tally;
    let (hit, kills, wrong) = (tally.hit(), tally.kills(), wrong.len());
    println!("| {name} | {hit} | {missed} | {kills} | {second} | {third} | {wrong} | {seconds} |");
}

fn print_damage(damage: &Damage, seconds: u64) {
    let Damage {
        kills,
        in_recovery,
        in_second_recovery,
        messages,
        arrived,
        lost,
        duplicated,
        partial,
        ..
    } = damage;
    println!(
        "\n| random kills | in a recovery | in the recovery of that | messages | files arrived | lost | duplicated | partial | s |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    println!(
        "| {kills} | {in_recovery} | {in_second_recovery} | {messages} | {arrived} | {lost} | {duplicated} | {partial} | {seconds} |"
    );
}
