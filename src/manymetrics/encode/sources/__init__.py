"""Where encoders and word vectors come from: packages, the Hugging Face hub, folders and files."""
