//! The two towers of SigLIP 2 base patch16-224: the same twelve layers under a picture's patches or a text's tokens.
//!
//! Pre-norm transformer layers, attention without any mask (the model was trained so, over the padding too). The
//! picture tower pools by one attention of a learned probe over all patches, the text tower takes the last position.
//! candle-transformers has both; its matrices cannot rest in 16 bits and its GELU cannot be exchanged, so the forward
//! pass is written here. The paper: Zhai et al., "Sigmoid Loss for Language Image Pre-Training".

use candle_core::{Device, IndexOp, Tensor};
use candle_nn::ops::{layer_norm, softmax_last_dim};

use super::checkpoint::{AtRest, Checkpoint, Matrix, Numbers, Shelf};
use super::gelu::Gelu;

/// Numbers in a state and in a vector.
pub(super) const WIDTH: usize = 768;
/// Tokens of a text, padding included.
pub(super) const TOKENS: usize = 64;
/// A picture's side in pixels, and a patch's.
pub(super) const SIDE: usize = 224;
pub(super) const PATCH: usize = 16;
/// Patches of a picture, and the numbers of one: three colours.
pub(super) const PATCHES: usize = (SIDE / PATCH) * (SIDE / PATCH);
pub(super) const PATCH_NUMBERS: usize = 3 * PATCH * PATCH;

const LAYERS: usize = 12;
const HEADS: usize = 12;
const HEAD_WIDTH: usize = WIDTH / HEADS;
const INNER: usize = 3072;
const EPSILON: f32 = 1e-6;

/// The tensor that is never loaded: a vector for each token.
pub(super) const TOKEN_TABLE: &str = "text_model.embeddings.token_embedding.weight";

struct Norm {
    weight: Tensor,
    bias: Tensor,
}

impl Norm {
    fn take(shelf: &Shelf, name: &str) -> Result<Self, String> {
        let part = |part: &str| shelf.small(&format!("{name}.{part}"), &[WIDTH]);
        Ok(Self { weight: part("weight")?, bias: part("bias")? })
    }

    fn run(&self, states: &Tensor) -> candle_core::Result<Tensor> {
        layer_norm(states, &self.weight, &self.bias, EPSILON)
    }
}

struct Linear {
    matrix: Matrix,
    bias: Tensor,
}

impl Linear {
    fn take(shelf: &mut Shelf, name: &str, out: usize, into: usize) -> Result<Self, String> {
        let matrix = shelf.matrix(&format!("{name}.weight"), &[out, into])?;
        Ok(Self { matrix, bias: shelf.small(&format!("{name}.bias"), &[out])? })
    }

    fn run(&self, numbers: &Numbers, states: &Tensor) -> candle_core::Result<Tensor> {
        states.matmul(&numbers.tensor(self.matrix)?.t()?)?.broadcast_add(&self.bias)
    }

    /// The part of the product that its rows from `first` on make.
    fn run_rows(&self, numbers: &Numbers, states: &Tensor, first: usize, rows: usize) -> candle_core::Result<Tensor> {
        let part = Self { matrix: self.matrix.slice(first, rows), bias: self.bias.narrow(0, first, rows)? };
        part.run(numbers, states)
    }
}

struct Mlp {
    up: Linear,
    down: Linear,
}

impl Mlp {
    fn take(shelf: &mut Shelf, name: &str) -> Result<Self, String> {
        let up = Linear::take(shelf, &format!("{name}.fc1"), INNER, WIDTH)?;
        Ok(Self { up, down: Linear::take(shelf, &format!("{name}.fc2"), WIDTH, INNER)? })
    }

    fn run(&self, numbers: &Numbers, states: &Tensor) -> candle_core::Result<Tensor> {
        let inner = self.up.run(numbers, states)?;
        inner.inplace_op1(&Gelu)?;
        self.down.run(numbers, &inner)
    }
}

/// `(positions, parts·768)` as `(parts, heads, positions, 64)`.
fn by_head(states: &Tensor, parts: usize) -> candle_core::Result<Tensor> {
    states.reshape((states.dim(0)?, parts, HEADS, HEAD_WIDTH))?.permute((1, 2, 0, 3))?.contiguous()
}

/// Attention of every query to every key: `(heads, queries, 64)` to `(queries, 768)`.
fn attended(query: &Tensor, key: &Tensor, value: &Tensor) -> candle_core::Result<Tensor> {
    let query = (query * (HEAD_WIDTH as f64).powf(-0.5))?;
    let shares = softmax_last_dim(&query.matmul(&key.t()?)?)?;
    shares.matmul(value)?.transpose(0, 1)?.reshape((query.dim(1)?, WIDTH))
}

