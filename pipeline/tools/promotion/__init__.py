"""Promote a challenger to the champion of a group; the champion becomes a challenger."""

from pipeline.tools.promotion.promoting import Promotion
from pipeline.tools.promotion.roles import swapped

__all__ = ["Promotion", "swapped"]
