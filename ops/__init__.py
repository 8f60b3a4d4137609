"""What runs the component: container, metrics over time, alerts. Not in the wheel."""
