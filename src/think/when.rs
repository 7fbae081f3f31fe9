//! A person's words for a time, turned into a range.
//!
//! Pure: the moment that "now" means is handed in, with its time zone; the calendar (days of 23 and 25 hours included)
//! is jiff's. Every range has both ends and none reaches beyond now, so "yesterday" never lets today in. What is not
//! understood is [`When::Unknown`], and the caller then searches without a range; nothing is guessed.
//!
//! English only, as the offline brain is.

mod words;

use jiff::civil::{Date, Weekday};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use crate::remember::TimeRange;
use words::{Half, Token, clock_figures, number, tokens};

/// What words for a time come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A stretch of the past, up to now at most.
    Range(TimeRange),
    /// From when this person was last there until now; only the caller knows since when.
    WhileAway,
    /// Not understood, or a time that has not begun yet.
    Unknown,
}

/// Local hours at which the parts of a day begin and end; chosen by hand, not measured.
const MORNING: (i8, i8) = (5, 12);
const AFTERNOON: (i8, i8) = (12, 18);
/// The evening lasts until midnight, the night until the next day's [`MORNING`].
const EVENING: i8 = 18;

/// "A moment ago" reaches back this far; chosen by hand.
const MOMENT: SignedDuration = SignedDuration::from_mins(5);
/// "A few minutes ago" reaches back this far; chosen by hand.
const FEW_MINUTES: SignedDuration = SignedDuration::from_mins(15);
/// "At eight" means this much earlier or later; chosen by hand.
const AT: SignedDuration = SignedDuration::from_mins(15);
/// "Around eight" means this much earlier or later; chosen by hand.
const AROUND: SignedDuration = SignedDuration::from_mins(30);
/// "Two hours ago" means a quarter of that earlier or later, at least this much; chosen by hand.
const LEAST_AGO: SignedDuration = SignedDuration::from_mins(5);
/// The most that "N … ago" may count, in any unit; more is no memory of this robot.
const MOST_AGO: i64 = 400;

/// The range that `words` name, as in "yesterday evening".
#[must_use]
pub fn resolve(words: &str, now: &Zoned) -> When {
    let tokens = tokens(words);
    let reader = Reader { tokens: &tokens, now };
    // The words are already known to be a time, so a bare "Monday" or "8 pm" will do, if they are nothing else.
    let bare = || reader.weekday(0).or_else(|| reader.clock(0, AT)).filter(|(_, length)| *length == tokens.len());
    (0..tokens.len()).find_map(|place| reader.expression(place)).or_else(bare).map_or(When::Unknown, |(when, _)| when)
}

/// The words for a past time inside a whole question, and what they mean.
///
/// Words that may as well mean the future ("today", "on Sunday") count only in a question about the past; a day or an
/// hour inside what the question is about ("… about the meeting on Monday") does not count.
#[must_use]
pub fn find_in(question: &str, now: &Zoned) -> Option<(When, String)> {
    let tokens = tokens(question);
    let reader = Reader { tokens: &tokens, now };
    for place in 0..tokens.len() {
        let Some((when, length)) = reader.expression(place) else { continue };
        if when == When::Unknown || !reader.counts(place, length) {
            continue;
        }
        let (first, last) = (tokens.get(place)?, tokens.get(place + length - 1)?);
        return Some((when, question.get(first.start..last.end)?.to_owned()));
    }
    None
}

/// Reads time expressions at places among the tokens; every method answers with the tokens used.
struct Reader<'a> {
    tokens: &'a [Token],
    now: &'a Zoned,
}

type Read = Option<(When, usize)>;

/// A part of a day.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Morning,
    Afternoon,
    Evening,
    Night,
}

