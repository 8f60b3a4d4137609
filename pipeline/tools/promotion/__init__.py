"""A challenger becomes the champion of a group, and the champion a challenger."""

from pipeline.tools.promotion.promoting import Promotion
from pipeline.tools.promotion.roles import swapped

__all__ = ["Promotion", "swapped"]
