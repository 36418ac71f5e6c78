"""Running a transformer: weights -> an ONNX graph -> embeddings of token ids, with onnxruntime on one thread."""
