"""How long a test waits for something that must come, whatever the machine is busy with.

It ends a test that would hang, and says nothing about speed: beside other tests, on a slow machine, what
takes a second alone may take half a minute.
"""

from typing import Final

PATIENCE_S: Final = 240.0