struct Layer {
    before_attention: Norm,
    /// Query, key and value in one matrix: one long product is quicker than three short ones.
    query_key_value: Linear,
    out: Linear,
    before_mlp: Norm,
    mlp: Mlp,
}

impl Layer {
    fn take(shelf: &mut Shelf, name: &str) -> Result<Self, String> {
        let attention = format!("{name}.self_attn");
        let mut parts = Vec::new();
        for part in ["q_proj", "k_proj", "v_proj"] {
            parts.push(Linear::take(shelf, &format!("{attention}.{part}"), WIDTH, WIDTH)?);
        }
        // The three lie side by side on the shelf, so together they are one matrix.
        let start = parts[0].matrix.start;
        let biases: Vec<&Tensor> = parts.iter().map(|part| &part.bias).collect();
        let bias = Tensor::cat(&biases, 0).map_err(|error| error.to_string())?;
        Ok(Self {
            before_attention: Norm::take(shelf, &format!("{name}.layer_norm1"))?,
            query_key_value: Linear { matrix: Matrix { start, out: 3 * WIDTH, into: WIDTH }, bias },
            out: Linear::take(shelf, &format!("{attention}.out_proj"), WIDTH, WIDTH)?,
            before_mlp: Norm::take(shelf, &format!("{name}.layer_norm2"))?,
            mlp: Mlp::take(shelf, &format!("{name}.mlp"))?,
        })
    }

    fn run(&self, numbers: &Numbers, states: &Tensor) -> candle_core::Result<Tensor> {
        let parts = by_head(&self.query_key_value.run(numbers, &self.before_attention.run(states)?)?, 3)?;
        let mixed = attended(&parts.i(0)?, &parts.i(1)?, &parts.i(2)?)?;
        let states = (states + self.out.run(numbers, &mixed)?)?;
        let inner = self.mlp.run(numbers, &self.before_mlp.run(&states)?)?;
        states + inner
    }
}

fn take_layers(shelf: &mut Shelf, tower: &str) -> Result<Vec<Layer>, String> {
    (0..LAYERS).map(|number| Layer::take(shelf, &format!("{tower}.encoder.layers.{number}"))).collect()
}

/// One vector out of all patches: a learned probe attends to them.
struct Pooling {
    probe: Tensor,
    query_key_value: Linear,
    out: Linear,
    before_mlp: Norm,
    mlp: Mlp,
}

impl Pooling {
    fn take(shelf: &mut Shelf, name: &str) -> Result<Self, String> {
        let probe = shelf.small(&format!("{name}.probe"), &[1, 1, WIDTH])?;
        let matrix = shelf.matrix(&format!("{name}.attention.in_proj_weight"), &[3 * WIDTH, WIDTH])?;
        let bias = shelf.small(&format!("{name}.attention.in_proj_bias"), &[3 * WIDTH])?;
        Ok(Self {
            probe: probe.reshape((1, WIDTH)).map_err(|error| error.to_string())?,
            query_key_value: Linear { matrix, bias },
            out: Linear::take(shelf, &format!("{name}.attention.out_proj"), WIDTH, WIDTH)?,
            before_mlp: Norm::take(shelf, &format!("{name}.layernorm"))?,
            mlp: Mlp::take(shelf, &format!("{name}.mlp"))?,
        })
    }

    fn run(&self, numbers: &Numbers, states: &Tensor) -> candle_core::Result<Tensor> {
        let query = by_head(&self.query_key_value.run_rows(numbers, &self.probe, 0, WIDTH)?, 1)?;
        let parts = by_head(&self.query_key_value.run_rows(numbers, states, WIDTH, 2 * WIDTH)?, 2)?;
        let mixed = attended(&query.i(0)?, &parts.i(0)?, &parts.i(1)?)?;
        let pooled = self.out.run(numbers, &mixed)?;
        &pooled + self.mlp.run(numbers, &self.before_mlp.run(&pooled)?)?
    }
}

struct VisionParts {
    patches: Linear,
    positions: Tensor,
    layers: Vec<Layer>,
    after: Norm,
    pooling: Pooling,
}

impl VisionParts {
    fn take(shelf: &mut Shelf) -> Result<Self, String> {
        let name = "vision_model.embeddings.patch_embedding";
        let matrix = shelf.matrix(&format!("{name}.weight"), &[WIDTH, 3, PATCH, PATCH])?;
        let bias = shelf.small(&format!("{name}.bias"), &[WIDTH])?;
        Ok(Self {
            patches: Linear { matrix, bias },
            positions: shelf.small("vision_model.embeddings.position_embedding.weight", &[PATCHES, WIDTH])?,
            layers: take_layers(shelf, "vision_model")?,
            after: Norm::take(shelf, "vision_model.post_layernorm")?,
            pooling: Pooling::take(shelf, "vision_model.head")?,
        })
    }
}

