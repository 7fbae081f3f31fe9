//! Finding what was said, measured: likeness and words together against each alone.

use std::sync::Arc;

use reachy_remembers::config::{Config, ModelsConfig};
use reachy_remembers::daemon::parts::{self, Text};
use reachy_remembers::remember::calibrate::exchanges::{self, Questions};
use reachy_remembers::remember::embed::stand_in::StandIn;
use reachy_remembers::remember::eval::locomo::{self, LeftOut};
use reachy_remembers::remember::eval::{ALL, By, Ranked, Report, Row, report};

use crate::weights;

/// A made-up conversation of four sessions in LoCoMo's format.
const SMALL: &str = include_str!("../questions/locomo_small.json");

async fn real_text() -> Option<Text> {
    if !weights::all_are_here() {
        return None;
    }
    let models = ModelsConfig { folder: weights::folder(), ..ModelsConfig::default() };
    let load = move || parts::load_text(&Config { models, ..Config::default() });
    Some(tokio::task::spawn_blocking(load).await.unwrap().unwrap())
}

fn row<'a>(report: &'a Report, category: &str, by: By) -> &'a Row {
    report.rows.iter().find(|row| row.category == category && row.by == by).unwrap()
}

fn print(report: &Report) {
    for row in &report.rows {
        println!(
            "{:12} {:6} {:3} {:.3} {:.3} {:.3}",
            row.category,
            row.by.name(),
            row.asked,
            row.recall_at_1,
            row.recall_at_10,
            row.mrr
        );
    }
    println!("{:?}", report.abstention);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_together_find_more_than_likeness_or_words_alone() {
    let Some(text) = real_text().await else { return };
    let searched = exchanges::search(&Questions::shipped().unwrap(), &text.embedder).await.unwrap();
    let ranked: Vec<Ranked> = searched.iter().map(|one| Ranked::said(one, text.model.exchange_gate)).collect();
    let report = report(&ranked, None);
    print(&report);
    let categories: Vec<&str> =
        report.rows.iter().filter(|row| row.by == By::Fused).map(|row| row.category.as_str()).collect();
    assert!(categories.len() >= 6, "{categories:?}");
    for category in &categories {
        let fused = row(&report, category, By::Fused);
        for by in [By::Dense, By::Words] {
            let alone = row(&report, category, by);
            // One question of a hundred may go the other way.
            assert!(fused.recall_at_1 + 0.01 >= alone.recall_at_1, "{category}: {fused:?} {alone:?}");
        }
    }
    for category in ["place", "plan", "two-topic"] {
        for by in [By::Dense, By::Words] {
            assert!(
                row(&report, category, By::Fused).recall_at_1 > row(&report, category, by).recall_at_1,
                "{category}"
            );
        }
    }
    let all = |by| row(&report, ALL, by);
    for by in [By::Dense, By::Words] {
        assert!(all(By::Fused).recall_at_1 > all(by).recall_at_1 && all(By::Fused).mrr > all(by).mrr);
    }
    // Most absent questions are near to what was said: the same people, the same words.
    let abstention = report.abstention;
    assert!(abstention.absent_refused * 100 >= abstention.absent * 65, "{abstention:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_in_locomos_format_is_asked_by_category_three_ways() {
    let (samples, left_out) = locomo::parse(SMALL).unwrap();
    assert_eq!(left_out, LeftOut::default());
    let embedder = match real_text().await {
        Some(text) => text.embedder,
        None => Arc::new(StandIn::new()),
    };
    let searched = locomo::search(&samples, embedder).await.unwrap();
    let ranked: Vec<Ranked> = searched.iter().map(|one| Ranked::said(one, 0.5)).collect();
    let report = report(&ranked, None);
    print(&report);
    assert_eq!(report.rows.len(), 5 * By::ALL.len(), "four categories with answers and the row over all");
    assert_eq!((report.abstention.absent, report.abstention.answerable), (8, 33));
    assert!(row(&report, ALL, By::Fused).recall_at_5 > 0.6);
}
