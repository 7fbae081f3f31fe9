//! The window: the exchanges that the model still reads, and when the oldest half of them moves into memory.
//!
//! Pure state; the conversation owns one and does the storing. A batch is offered by [`Window::oldest_half`] and
//! leaves only when [`Window::leave`] is called after it was stored, so a failed store keeps everything.

use std::collections::VecDeque;

use super::brain::{Message, Usage};
use crate::remember::Exchange;

/// Characters of English text a token, on the careful side: a byte-pair vocabulary needs one token for about four
/// characters, so three over-estimates and evicts early rather than late. Not measured on the robot's model.
const CHARACTERS_A_TOKEN: usize = 3;
/// Tokens that a chat template adds around one message. Not measured.
const TOKENS_A_MESSAGE: u32 = 6;

/// One exchange in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub exchange: Exchange,
    /// The answer was read out of memory; storing it back would make the memory find itself.
    pub from_memory: bool,
}

/// The window's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens that the conversation may fill (the system prompt and the tools are not counted).
    pub tokens: u32,
    /// Exchanges at most, whatever the tokens say.
    pub exchanges: usize,
}

/// The exchanges of the running conversation, oldest first.
#[derive(Clone, Debug)]
pub struct Window {
    limits: Limits,
    kept: VecDeque<Kept>,
    /// Tokens of system prompt and tools, as far as the server's counts told: its count of the smallest prompt seen,
    /// less our own estimate of the conversation in it.
    overhead: Option<u32>,
    counted: Option<u32>,
    /// Tokens that a prompt may take at the brain that answers, as far as it is known.
    room: Option<u32>,
}

/// Tokens that a turn needs beside the window: what is said in it, and five memories of 300 characters. Counted with
/// [`CHARACTERS_A_TOKEN`].
const A_TURN: u32 = 600;
/// System prompt, tools and their frame before any count told how many they are: about 3,500 characters, counted in the
/// same way.
const OVERHEAD: u32 = 1200;

impl Window {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, kept: VecDeque::new(), overhead: None, counted: None, room: None }
    }

    /// The exchanges, oldest first.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = &Kept> {
        self.kept.iter()
    }

    /// What a search may answer from as "just said": what will be stored.
    #[must_use]
    pub fn just_said(&self) -> Vec<Exchange> {
        self.kept.iter().filter_map(Kept::storable).collect()
    }

    /// The conversation as the model reads it.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.kept.len() * 2 + 1);
        for Kept { exchange, .. } in &self.kept {
            messages.push(Message::User {
                text: exchange.heard.clone(),
                speaker: exchange.speaker.clone(),
                at: exchange.said_at,
            });
            if !exchange.said.is_empty() {
                messages.push(Message::Assistant { text: exchange.said.clone(), calls: Vec::new() });
            }
        }
        messages
    }

    /// Adds the exchange of the turn that has just ended, with the tokens that the server counted, if it did.
    pub fn add(&mut self, kept: Kept, usage: Option<Usage>) {
        self.kept.push_back(kept);
        if let Some(usage) = usage.filter(|usage| usage.prompt_tokens > 0) {
            let answer = self.kept.back().map_or(0, |kept| estimate(&kept.exchange.said));
            let overhead = usage.prompt_tokens.saturating_sub(self.estimated().saturating_sub(answer));
            let overhead = self.overhead.map_or(overhead, |known| known.min(overhead));
            self.overhead = Some(overhead);
            self.counted = Some((usage.prompt_tokens + usage.completion_tokens).saturating_sub(overhead));
        } else {
            self.counted = None;
        }
    }

    /// Changes every exchange, or lets it go where `change` gives none.
    pub fn change(&mut self, change: &dyn Fn(Exchange) -> Option<Exchange>) {
        let kept = std::mem::take(&mut self.kept);
        self.kept = kept
            .into_iter()
            .filter_map(|Kept { exchange, from_memory }| Some(Kept { exchange: change(exchange)?, from_memory }))
            .collect();
    }

    /// Takes the brain's own count of a prompt that holds the window as it is now, and nothing of a turn.
    pub fn measured(&mut self, prompt_tokens: u32) {
        let overhead = prompt_tokens.saturating_sub(self.estimated());
        let overhead = self.overhead.map_or(overhead, |known| known.min(overhead));
        self.overhead = Some(overhead);
        self.counted = Some(prompt_tokens.saturating_sub(overhead));
    }

    /// Takes how long a prompt may be at the brain that answers now; `None` where it does not say.
    pub fn fit(&mut self, room: Option<u32>) {
        self.room = room;
    }

    /// Tokens that the conversation may fill: what the owner allows, and what the model's context leaves.
    #[must_use]
    pub fn budget(&self) -> u32 {
        let beside = self.overhead.unwrap_or(OVERHEAD) + A_TURN;
        let fits = self.room.map_or(u32::MAX, |room| room.saturating_sub(beside));
        self.limits.tokens.min(fits)
    }

    /// Tokens of the conversation: the server's count where it gave one, else our estimate.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        self.counted.unwrap_or(0).max(self.estimated())
    }

    /// Whether the oldest half has to move.
    #[must_use]
    pub fn over_budget(&self) -> bool {
        self.kept.len() > 1 && (self.tokens() > self.budget() || self.kept.len() > self.limits.exchanges)
    }

    /// The oldest half (rounded up), oldest first; nothing leaves yet.
    #[must_use]
    pub fn oldest_half(&self) -> Vec<Kept> {
        self.kept.iter().take(self.kept.len().div_ceil(2)).cloned().collect()
    }

    /// Lets the `count` oldest exchanges go, after they have been stored.
    pub fn leave(&mut self, count: usize) {
        self.kept.drain(..count.min(self.kept.len()));
        self.counted = None;
    }

    fn estimated(&self) -> u32 {
        self.kept.iter().map(|kept| tokens_of(&kept.exchange)).sum()
    }
}

