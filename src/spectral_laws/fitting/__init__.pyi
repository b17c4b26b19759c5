from .bootstrap import Interval as Interval
from .bootstrap import bootstrap_interval as bootstrap_interval
from .bootstrap import bootstrap_slope_interval as bootstrap_slope_interval
from .bootstrap import cluster_bootstrap_interval as cluster_bootstrap_interval
from .crossings import first_crossing as first_crossing
from .loglog import LogLogFit as LogLogFit
from .loglog import fit_loglog as fit_loglog
from .participation import participation_ratio as participation_ratio
from .participation import participation_ratio_bound as participation_ratio_bound
from .rank_models import RankModels as RankModels
from .rank_models import compare_rank_models as compare_rank_models

__all__ = [
    "Interval",
    "LogLogFit",
    "RankModels",
    "bootstrap_interval",
    "bootstrap_slope_interval",
    "cluster_bootstrap_interval",
    "compare_rank_models",
    "first_crossing",
    "fit_loglog",
    "participation_ratio",
    "participation_ratio_bound",
]
