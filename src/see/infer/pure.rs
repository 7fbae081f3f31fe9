//! Networks by rten, which is part of the program and needs no library.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rten::{Model, NodeId, RunOptions, ThreadPool, Value, ValueOrView};
use rten_tensor::prelude::*;

use super::{InferError, Network, Tensor, guarded};

/// A network in rten.
pub(super) struct RtenNetwork {
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    model: Model,
    pool: Arc<ThreadPool>,
}

/// What every ONNX file begins with: the tag of the format's version, and a version of one byte.
const BEGINNING: u8 = 0x08;
const HIGHEST_VERSION: u8 = 0x7f;

/// Whether the file begins as a network does. Some files that are none keep the engine reading for ever.
fn begins_right(path: &Path) -> Result<bool, String> {
    let mut beginning = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    match read {
        Ok(()) => Ok(beginning[0] == BEGINNING && (1..=HIGHEST_VERSION).contains(&beginning[1])),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn load(path: &Path, pool: Arc<ThreadPool>) -> Result<RtenNetwork, String> {
    if !begins_right(path)? {
        return Err("there is no network in it".into());
    }
    let model = Model::load_file(path).map_err(|error| error.to_string())?;
    let names = |ids: &[NodeId]| -> Vec<String> {
        let name = |id: &NodeId| model.node_info(*id).and_then(|node| node.name().map(str::to_owned));
        ids.iter().map(|id| name(id).unwrap_or_default()).collect()
    };
    Ok(RtenNetwork {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        inputs: names(model.input_ids()),
        outputs: names(model.output_ids()),
        model,
        pool,
    })
}

impl RtenNetwork {
    fn answer(&self, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tensor>, String> {
        let mut values: Vec<(NodeId, ValueOrView<'_>)> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let place = self.inputs.iter().position(|known| known == name);
            let id = place.and_then(|place| self.model.input_ids().get(place));
            let id = id.ok_or_else(|| format!("it has no input {name}; there are: {}", self.inputs.join(", ")))?;
            let value = Value::from_shape(tensor.shape(), tensor.values().to_vec()).map_err(|it| it.to_string())?;
            values.push((*id, value.into()));
        }
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.pool)));
        let answer = self.model.run(values, self.model.output_ids(), Some(options));
        let answer = answer.map_err(|error| error.to_string())?;
        let mut outputs = BTreeMap::new();
        for (name, value) in self.outputs.iter().zip(answer) {
            let Value::FloatTensor(values) = value else {
                return Err(format!("{name} is not of numbers with a point"));
            };
            let tensor = Tensor::new(values.shape().to_vec(), values.into_data()).map_err(|it| it.to_string())?;
            outputs.insert(name.clone(), tensor);
        }
        Ok(outputs)
    }
}

impl Network for RtenNetwork {
    fn inputs(&self) -> &[String] {
        &self.inputs
    }

    fn outputs(&self) -> &[String] {
        &self.outputs
    }

    fn run(&mut self, inputs: &[(&str, &Tensor)]) -> Result<BTreeMap<String, Tensor>, InferError> {
        guarded(|| self.answer(inputs)).map_err(|why| InferError::Run { name: self.name.clone(), why })
    }
}
