"""The parts of `agjson.emitter.Emitter`, one idea each; nothing here is public."""
