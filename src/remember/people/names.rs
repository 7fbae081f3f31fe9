//! Names: what may be one, which is free, how one is spoken, and which are near to a mistyped one. Pure functions.

use super::PeopleError;
use crate::remember::exchange::{ROBOT, UNNAMED};

/// Characters of the longest name. Not measured; longer "names" are sentences that were taken for one.
const LONGEST: usize = 60;
/// A mistyped name may differ from the one that is meant in a third of its letters.
const LETTERS_A_MISTAKE: usize = 3;

/// "Anna 2" is spoken "Anna".
#[must_use]
pub fn spoken_name(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((spoken, number)) if is_number(number) && !spoken.trim().is_empty() => spoken.trim_end(),
        _ => name,
    }
}

/// A number as [`free`] gives them: 2 and more.
fn is_number(word: &str) -> bool {
    !word.starts_with('0') && word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u32>().is_ok_and(|n| n > 1)
}

/// Whether two names are the same name, without regard to case.
pub fn same(one: &str, other: &str) -> bool {
    one == other || key(one) == key(other)
}

fn key(name: &str) -> String {
    name.to_lowercase()
}

/// The name with single spaces, if it may be one.
pub fn checked(name: &str) -> Result<String, PeopleError> {
    let tidy = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let bad = |why| Err(PeopleError::BadName { name: name.to_owned(), why });
    if tidy.is_empty() {
        return bad("it is empty");
    }
    if tidy.chars().count() > LONGEST {
        return bad("it is longer than 60 characters");
    }
    if tidy.chars().any(char::is_control) || !tidy.chars().any(char::is_alphabetic) {
        return bad("it has no letters, or has characters that cannot be printed");
    }
    if same(&tidy, UNNAMED) || same(&tidy, ROBOT) {
        return bad("that is what somebody without a name, or the robot, is called");
    }
    Ok(tidy)
}

/// The name itself where nobody has it, else the first free number after it.
pub fn free<'a>(name: &str, taken: impl Iterator<Item = &'a str>) -> String {
    let taken: std::collections::HashSet<String> = taken.map(key).collect();
    if !taken.contains(&key(name)) {
        return name.to_owned();
    }
    let spoken = spoken_name(name);
    let numbered = (2_u32..).map(|number| format!("{spoken} {number}"));
    // There are more numbers than names, so one is free.
    numbered.into_iter().find(|name| !taken.contains(&key(name))).unwrap_or_default()
}

/// The names that were perhaps meant, nearest first, three at most.
#[must_use]
pub fn nearest_names<'a>(meant: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = key(meant);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let (whole, spoken) = (key(name), key(spoken_name(name)));
            if whole.starts_with(&wanted) || wanted.starts_with(&spoken) {
                return Some((0, name));
            }
            let mistakes = distance(&wanted, &whole).min(distance(&wanted, &spoken));
            (mistakes <= wanted.chars().count().div_ceil(LETTERS_A_MISTAKE)).then_some((mistakes, name))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Letters to insert, drop or change to make one word of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = line + 1;
        for (column, against) in other.iter().enumerate() {
            let changed = before + usize::from(letter != *against);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_at_the_end_is_not_spoken() {
        for (name, spoken) in [
            ("Anna", "Anna"),
            ("Anna 2", "Anna"),
            ("Anna Maria 12", "Anna Maria"),
            ("Agent 007", "Agent 007"),
            ("Anna 1", "Anna 1"),
            ("2", "2"),
            ("Anna2", "Anna2"),
            ("Anna +2", "Anna +2"),
        ] {
            assert_eq!(spoken_name(name), spoken);
        }
    }

    #[test]
    fn a_name_that_is_taken_gets_the_next_free_number() {
        let of = |name, taken: &[&'static str]| free(name, taken.iter().copied());
        assert_eq!(of("Anna", &[]), "Anna");
        assert_eq!(of("Anna", &["Ben"]), "Anna");
        assert_eq!(of("anna", &["Anna"]), "anna 2");
        assert_eq!(of("Anna", &["anna", "ANNA 2", "Anna 4"]), "Anna 3");
        assert_eq!(of("Anna 2", &["Anna", "Anna 2"]), "Anna 3");
        assert_eq!(of("Anna", &["Anna 2"]), "Anna");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        assert_eq!(checked("  Anna \n Maria ").unwrap(), "Anna Maria");
        for bad in ["", "  ", "somebody", "REACHY", "12", "…", &"very ".repeat(20)] {
            assert!(matches!(checked(bad), Err(PeopleError::BadName { .. })), "{bad}");
        }
    }

    #[test]
    fn a_mistyped_name_finds_the_ones_near_to_it() {
        let names = ["Anna", "Hannah", "Ben", "Anna 2", "Christopher"];
        assert_eq!(nearest_names("Ana", names), ["Anna", "Anna 2"]);
        assert_eq!(nearest_names("christofer", names), ["Christopher"]);
        assert_eq!(nearest_names("chris", names), ["Christopher"]);
        assert!(nearest_names("Zoe", names).is_empty());
    }
}
