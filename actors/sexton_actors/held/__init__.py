"""What an actor knows of its record, and how it changes it although other nodes write too."""
