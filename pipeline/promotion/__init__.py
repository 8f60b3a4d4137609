"""A challenger becomes the champion of a group, and the champion a challenger."""

from pipeline.promotion.promoting import Promotion
from pipeline.promotion.roles import swapped

__all__ = ["Promotion", "swapped"]