/// The loaded picture tower.
pub(super) struct VisionTower {
    parts: VisionParts,
    numbers: Numbers,
}

impl VisionTower {
    /// Whether the checkpoint holds it; the numbers of its matrices.
    ///
    /// # Errors
    /// A sentence about the tensor that is missing or has another shape.
    pub fn measure(checkpoint: &Checkpoint) -> Result<usize, String> {
        let mut shelf = Shelf::measuring(checkpoint);
        VisionParts::take(&mut shelf)?;
        Ok(shelf.used())
    }

    /// Reads it: 186 MB into memory in 16 bits, 372 MB in 32.
    ///
    /// # Errors
    /// As [`VisionTower::measure`], and when the file cannot be read.
    pub fn load(checkpoint: &Checkpoint, at_rest: AtRest) -> Result<Self, String> {
        let mut shelf = Shelf::with_room(checkpoint, Self::measure(checkpoint)?, at_rest);
        let parts = VisionParts::take(&mut shelf)?;
        let numbers = shelf.into_numbers().ok_or("nothing was read")?;
        Ok(Self { parts, numbers })
    }

    /// The vector of a picture, not of length one. `patches`: [`PATCHES`] times [`PATCH_NUMBERS`] numbers.
    pub fn run(&self, patches: Vec<f32>) -> candle_core::Result<Vec<f32>> {
        let patches = Tensor::from_vec(patches, (PATCHES, PATCH_NUMBERS), &Device::Cpu)?;
        let mut states = (self.parts.patches.run(&self.numbers, &patches)? + &self.parts.positions)?;
        for layer in &self.parts.layers {
            states = layer.run(&self.numbers, &states)?;
        }
        let states = self.parts.after.run(&states)?;
        self.parts.pooling.run(&self.numbers, &states)?.squeeze(0)?.to_vec1()
    }
}

struct TextParts {
    positions: Tensor,
    layers: Vec<Layer>,
    after: Norm,
    head: Linear,
}

impl TextParts {
    fn take(shelf: &mut Shelf) -> Result<Self, String> {
        Ok(Self {
            positions: shelf.small("text_model.embeddings.position_embedding.weight", &[TOKENS, WIDTH])?,
            layers: take_layers(shelf, "text_model")?,
            after: Norm::take(shelf, "text_model.final_layer_norm")?,
            head: Linear::take(shelf, "text_model.head", WIDTH, WIDTH)?,
        })
    }
}

/// The loaded text tower, without its token table.
pub(super) struct TextTower {
    parts: TextParts,
    numbers: Numbers,
}

impl TextTower {
    /// Whether the checkpoint holds it, table included; the numbers of its matrices.
    ///
    /// # Errors
    /// A sentence about the tensor that is missing or has another shape.
    pub fn measure(checkpoint: &Checkpoint) -> Result<usize, String> {
        checkpoint.rows(TOKEN_TABLE, WIDTH)?;
        let mut shelf = Shelf::measuring(checkpoint);
        TextParts::take(&mut shelf)?;
        Ok(shelf.used())
    }

    /// Reads it: 171 MB into memory in 16 bits, 342 MB in 32.
    ///
    /// # Errors
    /// As [`TextTower::measure`], and when the file cannot be read.
    pub fn load(checkpoint: &Checkpoint, at_rest: AtRest) -> Result<Self, String> {
        let mut shelf = Shelf::with_room(checkpoint, Self::measure(checkpoint)?, at_rest);
        let parts = TextParts::take(&mut shelf)?;
        let numbers = shelf.into_numbers().ok_or("nothing was read")?;
        Ok(Self { parts, numbers })
    }

    /// The vector of a text, not of length one. `tokens`: the table's rows of [`TOKENS`] tokens, one after the other.
    pub fn run(&self, tokens: Vec<f32>) -> candle_core::Result<Vec<f32>> {
        let tokens = Tensor::from_vec(tokens, (TOKENS, WIDTH), &Device::Cpu)?;
        let mut states = (tokens + &self.parts.positions)?;
        for layer in &self.parts.layers {
            states = layer.run(&self.numbers, &states)?;
        }
        let last = states.narrow(0, TOKENS - 1, 1)?.contiguous()?;
        self.parts.head.run(&self.numbers, &self.parts.after.run(&last)?)?.squeeze(0)?.to_vec1()
    }
}
