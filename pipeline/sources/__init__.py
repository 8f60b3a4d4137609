"""Where events come from when there is no producer."""
