"""What is read off a network: its layers, and how its logits depend on their weights."""