impl Reader<'_> {
    fn word(&self, place: usize) -> &str {
        self.tokens.get(place).map_or("", |token| token.word.as_str())
    }

    /// How many tokens `phrase` covers at `place`, if it stands there.
    fn phrase(&self, place: usize, phrase: &str) -> Option<usize> {
        let mut length = 0;
        for word in phrase.split(' ') {
            if self.word(place + length) != word {
                return None;
            }
            length += 1;
        }
        Some(length)
    }

    fn any(&self, place: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().find_map(|phrase| self.phrase(place, phrase))
    }

    /// The longest reading of each kind, the more particular kinds first.
    fn expression(&self, place: usize) -> Read {
        self.away(place)
            .or_else(|| self.since(place))
            .or_else(|| self.ago(place))
            .or_else(|| self.last_span(place))
            .or_else(|| self.day_with_clock(place))
            .or_else(|| self.day(place))
            .or_else(|| self.named_weekday(place))
            .or_else(|| self.clock_with_day(place))
    }

    /// Whether an expression inside a question is about the past, and about when rather than about what.
    fn counts(&self, place: usize, length: usize) -> bool {
        let first = self.word(place);
        let last = self.word(place + length - 1);
        let surely_past = matches!(first, "yesterday" | "last" | "since" | "while" | "just" | "during")
            || matches!(last, "ago" | "yesterday")
            || self.phrase(place, "the day before yesterday").is_some()
            || (place..place + length)
                .any(|at| matches!(self.word(at), "last" | "past" | "yesterday" | "gone" | "away"));
        let surely_when =
            surely_past || matches!(first, "today" | "this" | "tonight" | "earlier" | "so" | "all" | "the" | "when");
        (surely_past || self.asks_about_past()) && (surely_when || !self.inside_a_topic(place))
    }

    fn asks_about_past(&self) -> bool {
        const PAST: [&str; 27] = [
            "did",
            "was",
            "were",
            "had",
            "has",
            "saw",
            "seen",
            "been",
            "said",
            "told",
            "talked",
            "spoke",
            "asked",
            "answered",
            "mentioned",
            "happened",
            "came",
            "went",
            "gave",
            "ate",
            "put",
            "heard",
            "noticed",
            "didnt",
            "wanted",
            "remember",
            "wasnt",
        ];
        (0..self.tokens.len()).any(|place| {
            PAST.contains(&self.word(place))
                || self.any(place, &["have you", "have we", "have i", "have they"]).is_some()
        })
    }

    /// "… about the meeting (on Monday)", "… that the train leaves (at eight)".
    fn inside_a_topic(&self, place: usize) -> bool {
        let opens = |at: usize| matches!(self.word(at), "about" | "that");
        place > 0 && !opens(place - 1) && (0..place - 1).any(opens)
    }

    fn away(&self, place: usize) -> Read {
        const AWAY: [&str; 14] = [
            "while i was",
            "while we were",
            "when i was away",
            "when i was gone",
            "when i was out",
            "when i was not here",
            "when i wasnt here",
            "when we were away",
            "when we were out",
            "during my absence",
            "in my absence",
            "since i left",
            "since we left",
            "since i was gone",
        ];
        let length = self.any(place, &AWAY)?;
        let opener = matches!(self.word(place), "while");
        let state: &[&str] = &[
            "away",
            "gone",
            "out",
            "at work",
            "not here",
            "not there",
            "sleeping",
            "asleep",
            "on holiday",
            "shopping",
            "at school",
            "in the office",
            "at the office",
            "in town",
            "travelling",
        ];
        match (opener, self.any(place + length, state)) {
            (true, Some(more)) => Some((When::WhileAway, length + more)),
            (true, None) => None,
            (false, _) => Some((When::WhileAway, length)),
        }
    }

    fn since(&self, place: usize) -> Read {
        if self.word(place) != "since" {
            return None;
        }
        let (when, length) = self
            .day(place + 1)
            .or_else(|| self.weekday(place + 1))
            .or_else(|| self.clock(place + 1, SignedDuration::ZERO))?;
        match when {
            When::Range(range) => Some((self.range(range.from, self.now.timestamp()), length + 1)),
            other => Some((other, length + 1)),
        }
    }

    fn ago(&self, place: usize) -> Read {
        if let Some(length) = self.any(place, &["just now", "a moment ago", "a minute ago", "a second ago"]) {
            return Some((self.back(MOMENT), length));
        }
        if let Some(length) =
            self.any(place, &["a few minutes ago", "some minutes ago", "a few moments ago", "a couple of minutes ago"])
        {
            return Some((self.back(FEW_MINUTES), length));
        }
        let (count, vague, counted) = self.count(place)?;
        let unit = self.word(place + counted);
        if self.word(place + counted + 1) != "ago" {
            return None;
        }
        let when = match unit {
            "day" | "days" if vague => self.days(count + 2, count - 1),
            "day" | "days" => self.days(count, count),
            "week" | "weeks" => self.week(count),
            "month" | "months" => self.days(count * 30 + 15, count * 30 - 15),
            _ => {
                let span = self.span(count, unit)?;
                let around = if vague { span / 2 } else { (span / 4).max(LEAST_AGO) };
                self.around(self.now.timestamp().checked_sub(span).ok()?, around)
            }
        };
        Some((when, counted + 2))
    }

    /// "in the last two hours".
    fn last_span(&self, place: usize) -> Read {
        let opened = self.any(place, &["in the", "within the", "during the", "over the", "for the", "the"])?;
        if !matches!(self.word(place + opened), "last" | "past") {
            return None;
        }
        let at = place + opened + 1;
        let (count, counted) = self.count(at).map_or((1, 0), |(count, _, counted)| (count, counted));
        let unit = self.word(at + counted);
        let span = match unit {
            "day" | "days" => SignedDuration::from_hours(24 * count),
            "week" | "weeks" if counted > 0 => SignedDuration::from_hours(24 * 7 * count),
            _ => self.span(count, unit)?,
        };
        Some((self.back(span), opened + counted + 2))
    }

    /// A number, in figures or words, whether it is vague, and the tokens used.
    fn count(&self, place: usize) -> Option<(i64, bool, usize)> {
        if let Some(length) = self.any(place, &["half an", "half a"]) {
            // Read by [`Reader::span`] as minutes: thirty of them.
            return (self.word(place + length) == "hour").then_some((-1, false, length));
        }
        if let Some(length) = self.any(place, &["a couple of", "a couple"]) {
            return Some((2, true, length));
        }
        if let Some(length) = self.any(place, &["a few", "some", "several"]) {
            return Some((3, true, length));
        }
        let word = self.word(place);
        let count = match word {
            "a" | "an" => 1,
            _ => number(word)?,
        };
        (1..=MOST_AGO).contains(&count).then_some((count, false, 1))
    }

    fn span(&self, count: i64, unit: &str) -> Option<SignedDuration> {
        match (count, unit) {
            (-1, "hour") => Some(SignedDuration::from_mins(30)),
            (1.., "minute" | "minutes") => Some(SignedDuration::from_mins(count)),
            (1.., "hour" | "hours") => Some(SignedDuration::from_hours(count)),
            _ => None,
        }
    }

    /// "yesterday evening", "this morning", "today", "last week" …
    fn day(&self, place: usize) -> Read {
        if let Some(length) = self.any(place, &["the day before yesterday", "day before yesterday"]) {
            return Some(self.day_or_part(2, place, length));
        }
        if self.word(place) == "yesterday" {
            return Some(self.day_or_part(1, place, 1));
        }
        if let Some(length) = self.any(place, &["last night"]) {
            return Some((self.part(1, Part::Night), length));
        }
        if let Some(length) = self.any(place, &["this morning", "today in the morning"]) {
            return Some((self.part(0, Part::Morning), length));
        }
        if let Some(length) = self.any(place, &["this afternoon", "today in the afternoon"]) {
            return Some((self.part(0, Part::Afternoon), length));
        }
        if let Some(length) = self.any(place, &["this evening", "tonight"]) {
            return Some((self.tonight(), length));
        }
        let today = ["earlier today", "so far today", "today", "all day", "the whole day", "this day"];
        if let Some(length) = self.any(place, &today) {
            return Some((self.days(0, 0), length));
        }
        self.week_or_month(place)
    }

    fn week_or_month(&self, place: usize) -> Read {
        let today = self.now.date();
        if let Some(length) = self.any(place, &["this week"]) {
            return Some((self.week(0), length));
        }
        if let Some(length) = self.any(place, &["last week", "the week before"]) {
            return Some((self.week(1), length));
        }
        if let Some(length) = self.any(place, &["last weekend", "at the weekend", "on the weekend", "this weekend"]) {
            let saturday = i64::from(today.weekday().since(Weekday::Saturday));
            let last = self.word(place) == "last" && saturday < 2;
            let from = saturday + if last { 7 } else { 0 };
            return Some((self.days(from, (from - 1).max(0)), length));
        }
        let first = today.first_of_month();
        if let Some(length) = self.any(place, &["this month"]) {
            return Some((self.dates(Some(first), today.tomorrow().ok()), length));
        }
        let length = self.any(place, &["last month"])?;
        Some((self.dates(first.checked_sub(1.month()).ok(), Some(first)), length))
    }

    /// A day some days ago, or the part of it that is named next.
    fn day_or_part(&self, back: i64, place: usize, length: usize) -> (When, usize) {
        let at = place + length;
        let in_the = self.any(at, &["in the", "at"]).unwrap_or(0);
        let part = match self.word(at + in_the) {
            "morning" => Part::Morning,
            "afternoon" => Part::Afternoon,
            "evening" => Part::Evening,
            "night" => Part::Night,
            _ => return (self.days(back, back), length),
        };
        (self.part(back, part), length + in_the + 1)
    }

    /// "on Monday", "last Monday evening".
    fn named_weekday(&self, place: usize) -> Read {
        let opened = self.any(place, &["on", "last", "this", "this past", "on last"])?;
        let (when, length) = self.weekday(place + opened)?;
        Some((when, length + opened))
    }

    /// The last day of that name before today.
    fn weekday(&self, place: usize) -> Read {
        let day = match self.word(place) {
            "monday" => Weekday::Monday,
            "tuesday" => Weekday::Tuesday,
            "wednesday" => Weekday::Wednesday,
            "thursday" => Weekday::Thursday,
            "friday" => Weekday::Friday,
            "saturday" => Weekday::Saturday,
            "sunday" => Weekday::Sunday,
            _ => return None,
        };
        let back = i64::from(self.now.weekday().since(day));
        Some(self.day_or_part(if back == 0 { 7 } else { back }, place, 1))
    }

    /// "yesterday at eight", "this morning around half past nine".
    fn day_with_clock(&self, place: usize) -> Read {
        let (day, length) = self.day(place).or_else(|| self.named_weekday(place))?;
        let at = place + length;
        let (opened, width) = self.clock_opener(at)?;
        let (times, used) = self.clock_times(at + opened)?;
        Some((self.within(day, &times, width)?, length + opened + used))
    }

    /// "at eight", "around 3 pm yesterday".
    fn clock_with_day(&self, place: usize) -> Read {
        let (opened, width) = self.clock_opener(place)?;
        let (times, used) = self.clock_times(place + opened)?;
        let length = opened + used;
        let day = self.day(place + length).or_else(|| self.named_weekday(place + length));
        if let Some((day, more)) = day {
            return Some((self.within(day, &times, width)?, length + more));
        }
        let (when, _) = self.clock(place + opened, width)?;
        Some((when, length))
    }

    fn clock_opener(&self, place: usize) -> Option<(usize, SignedDuration)> {
        match self.word(place) {
            "at" if matches!(self.word(place + 1), "around" | "about") => Some((2, AROUND)),
            "at" => Some((1, AT)),
            "around" => Some((1, AROUND)),
            _ => None,
        }
    }

    /// The last time before now at which a clock showed this.
    fn clock(&self, place: usize, width: SignedDuration) -> Read {
        let (times, used) = self.clock_times(place)?;
        let now = self.now.timestamp();
        let latest = (0..=1)
            .filter_map(|back| self.date(back))
            .flat_map(|date| times.iter().filter_map(move |(hour, minute)| self.at(date, *hour, *minute)))
            .filter(|at| *at <= now)
            .max()?;
        Some((self.around(latest, width), used))
    }

    /// The times of day, on a clock of 24 hours, that the words may mean.
    fn clock_times(&self, place: usize) -> Option<(Vec<(i8, i8)>, usize)> {
        match self.word(place) {
            "noon" | "midday" | "lunchtime" => return Some((vec![(12, 0)], 1)),
            "midnight" => return Some((vec![(0, 0)], 1)),
            _ => {}
        }
        let (minute, opened, hour_before) = if let Some(length) = self.any(place, &["half past"]) {
            (30, length, false)
        } else if let Some(length) = self.any(place, &["quarter past", "a quarter past"]) {
            (15, length, false)
        } else if let Some(length) = self.any(place, &["quarter to", "a quarter to"]) {
            (45, length, true)
        } else {
            (0, 0, false)
        };
        let (hour, minute, suffix) = clock_figures(self.word(place + opened), minute)?;
        let hour = if hour_before { (hour + 23) % 24 } else { hour };
        let at = place + opened + 1;
        let oclock = usize::from(self.word(at) == "oclock");
        let said = suffix.or_else(|| Half::read(self.word(at + oclock)));
        let (half, more) = match said {
            Some(half) => (Some(half), oclock + usize::from(suffix.is_none())),
            None => {
                match self.any(at + oclock, &["in the morning", "in the afternoon", "in the evening", "a m", "p m"]) {
                    Some(length) => (
                        Some(Half::of_part(self.word(at + oclock + length - 1), self.word(at + oclock))),
                        oclock + length,
                    ),
                    None => (None, oclock),
                }
            }
        };
        let hours = match half {
            Some(Half::Morning) => vec![hour % 12],
            Some(Half::Afternoon) => vec![hour % 12 + 12],
            None if (1..=12).contains(&hour) => vec![hour % 12, hour % 12 + 12],
            None => vec![hour],
        };
        Some((hours.into_iter().map(|hour| (hour, minute)).collect(), opened + 1 + more))
    }

    /// Which of `times` lies in the day that was named.
    fn within(&self, day: When, times: &[(i8, i8)], width: SignedDuration) -> Option<When> {
        let When::Range(range) = day else { return Some(day) };
        let first = range.from.to_zoned(self.now.time_zone().clone()).date();
        let dates = [Some(first), first.tomorrow().ok()];
        let fits = |at: &Timestamp| range.contains(*at) && *at <= self.now.timestamp();
        let mut candidates = dates
            .into_iter()
            .flatten()
            .flat_map(|date| times.iter().filter_map(move |(hour, minute)| self.at(date, *hour, *minute)));
        // A whole day has two eights; people who mean the one in the evening say so.
        Some(candidates.find(fits).map_or(When::Unknown, |at| self.around(at, width)))
    }

    fn date(&self, back: i64) -> Option<Date> {
        self.now.date().checked_sub(back.days()).ok()
    }

    fn at(&self, date: Date, hour: i8, minute: i8) -> Option<Timestamp> {
        let civil = date.at(hour, minute, 0, 0);
        civil.to_zoned(self.now.time_zone().clone()).ok().map(|zoned| zoned.timestamp())
    }

    /// From the day `from` days ago to the day `to` days ago, both whole.
    fn days(&self, from: i64, to: i64) -> When {
        self.dates(self.date(from), self.date(to - 1))
    }

    /// From the beginning of `first` to just before the beginning of `end`.
    fn dates(&self, first: Option<Date>, end: Option<Date>) -> When {
        let midnight = |date: Option<Date>| date.and_then(|date| self.at(date, 0, 0));
        self.until(midnight(first), midnight(end))
    }

    /// The calendar week, from Monday, that many weeks ago.
    fn week(&self, back: i64) -> When {
        let monday = i64::from(self.now.weekday().to_monday_zero_offset()) + 7 * back;
        self.days(monday, monday - 6)
    }

    fn part(&self, back: i64, part: Part) -> When {
        let hour = |back: i64, hour: i8| self.date(back).and_then(|date| self.at(date, hour, 0));
        let (from, end) = match part {
            // Before the morning has begun, "this morning" is the small hours.
            Part::Morning if back == 0 && self.now.hour() < MORNING.0 => (hour(0, 0), hour(0, MORNING.0)),
            Part::Morning => (hour(back, MORNING.0), hour(back, MORNING.1)),
            Part::Afternoon => (hour(back, AFTERNOON.0), hour(back, AFTERNOON.1)),
            Part::Evening => (hour(back, EVENING), hour(back - 1, 0)),
            Part::Night => (hour(back, EVENING), hour(back - 1, MORNING.0)),
        };
        self.until(from, end)
    }

    fn tonight(&self) -> When {
        self.part(i64::from(self.now.hour() < MORNING.0), Part::Night)
    }

    fn back(&self, span: SignedDuration) -> When {
        let now = self.now.timestamp();
        now.checked_sub(span).map_or(When::Unknown, |from| self.range(from, now))
    }

    fn around(&self, at: Timestamp, width: SignedDuration) -> When {
        match (at.checked_sub(width), at.checked_add(width)) {
            (Ok(from), Ok(to)) => self.range(from, to),
            _ => When::Unknown,
        }
    }

    /// `end` itself does not belong to it.
    fn until(&self, from: Option<Timestamp>, end: Option<Timestamp>) -> When {
        match (from, end.and_then(|end| end.checked_sub(SignedDuration::from_nanos(1)).ok())) {
            (Some(from), Some(to)) => self.range(from, to),
            _ => When::Unknown,
        }
    }

    fn range(&self, from: Timestamp, to: Timestamp) -> When {
        let to = to.min(self.now.timestamp());
        if from > to { When::Unknown } else { When::Range(TimeRange { from, to }) }
    }
}

#[cfg(test)]
mod tests;
