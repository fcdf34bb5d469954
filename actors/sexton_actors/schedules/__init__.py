"""When schedules fire: in their own time zones, over any change of the clock."""
