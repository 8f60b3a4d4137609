"""Try the containers with an engine of its own, where there is neither an engine nor a registry of images."""
