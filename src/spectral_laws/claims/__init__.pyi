from .evaluation import evaluate_claims as evaluate_claims
from .registry import Claim as Claim
from .registry import load_claims as load_claims
from .render import claims_csv as claims_csv
from .render import claims_markdown as claims_markdown
from .tables import ClaimTables as ClaimTables
from .tables import read_claim_tables as read_claim_tables
from .verdicts import Measurement as Measurement
from .verdicts import Verdict as Verdict
from .verdicts import judge as judge

__all__ = [
    "Claim",
    "ClaimTables",
    "Measurement",
    "Verdict",
    "claims_csv",
    "claims_markdown",
    "evaluate_claims",
    "judge",
    "load_claims",
    "read_claim_tables",
]
