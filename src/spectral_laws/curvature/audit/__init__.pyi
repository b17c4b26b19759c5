from .files import ReferenceFiles as ReferenceFiles
from .files import read_reference as read_reference
from .table import audit_markdown as audit_markdown
from .table import audit_reference as audit_reference

__all__ = ["ReferenceFiles", "audit_markdown", "audit_reference", "read_reference"]
