"""What predicts and learns: the model, its challengers, label policy and snapshot."""
