//! Writing a gate into the manifest's text, line by line, so that every comment stays.

/// The manifest with `gate` as the value of `key` among the gates of the text model `model`.
///
/// # Errors
/// A sentence when the model or the key is not there.
pub fn set_gate(manifest: &str, model: &str, key: &str, gate: f32) -> Result<String, String> {
    let mut lines: Vec<String> = manifest.lines().map(str::to_owned).collect();
    let named = format!("name = \"{model}\"");
    let from = lines.iter().position(|line| line.trim() == named);
    let from = from.ok_or_else(|| format!("the manifest has no model {model}"))?;
    let mut in_gates = false;
    for line in lines.iter_mut().skip(from) {
        let bare = line.trim();
        if bare == "[[model]]" {
            break;
        }
        if bare.starts_with('[') {
            in_gates = bare == "[model.text.gates]";
        } else if in_gates && bare.split('=').next().is_some_and(|name| name.trim() == key) {
            *line = format!("{key} = {gate:.2}");
            return Ok(lines.join("\n") + "\n");
        }
    }
    Err(format!("the manifest has no gate `{key}` for {model}"))
}

#[cfg(test)]
mod tests {
    use super::set_gate;

    #[test]
    fn one_line_of_one_model_changes_and_every_other_stays() {
        let manifest = "[[model]]\nname = \"a\"\n[model.text.gates]\n# From somewhere.\nexchange = 0.62\nframe = 0.66\n\n\
                        [[model]]\nname = \"b\"\n[model.text.gates]\nexchange = 0.39\n";
        let changed = set_gate(manifest, "a", "exchange", 0.5).unwrap();
        assert_eq!(changed, manifest.replace("0.62", "0.50"));
        assert!(set_gate(manifest, "b", "frame", 0.5).unwrap_err().contains("no gate `frame` for b"));
        assert!(set_gate(manifest, "c", "frame", 0.5).unwrap_err().contains("no model c"));
    }
}