impl Kept {
    /// What of it goes into the shard. Of a turn that was answered out of memory only what the person told is kept
    /// ("Remember that the bins go out on Tuesday"), never the question and never the answer.
    #[must_use]
    pub fn storable(&self) -> Option<Exchange> {
        if !self.from_memory {
            return Some(self.exchange.clone());
        }
        let told = !super::offline::asks(&self.exchange.heard);
        told.then(|| Exchange { said: String::new(), ..self.exchange.clone() })
    }
}

/// Of a batch, what goes into the shard.
#[must_use]
pub fn storable(batch: &[Kept]) -> Vec<Exchange> {
    batch.iter().filter_map(Kept::storable).collect()
}

fn tokens_of(exchange: &Exchange) -> u32 {
    let answer = if exchange.said.is_empty() { 0 } else { estimate(&exchange.said) };
    estimate(&exchange.heard) + answer
}

fn estimate(text: &str) -> u32 {
    let characters = u32::try_from(text.chars().count().div_ceil(CHARACTERS_A_TOKEN)).unwrap_or(u32::MAX / 2);
    characters + TOKENS_A_MESSAGE
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn kept(second: i64, from_memory: bool) -> Kept {
        let exchange = Exchange {
            heard: format!("{} {second}?", if from_memory { "What was" } else { "These are the words of second" }),
            said: "All right.".into(),
            speaker: None,
            said_at: Timestamp::from_second(second).unwrap(),
        };
        Kept { exchange, from_memory }
    }

    fn window(tokens: u32, exchanges: usize) -> Window {
        Window::new(Limits { tokens, exchanges })
    }

    #[test]
    fn over_its_tokens_the_oldest_half_is_offered_and_nothing_leaves_until_it_is_stored() {
        let mut window = window(100, 40);
        for second in 0..5 {
            window.add(kept(second, false), None);
        }
        assert!(window.over_budget());
        let batch = window.oldest_half();
        let seconds: Vec<_> = batch.iter().map(|kept| kept.exchange.said_at.as_second()).collect();
        assert_eq!(seconds, [0, 1, 2]);
        assert_eq!(window.kept().len(), 5);
        window.leave(batch.len());
        assert_eq!(window.kept().len(), 2);
        assert!(!window.over_budget());
    }

    #[test]
    fn a_server_that_counts_no_tokens_is_bounded_by_the_cap() {
        let mut window = window(1_000_000, 3);
        for second in 0..4 {
            window.add(kept(second, false), None);
        }
        assert!(window.over_budget());
    }

    #[test]
    fn the_servers_count_decides_where_it_is_higher_than_the_estimate() {
        let mut window = window(200, 40);
        // 700 tokens of prompt and tools before a single word of conversation was counted.
        window.add(kept(1, false), Some(Usage { prompt_tokens: 720, completion_tokens: 5 }));
        assert!(!window.over_budget(), "the system prompt and the tools are not the conversation");
        window.add(kept(2, false), Some(Usage { prompt_tokens: 1200, completion_tokens: 5 }));
        assert!(window.over_budget());
    }

    #[test]
    fn a_models_small_context_makes_the_window_smaller() {
        let mut window = window(1000, 40);
        window.add(kept(1, false), Some(Usage { prompt_tokens: 720, completion_tokens: 5 }));
        assert_eq!(window.budget(), 1000);
        window.fit(Some(1500));
        let overhead = 720 - 17;
        assert_eq!(window.budget(), 1500 - overhead - A_TURN);
        window.fit(Some(100));
        assert_eq!(window.budget(), 0);
        assert!(!window.over_budget(), "the last exchange stays");
        window.fit(None);
        assert_eq!(window.budget(), 1000);
    }

    #[test]
    fn an_exact_count_takes_the_tools_results_out_again() {
        let mut window = window(200, 40);
        window.add(kept(1, false), Some(Usage { prompt_tokens: 720, completion_tokens: 5 }));
        window.add(kept(2, false), Some(Usage { prompt_tokens: 1100, completion_tokens: 5 }));
        assert!(window.over_budget(), "the tool's result was counted too");
        window.measured(750);
        assert!(!window.over_budget(), "{} tokens", window.tokens());
        window.measured(1100);
        assert!(window.over_budget());
    }

    #[test]
    fn an_answer_read_out_of_memory_is_neither_stored_nor_found_as_just_said() {
        let mut window = window(1000, 40);
        window.add(kept(1, false), None);
        window.add(kept(2, true), None);
        assert_eq!(window.just_said().len(), 1);
        assert_eq!(storable(&window.oldest_half()).len(), 1);
        window.leave(1);
        assert!(storable(&window.oldest_half()).is_empty());
    }

    #[test]
    fn what_was_told_is_kept_although_the_brain_searched_its_memory() {
        let mut told = kept(1, true);
        told.exchange.heard = "Remember that the bins go out on Tuesday.".into();
        assert_eq!(
            told.storable().map(|exchange| (exchange.heard, exchange.said)),
            Some((told.exchange.heard.clone(), String::new()))
        );
        for question in
            ["When do the bins go out?", "What did I tell you about apples?", "Tell me what I said about the bins."]
        {
            told.exchange.heard = question.into();
            assert_eq!(told.storable(), None, "{question}");
        }
    }

    #[test]
    fn a_single_exchange_stays_however_long_it_is() {
        let mut window = window(10, 40);
        window.add(kept(1, false), None);
        assert!(!window.over_budget());
    }

    proptest! {
        #[test]
        fn every_exchange_leaves_once_and_in_order(
            budget in 1_u32..400,
            cap in 1_usize..10,
            fails in prop::collection::vec(any::<bool>(), 1..60),
        ) {
            let mut window = window(budget, cap);
            let mut stored = Vec::new();
            for (second, store_fails) in fails.iter().enumerate() {
                window.add(kept(second as i64, false), None);
                while window.over_budget() {
                    let batch = window.oldest_half();
                    if *store_fails { break; }
                    stored.extend(batch.iter().map(|kept| kept.exchange.said_at.as_second()));
                    window.leave(batch.len());
                }
            }
            let mut all = stored;
            all.extend(window.kept().map(|kept| kept.exchange.said_at.as_second()));
            prop_assert_eq!(all, (0..fails.len() as i64).collect::<Vec<_>>());
        }
    }
}
