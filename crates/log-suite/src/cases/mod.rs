//! The cases. The name of each is its claim.

pub mod follow;
pub mod order;
mod steps;
pub mod trouble;
pub mod unknown;

use crate::Bench;

/// Passes every case to a macro of this crate, after that macro's own arguments.
#[macro_export]
macro_rules! each_case {
    ($what:ident $($more:tt)*) => {
        $crate::$what! { $($more)*;
            order::an_empty_log_ends_before_the_first_record
            order::the_first_batch_becomes_the_end
            order::a_batch_of_many_ends_with_its_last_record
            order::batches_in_a_row_are_one_chain
            order::a_batch_for_a_past_end_is_moved
            order::a_batch_for_a_future_end_is_moved
            order::a_batch_behind_another_record_of_the_same_number_is_moved
            order::a_second_first_batch_is_moved
            order::a_moved_batch_leaves_nothing
            order::a_moved_batch_that_is_judged_again_is_committed
            order::of_two_hosts_one_wins
            order::two_hosts_in_many_rounds_make_one_chain
            order::the_same_batch_again_is_there_once
            order::the_same_batch_again_behind_others_is_there_once
            order::the_same_batch_from_a_new_handle_is_there_once
            order::another_batch_at_a_taken_place_is_moved
            unknown::unknown_that_landed_is_committed_once
            unknown::unknown_that_did_not_land_is_committed_once
            unknown::unknown_that_landed_before_others_is_committed
            unknown::unknown_that_did_not_land_before_others_is_moved
            unknown::unknown_many_times_is_there_once
            unknown::the_end_tells_whether_an_unknown_batch_landed
            unknown::an_unknown_batch_that_landed_is_followed
            unknown::an_append_that_arrives_late_changes_nothing
            unknown::a_twin_that_arrives_late_changes_nothing
            unknown::unknown_that_landed_before_a_restart_is_committed_once
            unknown::unknown_that_did_not_land_before_a_restart_is_committed_once
            follow::from_the_beginning_everything_comes_in_order
            follow::from_the_end_nothing_comes
            follow::from_each_place_the_rest_comes
            follow::from_inside_of_a_batch_it_comes_whole
            follow::every_byte_comes_as_it_was_written
            follow::host_and_signature_come_as_they_were_given
            follow::a_place_behind_the_end_is_a_rollback
            follow::another_record_at_a_place_is_a_fork
            follow::another_record_inside_of_a_batch_is_a_fork
            follow::a_slow_follower_catches_up
            follow::a_follower_keeps_up_with_a_writer
            follow::two_followers_see_the_same_bytes
            follow::a_look_that_finds_nothing_ends
            trouble::a_batch_above_the_limit_is_refused
            trouble::a_batch_at_the_limit_is_taken
            trouble::after_one_that_is_too_large_the_log_goes_on
            trouble::a_restart_before_the_first_batch
            trouble::a_restart_keeps_what_was_acknowledged
            trouble::a_restart_between_appends
            trouble::a_restart_between_looks
            trouble::a_restart_after_a_batch_was_moved
            trouble::cut_off_nothing_is_accepted
            trouble::cut_off_the_end_is_not_known
            trouble::joined_again_a_host_catches_up
            trouble::a_lost_tail_is_found
            trouble::behind_a_lost_tail_nothing_is_accepted
            trouble::a_lost_tail_is_put_back
            trouble::a_log_that_was_emptied_is_rolled_back
            trouble::a_forked_tail_is_found
            trouble::a_forked_tail_is_followed_by_whoever_saw_neither
            trouble::a_gap_is_told
        }
    };
}

/// Makes a test of each named case.
#[macro_export]
macro_rules! tests_of {
    ($bench:expr; $($group:ident :: $case:ident)*) => {
        $(
            #[test]
            fn $case() {
                $crate::cases::$group::$case(&mut $bench);
            }
        )*

        #[test]
        fn no_case_is_left_out() {
            let named = [$(stringify!($case)),*];
            assert_eq!(named.len(), $crate::cases::count());
        }
    };
}

/// Lists the named cases.
#[macro_export]
macro_rules! list_of {
    (; $($group:ident :: $case:ident)*) => {
        vec![$((stringify!($case), $crate::cases::$group::$case as fn(&mut dyn $crate::Bench))),*]
    };
}

/// The name and the function of a case.
pub type Case = (&'static str, fn(&mut dyn Bench));

/// Returns every case.
pub fn all() -> Vec<Case> {
    crate::each_case!(list_of)
}

/// Returns the number of cases, counted in their source.
pub fn count() -> usize {
    let sources = [
        include_str!("follow.rs"),
        include_str!("order.rs"),
        include_str!("trouble.rs"),
        include_str!("unknown.rs"),
    ];
    let cases = |source: &str| {
        source
            .lines()
            .filter(|line| line.starts_with("pub fn "))
            .count()
    };
    sources.into_iter().map(cases).sum()
}
